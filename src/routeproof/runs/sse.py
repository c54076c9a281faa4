"""Server-sent events by the specification, read after the response has ended.

https://html.spec.whatwg.org/multipage/server-sent-events.html, section 9.2.6. Lines
end with CR, LF or CRLF and with nothing else (not U+2028, not U+0085); bytes become
text only when an event is whole, so UTF-8 may be split anywhere. One deviation, on
purpose: data that is not followed by a blank line before the stream ends is still an
event, because engines do end that way.
"""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

_LINE_END = re.compile(rb"\r\n|\r|\n")
_BOM = b"\xef\xbb\xbf"


class Event(NamedTuple):
    """One event.

    Attributes:
        data: The data lines joined by LF, still bytes.
        name: The ``event:`` field; empty when absent.
        read: Index of the socket read that completed it.
    """

    data: bytes
    name: bytes
    read: int


def events(pieces: Sequence[bytes]) -> Iterator[Event]:
    """The events of one response body.

    Args:
        pieces: The body as it came, one item per socket read.

    Yields:
        Events with data, in order. Comments, ``id:``, ``retry:`` and unknown fields
        are passed over, as are events without data (unless they have a name: an
        ``event: error`` alone still says something).
    """
    body = b"".join(pieces)
    start = len(_BOM) if body.startswith(_BOM) else 0
    blocks = _blocks_with_cr(body, start) if b"\r" in body else _blocks(body, start)
    read, covered = 0, len(pieces[0]) if pieces else 0
    for block, last in blocks:
        while covered <= last and read + 1 < len(pieces):
            read += 1
            covered += len(pieces[read])
        if block.startswith(b"data: ") and b"\n" not in block:
            yield Event(block[6:], b"", read)
            continue
        event = _event(block, read)
        if event is not None:
            yield event


def _blocks(body: bytes, start: int) -> Iterator[tuple[bytes, int]]:
    """Text between blank lines, with the place of the byte that completes it."""
    end = len(body)
    while start < end:
        found = body.find(b"\n\n", start)
        if found < 0:
            yield body[start:], end - 1
            return
        yield body[start:found], found + 1
        start = found + 2


def _blocks_with_cr(body: bytes, start: int) -> Iterator[tuple[bytes, int]]:
    lines: list[bytes] = []
    for match in _LINE_END.finditer(body, start):
        if match.start() > start:
            lines.append(body[start : match.start()])
        elif lines:
            # A CR alone ends the blank line; its LF may come later or never.
            yield b"\n".join(lines), match.start()
            lines = []
        start = match.end()
    if start < len(body):
        lines.append(body[start:])
    if lines:
        yield b"\n".join(lines), len(body) - 1


def _event(block: bytes, read: int) -> Event | None:
    data: list[bytes] = []
    name = b""
    for line in block.split(b"\n"):
        field, colon, _ = line.partition(b":")
        if field == b"data":
            data.append(_value(line, 5) if colon else b"")
        elif field == b"event":
            name = _value(line, 6) if colon else b""
    if not data and not name:
        return None
    return Event(b"\n".join(data), name, read)


def _value(line: bytes, at: int) -> bytes:
    return line[at + 1 :] if line[at : at + 1] == b" " else line[at:]
