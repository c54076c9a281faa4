"""The usual stream, read the short way.

Nearly every stream is ``data: {...}`` lines between blank lines, nearly every chunk
of it says one thing: here is more text, or more reasoning, of the only choice; and
nearly all of those chunks differ in that text alone. So a first one is decoded and
proved to be such, and the others are cut where it would end and begin again, many at
once, which costs a tenth of decoding them. Whatever is of another kind is decoded, and
what is more than text is handed, event by event, to the general readers (``runs.sse``,
``runs.said``); nothing is guessed here.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, groupby, repeat
from operator import itemgetter
from typing import Any, NamedTuple

import msgspec

from routeproof.runs.said import Said

_START = b"data: "
_BLANK = b"\n\n"
_BETWEEN = _BLANK + _START
_FRAME_BYTES = len(_BETWEEN)
_EVENTS_PER_BATCH = 256
_MOST_READS_AT_ONCE = 4096
"""A longer stream is read in batches, so that others get their turn."""

_FEW = 4
"""Fewer events than this are not worth the short way."""

_KEYS = tuple(
    f'"{name}":{space}"'.encode()
    for name in ("content", "text", "reasoning_content", "reasoning")
    for space in ("", " ")
)
_NOT_PLAIN = re.compile(rb'["\\\x00-\x09\x0b-\x1f]')
"""Bytes that may not stand in a JSON string as they are, but for LF, which joins."""


class _Delta(msgspec.Struct, gc=False):
    content: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    text: Any = None
    tool_calls: Any = None
    function_call: Any = None
    refusal: Any = None


class _Choice(msgspec.Struct, gc=False):
    delta: _Delta | None = None
    text: str | None = None
    index: int | None = None
    finish_reason: Any = None
    logprobs: Any = None
    token_ids: Any = None
    message: Any = None
    content: Any = None
    reasoning_content: Any = None
    reasoning: Any = None
    tool_calls: Any = None
    function_call: Any = None
    refusal: Any = None


class _Chunk(msgspec.Struct, gc=False):
    choices: list[_Choice]
    usage: Any = None
    error: Any = None
    object: Any = None


_decode_batch = msgspec.json.Decoder(list[_Chunk]).decode
_decode_one = msgspec.json.Decoder(_Chunk).decode
_decode_text = msgspec.json.Decoder(str).decode


class Text(NamedTuple):
    """What a chunk of text says.

    Attributes:
        is_visible: Text rather than reasoning.
    """

    text: str
    is_visible: bool


class Template(NamedTuple):
    """What stands before and after the text of a chunk, and which kind it is."""

    before: bytes
    after: bytes
    is_visible: bool


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
        template = _template(payloads)
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
    texts = _all_texts(events, framed)
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
            template = _template(some) or template
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
        texts = _all_texts(payloads[first:end], template)
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
    for is_visible, run in groupby(_each_text(payloads, template), key=_kind):
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


def _decoded(payloads: Sequence[bytes]) -> Sequence[_Chunk | None]:
    """The events decoded at once; all ``None`` if one is odd."""
    whole = payloads[:-1] if payloads[-1] == b"[DONE]" else payloads
    missing: list[_Chunk | None] = [None] * (len(payloads) - len(whole))
    try:
        chunks = _decode_batch(b"[%b]" % b",".join(whole))
    except (msgspec.DecodeError, RecursionError):
        return [None] * len(payloads)
    if len(chunks) != len(whole):
        return [None] * len(payloads)
    return [*chunks, *missing]


def _template(payloads: Sequence[bytes]) -> Template | None:
    """From the first chunk that is just text, proved by one more of its kind."""
    for payload in payloads[:_FEW]:
        for key in _KEYS:
            start = payload.find(key) + len(key)
            end = payload.find(b'"', start)
            if start < len(key) or end <= start:
                continue
            found = _proved(payload[:start], payload[start:end], payload[end:])
            if found is not None:
                return found
    return None


def _proved(before: bytes, text: bytes, after: bytes) -> Template | None:
    """A template, if the text of the chunk is what stands between."""
    if _NOT_PLAIN.search(text) or b"\n" in text:
        return None
    try:
        same = _text_alone(_decode_one(before + text + after))
        more = _text_alone(_decode_one(before + b"~" + text + after))
        if same is None or more is None or same.text != text.decode():
            return None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    is_text = more == (f"~{same.text}", same.is_visible)
    return Template(before, after, same.is_visible) if is_text else None


def _all_texts(payloads: Sequence[bytes], template: Template) -> list[str] | None:
    """Texts of events that all differ from the template in their text alone.

    ``None`` when it is not so: a text that hides another chunk has a quote in it.
    """
    before, after, _ = template
    if (
        not payloads
        or min(map(len, payloads)) <= len(before) + len(after)
        or not all(map(bytes.startswith, payloads, repeat(before)))
        or not all(map(bytes.endswith, payloads, repeat(after)))
    ):
        return None
    cut = list(map(itemgetter(slice(len(before), -len(after))), payloads))
    joined = b"\n".join(cut)
    try:
        if _NOT_PLAIN.search(joined):
            # Between the quotes of the template stands one JSON string, or an error.
            return [_decode_text(b'"%b"' % text) for text in cut]
        texts = joined.decode().split("\n")
    except (UnicodeDecodeError, msgspec.DecodeError):
        return None
    return texts if len(texts) == len(payloads) else None


def _each_text(
    payloads: Sequence[bytes], template: Template | None
) -> list[Text | None]:
    """What each event says if it is text alone: cut out where that is safe."""
    texts = [None if template is None else _cut(one, template) for one in payloads]
    others = [one for one, text in zip(payloads, texts, strict=True) if text is None]
    if not others:
        return texts
    decoded = map(_text_alone, _decoded(others))
    return [next(decoded) if text is None else text for text in texts]


def _cut(payload: bytes, template: Template) -> Text | None:
    before, after, is_visible = template
    start, end = len(before), len(payload) - len(after)
    if (
        end <= start
        or not payload.startswith(before)
        or not payload.endswith(after)
        or _NOT_PLAIN.search(payload, start, end)
    ):
        return None
    try:
        return Text(payload[start:end].decode(), is_visible)
    except UnicodeDecodeError:
        return None


def _text_alone(chunk: _Chunk | None) -> Text | None:
    """The text of a chunk that is text, or reasoning, of choice 0 and nothing else."""
    if chunk is None or len(chunk.choices) != 1:
        return None
    choice = chunk.choices[0]
    is_alone = (
        choice.finish_reason
        is choice.logprobs
        is choice.token_ids
        is choice.message
        is choice.content
        is choice.reasoning_content
        is choice.reasoning
        is choice.tool_calls
        is choice.function_call
        is choice.refusal
        is chunk.usage
        is chunk.error
        is None
    )
    if not is_alone or choice.index or chunk.object == "error":
        return None
    delta = choice.delta
    if delta is None:
        return Text(choice.text, is_visible=True) if choice.text else None
    is_alone = (
        choice.text
        is delta.text
        is delta.tool_calls
        is delta.function_call
        is delta.refusal
        is None
    )
    text, reasoning = delta.content, delta.reasoning_content or delta.reasoning
    if not is_alone or bool(text) is bool(reasoning):
        return None
    return Text(text or reasoning or "", bool(text))
