"""What a hostile program would try, as programs; each says ``blocked`` or what it got.

They run inside a throw-away namespace: one that succeeded could otherwise touch the
host. Those that only look (``HARMLESS``) may run without one.
"""

_CALL = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
def refused(*arguments):
    ctypes.set_errno(0)
    result = libc.syscall(*[ctypes.c_long(a) if isinstance(a, int) else a
                            for a in arguments])
    return result == -1 and ctypes.get_errno() in (1, 13, 38)
"""

_OPENERS = """
def opens(paths, mode):
    for path in paths:
        try:
            open(path, mode).close()
            return path
        except OSError:
            pass
    return None
"""

_SOCKET = """
def reached(family, kind, act):
    import socket
    try:
        act(socket.socket(getattr(socket, family), getattr(socket, kind)))
        return "open"
    except PermissionError:
        return "blocked"
    except OSError as error:
        return "open: " + str(error)
"""

PROBES: dict[str, str] = {
    "reading secrets": _OPENERS
    + """
def probe():
    found = opens(["/etc/passwd", "/etc/hostname", "/etc/shadow", "/proc/self/environ",
                   "/proc/1/cmdline", "/sys/kernel/notes"], "rb")
    return found or "blocked"
""",
    "listing directories": """
import os
def probe():
    for path in ("/", "/tmp", "/etc", "/proc", "/home", "/root"):
        try:
            return "open: " + str(os.listdir(path)[:1])
        except OSError:
            pass
    return "blocked"
""",
    "writing outside": _OPENERS
    + """
def probe():
    places = ["/tmp", "/var/tmp", "/dev/shm", ".", "/run", "/mnt", "/root"]
    return opens([place + "/routeproof-probe" for place in places], "ab") or "blocked"
""",
    "TCP": _SOCKET
    + """
def probe():
    return reached("AF_INET", "SOCK_STREAM", lambda s: s.connect(("127.0.0.1", 9)))
""",
    "UDP": _SOCKET
    + """
def probe():
    return reached("AF_INET", "SOCK_DGRAM", lambda s: s.sendto(b"x", ("127.0.0.1", 9)))
""",
    "unix sockets": _SOCKET
    + """
def probe():
    return reached("AF_UNIX", "SOCK_STREAM", lambda s: s.connect("\\0routeproof-probe"))
""",
    "signals": """
import os
def probe():
    for target in (os.getppid(), 1, 2, -1):
        if target == os.getpid() or target == 0:
            continue
        try:
            os.kill(target, 0)
            return "open: " + str(target)
        except OSError:
            pass
    return "blocked"
""",
    "signals by way of a file": """
import fcntl, os
def probe():
    reads, writes = os.pipe()
    for command in (8, 10, 15):
        try:
            fcntl.fcntl(reads, command, os.getppid() or 1)
            return "open: fcntl %d" % command
        except (OSError, ValueError):
            pass
    return "blocked"
""",
    "limits of others": """
import os, resource
def probe():
    for target in (os.getppid() or 1, 1, 2):
        if target != os.getpid():
            try:
                resource.prlimit(target, resource.RLIMIT_NOFILE)
                return "open: prlimit %d" % target
            except OSError:
                pass
    return "blocked"
""",
    "tracing": _CALL
    + """
def probe():
    seize, target = 0x4206, os.getppid() or 1
    trace = 101 if os.uname().machine == "x86_64" else 117
    read = 310 if os.uname().machine == "x86_64" else 270
    if not refused(trace, seize, target, 0, 0):
        return "open: ptrace"
    if not refused(read, target, 0, 0, 0, 0, 0):
        return "open: process_vm_readv"
    try:
        open("/proc/%d/mem" % target, "rb").close()
        return "open: mem"
    except OSError:
        return "blocked"
""",
    "mounting": _CALL
    + """
def probe():
    libc.mount.restype = ctypes.c_int
    if libc.mount(b"none", b"/mnt", b"tmpfs", ctypes.c_ulong(0), None) == 0:
        return "open: mount"
    try:
        os.chroot(".")
        return "open: chroot"
    except OSError:
        return "blocked"
""",
    "nested namespaces": _CALL
    + """
def probe():
    for flag in (0x10000000, 0x00020000, 0x20000000, 0x40000000):
        if libc.unshare(ctypes.c_int(flag)) == 0:
            return "open: unshare %x" % flag
    return "blocked"
""",
    "fork bomb": """
import os
def probe():
    for count in range(400):
        try:
            child = os.fork()
        except OSError:
            return "blocked"
        if child == 0:
            os._exit(0)
    return "open: 400 forks"
""",
    "running other programs": """
import os
def probe():
    try:
        os.execv("/bin/true", ["true"])
    except OSError:
        return "blocked"
""",
    "becoming root again": """
import os
def probe():
    for act in (os.setuid, os.seteuid, os.setgid):
        try:
            act(0)
            return "open: " + act.__name__
        except OSError:
            pass
    return "blocked"
""",
    "memory bomb": """
def probe():
    try:
        return "open: %d bytes" % len(bytearray(1 << 31))
    except MemoryError:
        return "blocked"
""",
    "file bomb": _CALL
    + """
def probe():
    memfd = 319 if os.uname().machine == "x86_64" else 279
    descriptor = libc.syscall(ctypes.c_long(memfd), b"x", ctypes.c_long(0))
    if descriptor < 0:
        return "blocked"
    import signal
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    written = 0
    try:
        while written < 1 << 26:
            written += os.write(descriptor, bytes(1 << 20))
    except OSError:
        return "blocked" if written <= 1 << 24 else "open"
    return "open: %d bytes" % written
""",
    "rare system calls": _CALL
    + """
def probe():
    x86 = os.uname().machine == "x86_64"
    calls = {"io_uring_setup": 425, "bpf": 321 if x86 else 280,
             "perf_event_open": 298 if x86 else 241, "keyctl": 250 if x86 else 219,
             "userfaultfd": 323 if x86 else 282, "shmget": 29 if x86 else 194,
             "pidfd_open": 434, "open_by_handle_at": 304 if x86 else 265,
             "name_to_handle_at": 303 if x86 else 264, "quotactl": 179 if x86 else 60,
             "setns": 308 if x86 else 268, "personality": 135 if x86 else 92}
    for name, number in calls.items():
        if not refused(number, 0, 0, 0, 0, 0):
            return "open: " + name
    return "blocked"
""",
}
"""Programs with a function ``probe`` that says ``blocked`` if it could do nothing."""

HARMLESS = frozenset(
    {
        "reading secrets",
        "listing directories",
        "TCP",
        "UDP",
        "unix sockets",
        "memory bomb",
        "becoming root again",
        "nested namespaces",
    }
)
"""Probes that change nothing outside of their own process when they succeed."""

CHEATS: dict[str, str] = {
    "forged standard output": """
import os, sys
def probe():
    os.write(1, b'{"outcome": "passed", "detail": "", "calls": 1}')
    print("passed")
    os._exit(0)
""",
    "hostile __eq__": """
class Always(int):
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __hash__(self): return 0
class Liar:
    __class__ = str
    def __eq__(self, other): return True
    def __ne__(self, other): return False
def probe():
    return Liar()
""",
    "hostile __eq__ of a subclass": """
class Always(str):
    def __eq__(self, other): return True
    def __str__(self): return "blocked"
    def __iter__(self): return iter("blocked")
    __hash__ = str.__hash__
def probe():
    return Always("wrong")
""",
    "forged verdict on every descriptor": """
import json, os, struct
def probe():
    data = json.dumps({"outcome": "passed", "detail": "", "calls": 1}).encode()
    for descriptor in range(64):
        try:
            os.write(descriptor, struct.pack("=I", len(data)) + data)
        except OSError:
            pass
    return "wrong"
""",
    "patched comparison": """
import builtins, sys
builtins.AssertionError = type("Never", (Exception,), {})
builtins.isinstance = lambda *a: True
def probe():
    return "wrong"
""",
}
"""Programs that are wrong and try to be counted as right."""

TESTS = """
def check(candidate):
    said = candidate()
    assert said == 'blocked', said
"""
"""The test each probe must pass, and each cheat must not."""
