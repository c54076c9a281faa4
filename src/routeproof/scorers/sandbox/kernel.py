"""The few calls into the kernel that Python does not offer, by ctypes."""

import ctypes
import os
import platform

from routeproof.scorers.sandbox.syscall_numbers import OWN, numbers

PR_SET_PDEATHSIG = 1
PR_SET_NAME = 15
PR_SET_NO_NEW_PRIVS = 38
PR_SET_CHILD_SUBREAPER = 36
MS_REC = 0x4000
MS_PRIVATE = 1 << 18
CLONE_NEWNS = 0x00020000
CLONE_NEWCGROUP = 0x02000000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000
_CAPABILITY_VERSION_3 = 0x20080522

_libc = ctypes.CDLL(None, use_errno=True)


def _checked(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def own_call(name: str, *arguments: object) -> int:
    """One of the sandbox's own system calls, by name.

    Raises:
        OSError: The kernel refuses, or does not have it.
        KeyError: The machine is not known.
    """
    number = numbers(OWN, platform.machine())[name]
    call = _libc.syscall
    call.restype = ctypes.c_long
    return _checked(call(ctypes.c_long(number), *arguments), name)


def prctl(option: int, value: int = 0) -> None:
    """``prctl(option, value)``.

    Raises:
        OSError: The kernel refuses.
    """
    zero = ctypes.c_ulong(0)
    result = _libc.prctl(option, ctypes.c_ulong(value), zero, zero, zero)
    _checked(result, "prctl")


def unshare(flags: int) -> None:
    """``unshare(flags)``.

    Raises:
        OSError: Not permitted here, or not built into the kernel.
    """
    _checked(_libc.unshare(ctypes.c_int(flags)), "unshare")


def set_pid_namespace(descriptor: int) -> None:
    """Put later children into the PID namespace behind ``descriptor``.

    Raises:
        OSError: Not permitted here.
    """
    _checked(_libc.setns(descriptor, ctypes.c_int(CLONE_NEWPID)), "setns")


def make_mounts_private() -> None:
    """Keep later mounts of this mount namespace inside of it.

    Raises:
        OSError: Not permitted here.
    """
    flags = ctypes.c_ulong(MS_REC | MS_PRIVATE)
    _checked(_libc.mount(None, b"/", None, flags, None), "mount")


def drop_capabilities() -> None:
    """Give up every capability.

    Raises:
        OSError: The kernel refuses.
    """
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    own_call("capset", header, (ctypes.c_uint32 * 6)())
