"""Landlock: which files may be read, and none may be written.

Constants from linux/landlock.h. Rights a kernel does not know are left out; what it
does know is refused everywhere but below the directories given.
"""

import ctypes
import os
import struct

from routeproof.scorers.sandbox.kernel import own_call

_CREATE_VERSION = 1
_RULE_PATH_BENEATH = 1
_RIGHTS_BY_ABI = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}
"""Number of file rights each ABI knows; later ones know 16."""
READ_FILE, READ_DIR = 1 << 2, 1 << 3
_NETWORK = 0b11
"""Bind and connect of TCP, from ABI 4."""
_SCOPE = 0b11
"""Abstract unix sockets and signals, from ABI 6."""


def abi() -> int:
    """Version of Landlock here; 0 when there is none."""
    try:
        return own_call(
            "landlock_create_ruleset",
            ctypes.c_void_p(None),
            ctypes.c_size_t(0),
            ctypes.c_uint32(_CREATE_VERSION),
        )
    except (OSError, KeyError):
        return 0


def restrict(readable: tuple[str, ...]) -> None:
    """Allow this process to read below ``readable``, and no other file access.

    Descriptors that are open stay usable. Needs ``no_new_privs``.

    Raises:
        OSError: The kernel refuses, or a directory cannot be opened.
    """
    version = abi()
    files = (1 << _RIGHTS_BY_ABI.get(version, 16)) - 1
    attributes = struct.pack("=Q", files)
    if version >= 4:
        attributes += struct.pack("=Q", _NETWORK)
    if version >= 6:
        attributes += struct.pack("=Q", _SCOPE)
    ruleset = own_call(
        "landlock_create_ruleset",
        ctypes.create_string_buffer(attributes, len(attributes)),
        ctypes.c_size_t(len(attributes)),
        ctypes.c_uint32(0),
    )
    try:
        for path in readable:
            _allow(ruleset, path)
        own_call("landlock_restrict_self", ctypes.c_int(ruleset), ctypes.c_uint32(0))
    finally:
        os.close(ruleset)


def _allow(ruleset: int, path: str) -> None:
    descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        is_directory = os.path.isdir(path)
        rights = READ_FILE | (READ_DIR if is_directory else 0)
        rule = struct.pack("=Qi", rights, descriptor)
        own_call(
            "landlock_add_rule",
            ctypes.c_int(ruleset),
            ctypes.c_int(_RULE_PATH_BENEATH),
            ctypes.create_string_buffer(rule, len(rule)),
            ctypes.c_uint32(0),
        )
    finally:
        os.close(descriptor)
