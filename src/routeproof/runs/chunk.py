"""The usual stream, read the short way.

Nearly every stream is ``data: {...}`` lines between blank lines, nearly every chunk
of it says one thing: here is more text, or more reasoning, of the only choice; and
nearly all of those chunks differ in that text alone. So a first one is decoded and
proved to be such, and the others are cut where it would end and begin again, many at
once, which costs a tenth of decoding them. Whatever is of another kind is decoded, and
what is more than text is handed, event by event, to the general readers (``runs.sse``,
``runs.said``); nothing is guessed here.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, groupby
from typing import NamedTuple

from routeproof.runs.said import Said
from routeproof.runs.texts import Template, Text, all_texts, each_text, template_of

_START = b"data: "
_BLANK = b"\n\n"
_BETWEEN = _BLANK + _START
_FRAME_BYTES = len(_BETWEEN)
_EVENTS_PER_BATCH = 256
_MOST_READS_AT_ONCE = 4096
"""A longer stream is read in batches, so that others get their turn."""

_FEW = 4
"""Fewer events than this are not worth the short way."""

To = tuple[Said, Callable[[bytes, int], bool]]
Events = tuple[Sequence[bytes], Sequence[int]]
"""Payloads, and the socket read that completed each."""


def read_usual(
    pieces: Sequence[bytes], said: Said, other: Callable[[bytes, int], bool]
) -> Iterator[None] | None:
    """Read a stream that is written in the usual way, in batches.

    Args:
        pieces: The body, one item per socket read.
        said: Takes the text.
        other: Takes payload and socket read of every event that is not just text;
            true ends the stream.

    Returns:
        ``None`` when any line is of another kind (comments, fields other than data,
        CR, no blank line at the end); otherwise an iterator that does the work and
        pauses after each batch.
    """
    middle = _middle(pieces)
    if middle is None:
        payloads = _payloads(pieces)
        if payloads is None:
            return None
        return _batches(payloads, _reads_of(payloads, pieces), (said, other))
    head, tail = pieces[: middle.first], pieces[middle.end :]
    begun, ended = _payloads(head), _payloads(tail)
    if begun is None or ended is None:
        return None
    ends_at = [read + middle.end for read in _reads_of(ended, tail)]
    around = ((begun, _reads_of(begun, head)), (ended, ends_at))
    return _around(middle, around, (said, other))


def read_events(
    payloads: Sequence[bytes],
    reads: Sequence[int],
    said: Said,
    other: Callable[[bytes, int], bool],
) -> bool:
    """Read a few events of a stream that is written in another way.

    Args:
        payloads: Their data, one line each.
        reads: Socket read that completed each.
        said: Takes the text.
        other: As for ``read_usual``.

    Returns:
        Whether the last event of the stream was among them.
    """
    template = template_of(payloads)
    span = (0, 0) if template is None else _span(payloads, template)
    return _add(payloads, reads, (template, span), (said, other))


def _payloads(pieces: Sequence[bytes]) -> list[bytes] | None:
    """Data of each event; ``None`` where a line is of another kind."""
    if not pieces:
        return []
    body = b"".join(pieces)
    if not body.startswith(_START) or not body.endswith(_BLANK) or b"\r" in body:
        return None
    payloads = body[len(_START) : -len(_BLANK)].split(_BETWEEN)
    return payloads if body.count(b"\n") == 2 * len(payloads) else None


class _Middle(NamedTuple):
    """Reads in a row that brought chunks of text and nothing else.

    Attributes:
        end: Of the last of them, itself not included.
        events: Each with what frames it.
        reads: Socket read of each event.
    """

    first: int
    end: int
    events: Sequence[bytes]
    reads: Sequence[int]
    texts: list[str]
    is_visible: bool


def _middle(pieces: Sequence[bytes]) -> _Middle | None:
    """Nearly always a read is an event, and then none has to be looked for."""
    if not _FEW <= len(pieces) <= _MOST_READS_AT_ONCE:
        return None
    for first in range(_FEW):
        payloads = _payloads(pieces[first : first + 1])
        if payloads is None or len(payloads) != 1:
            return None
        template = template_of(payloads)
        if template is not None:
            return _middle_of(pieces, first, template)
    return None


def _middle_of(
    pieces: Sequence[bytes], first: int, template: Template
) -> _Middle | None:
    before, after = _START + template.before, template.after + _BLANK
    end = len(pieces)
    while not (pieces[end - 1].startswith(before) and pieces[end - 1].endswith(after)):
        end -= 1
    framed = Template(before, after, template.is_visible)
    events, reads = _events_of(pieces[first:end], first, len(before) + len(after))
    texts = all_texts(events, framed)
    if texts is None:
        return None
    return _Middle(first, end, events, reads, texts, template.is_visible)


def _events_of(
    pieces: Sequence[bytes], first: int, frame_bytes: int
) -> tuple[Sequence[bytes], Sequence[int]]:
    """Events, each with its frame, of reads that may have brought several at once."""
    if max(map(len, pieces)) < 2 * frame_bytes:
        return pieces, range(first, first + len(pieces))
    events: list[bytes] = []
    reads: list[int] = []
    for read, piece in enumerate(pieces, start=first):
        several = len(piece) >= 2 * frame_bytes and _payloads((piece,)) or ()
        if len(several) < 2:
            events.append(piece)
            reads.append(read)
            continue
        events += [b"%b%b%b" % (_START, one, _BLANK) for one in several]
        reads += [read] * len(several)
    return events, reads


def _around(middle: _Middle, around: tuple[Events, Events], to: To) -> Iterator[None]:
    """What came before, the middle, what came after."""
    said, other = to
    begun, ended = around
    if _add_mixed(*begun, None, to):
        return
    if said.broken is None:
        said.add_texts(middle.texts, middle.reads, is_visible=middle.is_visible)
    else:
        for event, read in zip(middle.events, middle.reads, strict=True):
            other(event[len(_START) : -len(_BLANK)], read)
    yield
    _add_mixed(*ended, None, to)


def _reads_of(payloads: Sequence[bytes], pieces: Sequence[bytes]) -> list[int]:
    """Socket read that completed each event."""
    ends = list(accumulate(map(len, pieces)))
    whole = list(accumulate([len(payload) + _FRAME_BYTES for payload in payloads]))
    last = len(ends) - 1
    if ends[:last] == whole[:last]:
        # Nearly always a read is an event; the last one brings the end with it.
        return [*range(last), *[last] * (len(whole) - last)]
    reads, read = [], 0
    for end in whole:
        while ends[read] < end:
            read += 1
        reads.append(read)
    return reads


def _batches(payloads: Sequence[bytes], reads: Sequence[int], to: To) -> Iterator[None]:
    template: Template | None = None
    for at in range(0, len(payloads), _EVENTS_PER_BATCH):
        some = payloads[at : at + _EVENTS_PER_BATCH]
        some_reads = reads[at : at + _EVENTS_PER_BATCH]
        span = (0, 0) if template is None else _span(some, template)
        if span[0] == span[1]:
            template = template_of(some) or template
            span = (0, 0) if template is None else _span(some, template)
        if _add(some, some_reads, (template, span), to):
            return
        yield


def _span(payloads: Sequence[bytes], template: Template) -> tuple[int, int]:
    """From the first to the last event, end not included, that fits the template."""
    before, after, _ = template
    first, end = 0, len(payloads)
    while first < end and not payloads[first].startswith(before):
        first += 1
    while end > first and not payloads[end - 1].endswith(after):
        end -= 1
    return first, end


def _add(
    payloads: Sequence[bytes],
    reads: Sequence[int],
    known: tuple[Template | None, tuple[int, int]],
    to: To,
) -> bool:
    """Take a batch; true when it had the last event."""
    template, (first, end) = known
    said, _ = to
    texts = None
    if template is not None:
        texts = all_texts(payloads[first:end], template)
    if template is None or texts is None:
        return _add_mixed(payloads, reads, template, to)
    if _add_mixed(payloads[:first], reads[:first], None, to):
        return True
    if said.broken is not None:
        return _add_mixed(payloads[first:], reads[first:], None, to)
    said.add_texts(texts, reads[first:end], is_visible=template.is_visible)
    return _add_mixed(payloads[end:], reads[end:], None, to)


def _add_mixed(
    payloads: Sequence[bytes], reads: Sequence[int], template: Template | None, to: To
) -> bool:
    """Take events of several kinds; true when the last was among them."""
    said, other = to
    if len(payloads) < _FEW or said.broken is not None:
        return any(map(other, payloads, reads))
    at = 0
    for is_visible, run in groupby(each_text(payloads, template), key=_kind):
        found = list(run)
        end = at + len(found)
        if is_visible is not None and said.broken is None:
            texts = [text.text for text in found if text is not None]
            said.add_texts(texts, reads[at:end], is_visible=is_visible)
        elif any(map(other, payloads[at:end], reads[at:end])):
            return True
        at = end
    return False


def _kind(text: Text | None) -> bool | None:
    return None if text is None else text.is_visible
