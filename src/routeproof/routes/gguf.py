"""The header of a GGUF file: what it says about its model and tokenizer.

Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md. Tensors are never
read, so a file of any size takes a moment.
"""

import struct
from pathlib import Path
from typing import Any, BinaryIO

from routeproof.errors import FormatError

MAGIC = b"GGUF"
MAX_TEXT_BYTES = 16 << 20
MAX_ENTRIES = 4 << 20

_STRING, _ARRAY = 8, 9
_SCALARS = {
    0: "<B",
    1: "<b",
    2: "<H",
    3: "<h",
    4: "<I",
    5: "<i",
    6: "<f",
    7: "<?",
    10: "<Q",
    11: "<q",
    12: "<d",
}


def read_header(path: Path) -> dict[str, Any]:
    """Key-value pairs of a GGUF file; arrays are lists.

    Raises:
        FormatError: It is no GGUF file, or a broken one.
    """
    try:
        with path.open("rb") as file:
            return _read(file, path)
    except OSError as error:
        raise FormatError(f"cannot be read ({error.strerror})", path=path) from None
    except (struct.error, UnicodeDecodeError, MemoryError):
        raise FormatError("is a broken or cut GGUF file", path=path) from None


def _read(file: BinaryIO, path: Path) -> dict[str, Any]:
    if file.read(4) != MAGIC:
        raise FormatError(
            "is not a GGUF file", path=path, hint="name a file that ends with .gguf"
        )
    version = _number(file, "<I")
    if not 2 <= version <= 3:
        raise FormatError(f"is GGUF version {version}; 2 and 3 are read", path=path)
    _number(file, "<Q")
    count = _number(file, "<Q")
    if count > MAX_ENTRIES:
        raise FormatError(f"claims {count} entries in its header", path=path)
    found = {}
    for _ in range(count):
        key = _text(file, path)
        found[key] = _value(file, _number(file, "<I"), path)
    return found


def _number(file: BinaryIO, layout: str) -> Any:
    return struct.unpack(layout, file.read(struct.calcsize(layout)))[0]


def _text(file: BinaryIO, path: Path) -> str:
    size = _number(file, "<Q")
    if size > MAX_TEXT_BYTES:
        raise FormatError(f"claims a text of {size} bytes", path=path)
    raw = file.read(size)
    if len(raw) < size:
        raise struct.error
    # Tokens are bytes of byte-level vocabularies now and then.
    return raw.decode("utf-8", errors="surrogateescape")


def _value(file: BinaryIO, kind: int, path: Path) -> Any:
    if kind in _SCALARS:
        return _number(file, _SCALARS[kind])
    if kind == _STRING:
        return _text(file, path)
    if kind != _ARRAY:
        raise FormatError(f"has a value of the unknown type {kind}", path=path)
    inner, size = _number(file, "<I"), _number(file, "<Q")
    if size > MAX_ENTRIES:
        raise FormatError(f"claims an array of {size} entries", path=path)
    if inner in _SCALARS:
        layout = _SCALARS[inner]
        width = struct.calcsize(layout)
        return list(struct.unpack(f"<{size}{layout[1]}", file.read(width * size)))
    return [_value(file, inner, path) for _ in range(size)]
