"""A cell: a small clean process that forks the two processes of each job.

Started by ``pool.py`` as its own interpreter, with an empty environment and nothing
but the standard library, so that a fork is cheap and holds no secret. It speaks
frames on its standard input and output.
"""

import os
import secrets
import select
import signal
import sys
import time
from collections.abc import Callable
from typing import Any

from routeproof.scorers.sandbox import candidate, examiner, kernel, tiers
from routeproof.scorers.sandbox.wire import WireError, receive, send

WARM = (
    "abc", "array", "bisect", "cmath", "collections", "copy", "datetime", "decimal",
    "enum", "fractions", "functools", "hashlib", "heapq", "itertools", "json", "math",
    "operator", "random", "re", "statistics", "string", "textwrap", "typing",
)  # fmt: skip
"""Modules loaded before the fork: what nearly every program imports."""


def main(is_apart: bool = False) -> None:
    """Serve jobs until the asker closes the pipe.

    Args:
        is_apart: First enter a throw-away PID, mount and network namespace.
    """
    if is_apart:
        tiers.throw_away()
    for name in WARM:
        __import__(name)
    kernel.prctl(kernel.PR_SET_CHILD_SUBREAPER, 1)
    asks, replies = os.dup(0), os.dup(1)
    tiers.readable_places()
    candidate.silence()
    sys.path[:] = []
    has_namespaces = False
    while True:
        try:
            program = receive(asks)
        except WireError:
            return
        if program["tier"] == "T3" and not has_namespaces:
            tiers.enter_namespaces()
            has_namespaces = True
        send(replies, run(program, lambda: receive(asks)))


def run(
    program: dict[str, Any], get_tests: Callable[[], dict[str, Any]]
) -> dict[str, Any]:
    """Run one job: the program in one process, its tests in another.

    The program's process is forked before the tests arrive: it cannot find in its
    own memory what it will be asked.

    Args:
        program: ``program``, ``tier``, ``limits``.
        get_tests: Waits for ``tests``, ``context``, ``entry_points``.

    Returns:
        What :func:`examiner.examine` says, or the outcome ``timed_out`` or
        ``not_confined``; with ``wall_s`` and the ``signal`` that ended the program.
    """
    started_s = time.monotonic()
    limits = tiers.Limits(**program["limits"])
    asks, answers, verdict, ready = (os.pipe() for _ in range(4))
    nonce = secrets.token_hex(8)
    candidate_pid = _start(
        program["tier"],
        limits,
        lambda: candidate.serve(program["program"], asks[0], answers[1], nonce),
        keep=(asks[0], answers[1]),
        ready=ready,
    )
    tests = get_tests()
    tester_pid = _start(
        program["tier"],
        limits,
        lambda: send(
            verdict[1],
            examiner.examine(tests, examiner.Line(asks[1], answers[0], nonce)),
        ),
        keep=(asks[1], answers[0], verdict[1]),
        ready=ready,
    )
    for descriptor in (*asks, *answers, verdict[1], ready[1]):
        os.close(descriptor)
    problems = _confinement(ready[0], started_s + limits.wall_s)
    result = _verdict(verdict[0], started_s + limits.wall_s)
    os.close(verdict[0])
    ended = _end(candidate_pid), _end(tester_pid)
    _end_orphans()
    if problems:
        result = {"outcome": "not_confined", "detail": problems, "calls": 0}
    return {**result, "signal": ended[0], "wall_s": time.monotonic() - started_s}


def _start(
    tier: tiers.Tier,
    limits: tiers.Limits,
    body: Any,
    *,
    keep: tuple[int, ...],
    ready: tuple[int, int],
) -> int:
    child = tiers.fork_in_namespace() if tier == "T3" else os.fork()
    if child:
        return child
    try:
        _keep_only({*keep, ready[1]})
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)
        try:
            tiers.confine(tier, limits)
        except (OSError, ValueError, ImportError, KeyError) as error:
            os.write(ready[1], f"{type(error).__name__}: {error}\n".encode())
            os._exit(1)
        os.write(ready[1], b"ok\n")
        os.close(ready[1])
        body()
    finally:
        os._exit(0)


def _keep_only(kept: set[int]) -> None:
    low = 3
    for descriptor in sorted(kept):
        os.closerange(low, descriptor)
        low = descriptor + 1
    os.closerange(low, 1 << 16)


def _confinement(ready: int, until_s: float) -> str:
    """Problems of the two processes on their way in; empty when both are held."""
    said = b""
    while said.count(b"\n") < 2:
        left_s = until_s - time.monotonic()
        if left_s <= 0 or not select.select([ready], [], [], left_s)[0]:
            break
        part = os.read(ready, 4096)
        if not part:
            break
        said += part
    os.close(ready)
    lines = said.decode("utf-8", "replace").split("\n")[:-1]
    wrong = [line for line in lines if line != "ok"]
    return "; ".join(wrong) or ("" if len(lines) == 2 else "a process never started")


def _verdict(descriptor: int, until_s: float) -> dict[str, Any]:
    left_s = until_s - time.monotonic()
    if left_s > 0 and select.select([descriptor], [], [], left_s)[0]:
        try:
            return receive(descriptor)
        except WireError as error:
            why = f"what it returned ended the process of the tests: {error}"
            return {"outcome": "unreadable", "detail": why, "calls": 0}
    return {"outcome": "timed_out", "detail": "no verdict in time", "calls": 0}


def _end(child: int) -> int:
    """Kill a child and reap it; the signal that ended it before that, else 0.

    As process 1 of its namespace it takes everything in it along.
    """
    found, status = os.waitpid(child, os.WNOHANG)
    if not found:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        return 0
    return os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0


def _end_orphans() -> None:
    """Kill whatever else has become a child of this process (it is a subreaper)."""
    for _ in range(10_000):
        children = _children()
        if not children:
            return
        for child in children:
            os.kill(child, signal.SIGKILL)
        for child in children:
            os.waitpid(child, 0)


def _children() -> list[int]:
    try:
        with open(f"/proc/self/task/{os.getpid()}/children") as listed:
            return [int(one) for one in listed.read().split()]
    except OSError:
        return []
