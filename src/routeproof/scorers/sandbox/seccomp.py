"""The filter of system calls: a short list is allowed, everything else refused.

No sockets, no new processes, no exec, no mounts, no namespaces, no tracing, no signals
to others, no shared memory, no io_uring, no keys, no bpf: they are not on the list.
"""

import ctypes
import os
import platform
import struct

from routeproof.scorers.sandbox.kernel import own_call
from routeproof.scorers.sandbox.syscall_numbers import (
    AUDIT_ARCH,
    CONDITIONAL,
    PLAIN,
    numbers,
)

_LOAD, _EQUAL, _SET, _GREATER, _RETURN = 0x20, 0x15, 0x45, 0x35, 0x06
ALLOW, ERRNO, KILL = 0x7FFF0000, 0x00050000, 0x80000000
EPERM, ENOTTY, ENOSYS = 1, 25, 38
_NUMBER, _MACHINE, _ARGUMENTS = 0, 4, 16
CLONE_THREAD = 0x00010000
TERMINAL_QUESTIONS = (0x5401, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451)
"""TCGETS, TIOCGWINSZ, FIONREAD, FIONBIO, FIONCLEX, FIOCLEX."""
FILE_CONTROLS = (0, 1, 2, 3, 4, 5, 6, 7, 1030, 1032)
"""F_DUPFD, F_GETFD, F_SETFD, F_GETFL, F_SETFL, the locks, F_DUPFD_CLOEXEC,
F_GETPIPE_SZ; not F_SETOWN and F_SETSIG, by which signals reach other processes."""
AF_UNIX = 1
SECCOMP_SET_MODE_FILTER = 1


def _step(code: int, k: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, k)


def _low(index: int) -> int:
    return _ARGUMENTS + 8 * index


def _when(number: int, body: list[bytes]) -> list[bytes]:
    """``body`` (which must return) for one call; falls through for the others."""
    return [_step(_EQUAL, number, 0, len(body)), *body]


def _if_argument(index: int, values: tuple[int, ...], otherwise: int) -> list[bytes]:
    steps = [_step(_LOAD, _low(index))]
    for value in values:
        steps += [_step(_EQUAL, value, 0, 1), _step(_RETURN, ALLOW)]
    return [*steps, _step(_RETURN, ERRNO | otherwise)]


def _conditional(own_pid: int, machine: str) -> list[bytes]:
    call = numbers(CONDITIONAL, machine)
    refuse = _step(_RETURN, ERRNO | EPERM)
    thread_only = [
        _step(_LOAD, _low(0)),
        _step(_SET, CLONE_THREAD, 0, 1),
        _step(_RETURN, ALLOW),
        refuse,
    ]
    no_address = [
        _step(_LOAD, _low(4)),
        _step(_EQUAL, 0, 0, 3),
        _step(_LOAD, _low(4) + 4),
        _step(_EQUAL, 0, 0, 1),
        _step(_RETURN, ALLOW),
        refuse,
    ]
    return [
        *_when(call["clone"], thread_only),
        *_when(call["clone3"], [_step(_RETURN, ERRNO | ENOSYS)]),
        *_when(call["kill"], _if_argument(0, (own_pid,), EPERM)),
        *_when(call["tgkill"], _if_argument(0, (own_pid,), EPERM)),
        *_when(call["fcntl"], _if_argument(1, FILE_CONTROLS, EPERM)),
        *_when(call["prlimit64"], _if_argument(0, (0, own_pid), EPERM)),
        *_when(call["ioctl"], _if_argument(1, TERMINAL_QUESTIONS, ENOTTY)),
        *_when(call["prctl"], _if_argument(0, (15,), EPERM)),
        *_when(call["socketpair"], _if_argument(0, (AF_UNIX,), EPERM)),
        *_when(call["sendto"], no_address),
    ]


def program(own_pid: int, machine: str) -> bytes:
    """The filter as BPF instructions.

    A call of another machine's numbering ends the process. ``clone`` is allowed for
    threads only; ``clone3``, whose flags a filter cannot read, is said not to exist,
    so that the C library falls back to ``clone``.

    Args:
        own_pid: The only process that may be sent a signal.
        machine: ``x86_64`` or ``aarch64``.

    Raises:
        KeyError: The machine is not known.
    """
    steps = [
        _step(_LOAD, _MACHINE),
        _step(_EQUAL, AUDIT_ARCH[machine], 1, 0),
        _step(_RETURN, KILL),
        _step(_LOAD, _NUMBER),
        _step(_GREATER, 0x40000000, 0, 1),
        _step(_RETURN, KILL),
    ]
    for number in sorted(numbers(PLAIN, machine).values()):
        steps += _when(number, [_step(_RETURN, ALLOW)])
    steps += _conditional(own_pid, machine)
    return b"".join([*steps, _step(_RETURN, ERRNO | EPERM)])


def is_available() -> bool:
    """True when this kernel and machine can filter system calls."""
    if platform.machine() not in AUDIT_ARCH:
        return False
    try:
        with open("/proc/sys/kernel/seccomp/actions_avail") as known:
            return "errno" in known.read()
    except OSError:
        return False


def install() -> None:
    """Filter this process from now on; needs ``no_new_privs`` to be set.

    Raises:
        OSError: The kernel refuses.
    """
    code = program(os.getpid(), platform.machine())
    buffer = ctypes.create_string_buffer(code, len(code))
    header = struct.pack("@HP", len(code) // 8, ctypes.addressof(buffer))
    holder = ctypes.create_string_buffer(header, len(header))
    mode = ctypes.c_ulong(SECCOMP_SET_MODE_FILTER)
    own_call(
        "seccomp", mode, ctypes.c_ulong(0), ctypes.c_void_p(ctypes.addressof(holder))
    )
