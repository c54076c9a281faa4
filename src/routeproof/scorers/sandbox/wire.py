"""What crosses between the processes: framed canonical JSON of plain values.

Only values of known built-in types cross. A value of any other type arrives as an
``Opaque`` that equals nothing, so a class with a hostile ``__eq__`` never gets near a
comparison.
"""

import json
import os
import struct
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from types import GeneratorType
from typing import Any

MAX_FRAME_BYTES = 32 << 20
MAX_ITEMS = 100_000
"""Items taken from an iterator that a program returned."""

_LAZY = (map, filter, zip, enumerate, reversed, GeneratorType)
_SEQUENCES: tuple[tuple[Any, str], ...] = ((list, "l"), (tuple, "t"))
_SETS: tuple[tuple[Any, str], ...] = ((set, "s"), (frozenset, "f"))
_SAFE_INT = 2**53


class WireError(Exception):
    """A frame is broken, too large, or the other side has gone."""


class Opaque:
    """A value of a type that does not cross; equal to nothing, not even itself."""

    def __init__(self, name: str) -> None:
        self.name = name

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        return False

    def __repr__(self) -> str:
        return f"<{self.name}>"


def encode(value: Any) -> Any:
    """A value as canonical JSON data. Overridden methods of subclasses are not called.

    Raises:
        WireError: It refers to itself, nests too deeply, or holds too much.
    """
    try:
        return _encode(value)
    except RecursionError as error:
        raise WireError("the value nests too deeply, or refers to itself") from error


def _encode(value: Any) -> Any:
    kind = type(value)
    if value is None or value is True or value is False:
        return value
    if issubclass(kind, int):
        number = int.__add__(value, 0)
        return number if abs(number) < _SAFE_INT else ["i", hex(number)]
    if issubclass(kind, float):
        return ["n", float.hex(float.__add__(value, -0.0))]
    if issubclass(kind, str):
        return value if kind is str else "".join(str.__iter__(value))
    return _encode_container(value, kind)


def _encode_container(value: Any, kind: type) -> Any:
    for base, tag in _SEQUENCES:
        if issubclass(kind, base):
            return [tag, [_encode(one) for one in base.__iter__(value)]]
    for base, tag in _SETS:
        if issubclass(kind, base):
            items = [_encode(one) for one in base.__iter__(value)]
            return [tag, sorted(items, key=json.dumps)]
    if issubclass(kind, dict):
        return ["d", [[_encode(k), _encode(v)] for k, v in dict.items(value)]]
    if kind in _LAZY:
        return ["it", [_encode(one) for one in _bounded(value)]]
    encoder = _EXACT.get(kind)
    return encoder(value) if encoder else ["o", kind.__name__[:80]]


_EXACT: dict[type, Callable[[Any], list[Any]]] = {
    bytes: lambda value: ["b", value.hex()],
    bytearray: lambda value: ["B", value.hex()],
    complex: lambda value: ["c", value.real.hex(), value.imag.hex()],
    range: lambda value: ["r", value.start, value.stop, value.step],
    Decimal: lambda value: ["D", str(value)],
    Fraction: lambda value: ["F", str(value)],
}
"""Types that cross by themselves, subclasses excluded."""


def _bounded(items: Any) -> Iterator[Any]:
    for count, item in enumerate(items):
        if count >= MAX_ITEMS:
            raise WireError(f"an iterator gave more than {MAX_ITEMS} items")
        yield item


_DECODERS: dict[str, Any] = {
    "i": lambda hexadecimal: int(hexadecimal, 16),
    "n": float.fromhex,
    "l": lambda items: [decode(one) for one in items],
    "t": lambda items: tuple(decode(one) for one in items),
    "s": lambda items: {decode(one) for one in items},
    "f": lambda items: frozenset(decode(one) for one in items),
    "d": lambda pairs: {decode(k): decode(v) for k, v in pairs},
    "b": bytes.fromhex,
    "B": bytearray.fromhex,
    "it": lambda items: iter([decode(one) for one in items]),
    "c": lambda real, imag: complex(float.fromhex(real), float.fromhex(imag)),
    "r": range,
    "D": Decimal,
    "F": Fraction,
    "o": Opaque,
}


def decode(data: Any) -> Any:
    """The plain value behind canonical JSON data.

    Raises:
        WireError: The data is not what ``encode`` makes.
    """
    if not isinstance(data, list):
        if data is None or isinstance(data, bool | int | str):
            return data
        raise WireError("a value of no known form")
    try:
        return _DECODERS[data[0]](*data[1:])
    except WireError:
        raise
    except (ValueError, TypeError, KeyError, IndexError, ArithmeticError) as error:
        raise WireError(f"a value of no known form: {error}") from error
    except RecursionError as error:
        raise WireError("the value nests too deeply") from error


def send(descriptor: int, message: dict[str, Any]) -> None:
    """Write one frame.

    Raises:
        WireError: It is too large, or the other side has gone.
    """
    try:
        data = json.dumps(message).encode("ascii")
    except (ValueError, RecursionError) as error:
        raise WireError(f"cannot be sent: {error}") from error
    if len(data) > MAX_FRAME_BYTES:
        raise WireError(f"a value of {len(data)} bytes is too large")
    view = memoryview(struct.pack("=I", len(data)) + data)
    try:
        while view:
            view = view[os.write(descriptor, view) :]
    except OSError as error:
        raise WireError("the other side has gone") from error


def receive(descriptor: int) -> dict[str, Any]:
    """Read one frame; waits for it.

    Raises:
        WireError: End of file, a frame that is too large, or no JSON object.
    """
    size = struct.unpack("=I", _read(descriptor, 4))[0]
    if size > MAX_FRAME_BYTES:
        raise WireError(f"a frame of {size} bytes is too large")
    try:
        message = json.loads(_read(descriptor, size))
    except (ValueError, RecursionError) as error:
        raise WireError("a frame is not JSON") from error
    if not isinstance(message, dict):
        raise WireError("a frame is no object")
    return message


def _read(descriptor: int, size: int) -> bytes:
    parts = []
    while size:
        part = os.read(descriptor, min(size, 1 << 20))
        if not part:
            raise WireError("the other side has gone")
        parts.append(part)
        size -= len(part)
    return b"".join(parts)
