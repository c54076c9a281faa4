"""Runs one engine and never outlives the program that asked for it.

Started as a program of its own (standard library only), it starts the engine in a new
process group and waits for one of two things: the engine ends, or its standard input
closes, which happens however our program goes, ``kill -9`` included. Then every
process the engine left behind is ended; the guardian is their subreaper, so that
workers that moved to a group or session of their own are found as well.

Protocol on standard output: ``pid N`` after the start, or ``failed TEXT``; then
``exit N`` with the engine's status, negative for a signal.
"""

import ctypes
import os
import select
import signal
import subprocess
import sys
import time

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
GRACE_S = 8.0


def _prctl(option: int, value: int) -> None:
    ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


def _die_with_parent() -> None:
    _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def descendants(root: int) -> list[int]:
    """Process ids below ``root``, children before grandchildren."""
    parents: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                after_name = file.read().rpartition(b")")[2].split()
        except OSError:
            continue
        if after_name[0] != b"Z":
            parents.setdefault(int(after_name[1]), []).append(int(name))
    found, waiting = [], [root]
    while waiting:
        children = parents.get(waiting.pop(), [])
        found.extend(children)
        waiting.extend(children)
    return found


def _signal_all(number: int) -> bool:
    """Send a signal to everything below us; whether anything is left."""
    left = descendants(os.getpid())
    for pid in left:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            continue
    return bool(left)


def _reap(engine: "subprocess.Popen[bytes]") -> None:
    engine.poll()
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return


def _end_everything(engine: "subprocess.Popen[bytes]", grace_s: float) -> None:
    deadline = time.monotonic() + grace_s
    if engine.poll() is None:
        # Engines stop their own workers in order when only they are asked.
        engine.send_signal(signal.SIGTERM)
        while engine.poll() is None and time.monotonic() < deadline:
            time.sleep(0.02)
    _signal_all(signal.SIGTERM)
    while descendants(os.getpid()) and time.monotonic() < deadline:
        _reap(engine)
        time.sleep(0.02)
    for _ in range(100):
        if not _signal_all(signal.SIGKILL):
            break
        _reap(engine)
        time.sleep(0.02)
    _reap(engine)


def _say(line: str) -> None:
    try:
        os.write(1, f"{line}\n".encode())
    except OSError:
        pass


def _wait(engine: "subprocess.Popen[bytes]") -> None:
    """Return when the engine has ended or our standard input has closed."""
    poller = select.poll()
    poller.register(0, select.POLLIN | select.POLLHUP)
    pidfd = os.pidfd_open(engine.pid)
    poller.register(pidfd, select.POLLIN)
    while True:
        for fd, _ in poller.poll():
            if fd == pidfd or not os.read(0, 1):
                return


def main(log_path: str, grace_s: float, command: list[str]) -> int:
    """Run ``command`` with its output in ``log_path`` until it ends or we must."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    _prctl(PR_SET_CHILD_SUBREAPER, 1)
    with open(log_path, "ab") as log:
        try:
            engine = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=_restore_and_bind,
            )
        except OSError as error:
            _say(f"failed {error.strerror}: {error.filename or command[0]}")
            return 1
    _say(f"pid {engine.pid}")
    _wait(engine)
    status = engine.poll()
    _end_everything(engine, grace_s)
    _say(f"exit {engine.returncode if status is None else status}")
    return 0


def _restore_and_bind() -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    _die_with_parent()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], float(sys.argv[2]), sys.argv[3:]))
