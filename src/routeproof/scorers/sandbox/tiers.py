"""How strongly a program is held, and the way in.

===  ============================================================================
T3   T2 in its own PID, network, IPC, host-name and mount namespaces
T2   another user (when root), no capabilities, limits, Landlock, a call filter
T1   another user and limits; needs root
T0   limits only
===  ============================================================================

T3 and T2 stop everything the self-test tries. T1 and T0 do not (network, files that
everybody may read) and are used only when somebody asks for them by name.
"""

import os
import resource
import sys
import sysconfig
from dataclasses import dataclass
from functools import cache
from typing import Literal

from routeproof.scorers.sandbox import kernel, landlock, seccomp
from routeproof.scorers.sandbox.late_import import finders

Tier = Literal["T3", "T2", "T1", "T0"]
TIERS: tuple[Tier, ...] = ("T3", "T2", "T1", "T0")
STRONG: frozenset[Tier] = frozenset({"T3", "T2"})
NOBODY = 65534


@dataclass(frozen=True, slots=True)
class Limits:
    """What one program may use.

    Attributes:
        wall_s: From start to verdict.
        memory_bytes: Address space.
        file_bytes: Size of any one file.
        descriptors: Open files.
        threads: Threads of its user; not counted for root.
    """

    wall_s: float = 10.0
    memory_bytes: int = 1 << 29
    file_bytes: int = 1 << 20
    descriptors: int = 64
    threads: int = 128


@cache
def standard_library() -> str:
    """Directory of this interpreter's standard library."""
    return sysconfig.get_path("stdlib")


@cache
def readable_places() -> tuple[str, ...]:
    """Directories a program needs: the standard library and shared libraries."""
    stdlib = {standard_library(), sysconfig.get_path("platstdlib")}
    system = {"/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/share/zoneinfo"}
    system |= {"/dev/null", "/dev/zero", "/dev/urandom", "/dev/random"}
    return tuple(sorted(p for p in stdlib | system if p and os.path.exists(p)))


def enter_namespaces() -> None:
    """Leave the host's network, IPC, host name and mounts. For the cell, once.

    Raises:
        OSError: Not permitted here.
    """
    flags = (
        kernel.CLONE_NEWNET
        | kernel.CLONE_NEWIPC
        | kernel.CLONE_NEWUTS
        | kernel.CLONE_NEWNS
        | kernel.CLONE_NEWCGROUP
    )
    try:
        kernel.unshare(flags)
    except PermissionError:
        uid, gid = os.getuid(), os.getgid()
        kernel.unshare(flags | kernel.CLONE_NEWUSER)
        _write("/proc/self/setgroups", "deny")
        _write("/proc/self/uid_map", f"{uid} {uid} 1")
        _write("/proc/self/gid_map", f"{gid} {gid} 1")
    kernel.make_mounts_private()


def _write(path: str, text: str) -> None:
    with open(path, "w") as file:
        file.write(text)


def throw_away() -> None:
    """Go on as process 1 of a namespace that ends, mounts and all, with this process.

    The process that was asked stays behind only to pass the end on.

    Raises:
        OSError: Not permitted here.
    """
    enter_namespaces()
    child = fork_in_namespace()
    if child:
        os.close(0)
        os.close(1)
        os.waitpid(child, 0)
        os._exit(0)
    kernel.prctl(kernel.PR_SET_PDEATHSIG, 9)


def fork_in_namespace() -> int:
    """``os.fork`` whose child is process 1 of a new PID namespace.

    Where a process may not come back to its own PID namespace (it owns a user
    namespace only), a relay between the two is forked and its id returned: it ends
    with the child, and the child with it.

    Raises:
        OSError: Not permitted here.
    """
    own = os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
    try:
        try:
            kernel.set_pid_namespace(own)
        except PermissionError:
            return _fork_behind_relay()
        kernel.unshare(kernel.CLONE_NEWPID)
        child = os.fork()
        if child:
            kernel.set_pid_namespace(own)
        return child
    finally:
        os.close(own)


def _fork_behind_relay() -> int:
    relay = os.fork()
    if relay:
        return relay
    try:
        kernel.unshare(kernel.CLONE_NEWPID)
        child = os.fork()
    except OSError:
        os._exit(1)
    if child == 0:
        return 0
    os.closerange(0, 1 << 16)
    status = os.waitpid(child, 0)[1]
    if os.WIFSIGNALED(status):
        os.kill(os.getpid(), os.WTERMSIG(status))
    os._exit(os.WEXITSTATUS(status) if os.WIFEXITED(status) else 1)


def confine(tier: Tier, limits: Limits) -> None:
    """Hold this process at a tier from now on. There is no way back.

    The working directory becomes the standard library's, and imports are relative to
    it (see ``late_import``).

    Raises:
        OSError: The kernel refuses a part of it: the program must not run.
    """
    os.chdir(standard_library())
    sys.path[:] = []
    sys.meta_path[:] = finders()
    _limit(limits)
    if tier in STRONG:
        kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
        landlock.restrict(readable_places())
    if tier != "T0":
        _become_nobody()
    kernel.prctl(kernel.PR_SET_PDEATHSIG, 9)
    if tier in STRONG:
        kernel.drop_capabilities()
        seccomp.install()


def _become_nobody() -> None:
    if os.geteuid() == 0:
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)


def _limit(limits: Limits) -> None:
    cpu_s = int(limits.wall_s) + 2
    for what, value in (
        (resource.RLIMIT_CPU, cpu_s),
        (resource.RLIMIT_AS, limits.memory_bytes),
        (resource.RLIMIT_DATA, limits.memory_bytes),
        (resource.RLIMIT_FSIZE, limits.file_bytes),
        (resource.RLIMIT_NOFILE, limits.descriptors),
        (resource.RLIMIT_NPROC, limits.threads),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(what, (value, value))


def survey() -> dict[str, bool]:
    """What this machine has of the sandbox's parts, tried in child processes.

    To be called in a process of its own: it forks.

    Returns:
        ``root``, ``filters`` (Landlock and seccomp), ``namespaces``.
    """
    has_filters = landlock.abi() >= 1 and seccomp.is_available()
    return {
        "root": os.geteuid() == 0,
        "filters": has_filters,
        "namespaces": _has_namespaces(),
    }


def _has_namespaces() -> bool:
    child = os.fork()
    if child:
        return os.waitpid(child, 0)[1] == 0
    status = 1
    try:
        enter_namespaces()
        inner = fork_in_namespace()
        status = os.waitpid(inner, 0)[1] if inner else 0
    finally:
        os._exit(1 if status else 0)
