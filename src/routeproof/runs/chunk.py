"""The usual stream, read the short way.

Nearly every stream is ``data: {...}`` lines between blank lines, nearly every chunk
of it says one thing: here is more text of the only choice; and nearly all of those
chunks differ in that text alone. So a first one is decoded and proved to be such, and
what is the same before and after the text is cut off from the others, which costs a
tenth of decoding them. Whatever is of another kind is decoded, and what is more than
text is handed, event by event, to the general readers (``runs.sse``, ``runs.said``);
nothing is guessed here.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, groupby
from typing import Any

import msgspec

from routeproof.runs.said import Said

_START = b"data: "
_BETWEEN = b"\n\n" + _START
_EVENTS_PER_BATCH = 128

_CONTENT_KEYS = (b'"content":"', b'"content": "')
_NOT_PLAIN = re.compile(rb'["\\\x00-\x09\x0b-\x1f]')
"""Bytes that may not stand in a JSON string as they are, but for LF, which joins."""


class _Delta(msgspec.Struct, gc=False):
    content: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    tool_calls: Any = None
    function_call: Any = None
    refusal: Any = None


class _Choice(msgspec.Struct, gc=False):
    delta: _Delta | None = None
    index: int | None = None
    finish_reason: Any = None
    logprobs: Any = None
    token_ids: Any = None


class _Chunk(msgspec.Struct, gc=False):
    choices: list[_Choice]
    usage: Any = None
    error: Any = None


_decode_batch = msgspec.json.Decoder(list[_Chunk]).decode
_decode_one = msgspec.json.Decoder(_Chunk).decode

Template = tuple[bytes, bytes]
"""What stands before and after the text of a chunk."""


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
    body = b"".join(pieces)
    if not body.startswith(_START) or not body.endswith(b"\n\n") or b"\r" in body:
        return None
    payloads = body[len(_START) : -2].split(_BETWEEN)
    line_ends = [piece.count(b"\n") for piece in pieces]
    if sum(line_ends) != 2 * len(payloads):
        return None
    return _batches(payloads, _reads_of(line_ends), (said, other))


def _reads_of(line_ends: Sequence[int]) -> list[int]:
    """Socket read that completed each event: each has two line ends, at its end."""
    last = len(line_ends) - 1
    if line_ends[:last].count(2) == last:
        return [*range(last), *[last] * (line_ends[last] // 2)]
    reads: list[int] = []
    for read, seen in enumerate(accumulate(line_ends)):
        if seen // 2 > len(reads):
            reads.extend([read] * (seen // 2 - len(reads)))
    return reads


def _batches(
    payloads: Sequence[bytes],
    reads: Sequence[int],
    to: tuple[Said, Callable[[bytes, int], bool]],
) -> Iterator[None]:
    template: Template | None = None
    for number in range(0, len(payloads), _EVENTS_PER_BATCH):
        some = payloads[number : number + _EVENTS_PER_BATCH]
        texts = None if template is None else _texts(some, template)
        if texts is None or None in texts[:1]:
            template = _template(some) or template
            texts = None if template is None else _texts(some, template)
        if _add(some, reads[number:], texts or [None] * len(some), to):
            return
        yield


def _add(
    payloads: Sequence[bytes],
    reads: Sequence[int],
    texts: Sequence[str | None],
    to: tuple[Said, Callable[[bytes, int], bool]],
) -> bool:
    """Take a batch, texts where they are known; true when it had the last event."""
    said, other = to
    at = 0
    for is_known, run in groupby(texts, key=lambda text: text is not None):
        known = list(run)
        end = at + len(known)
        if is_known and said.broken is None:
            said.add_texts([text for text in known if text is not None], reads[at:end])
        elif _decode_and_add(payloads[at:end], reads[at:end], (said, other)):
            return True
        at = end
    return False


def _decode_and_add(
    payloads: Sequence[bytes],
    reads: Sequence[int],
    to: tuple[Said, Callable[[bytes, int], bool]],
) -> bool:
    said, other = to
    texts: list[str] = []
    text_reads: list[int] = []
    for payload, read, chunk in zip(payloads, reads, _decoded(payloads), strict=True):
        text = None if chunk is None else _text_alone(chunk)
        if text is not None and said.broken is None:
            texts.append(text)
            text_reads.append(read)
        else:
            said.add_texts(texts, text_reads)
            texts, text_reads = [], []
            if other(payload, read):
                return True
    said.add_texts(texts, text_reads)
    return False


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
    for payload in payloads[:4]:
        for key in _CONTENT_KEYS:
            start = payload.find(key) + len(key)
            end = payload.find(b'"', start)
            if start < len(key) or end < 0:
                continue
            before, text, after = payload[:start], payload[start:end], payload[end:]
            if _NOT_PLAIN.search(text) or b"\n" in text:
                continue
            try:
                same = _text_alone(_decode_one(payload)) == text.decode()
                more = _text_alone(_decode_one(before + b"~" + text + after))
                if same and more == f"~{text.decode()}":
                    return before, after
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                continue
    return None


def _texts(payloads: Sequence[bytes], template: Template) -> list[str | None] | None:
    """Text of each event that differs from the template in its text alone.

    ``None`` for the others, and for a text with escapes; ``None`` for all of them when
    no text can be read so.
    """
    before, after = template
    start, tail = len(before), -len(after)
    least = start + len(after)
    found = [
        payload[start:tail]
        if len(payload) > least
        and payload.startswith(before)
        and payload.endswith(after)
        else None
        for payload in payloads
    ]
    plain = [text for text in found if text is not None]
    joined = b"\n".join(plain)
    if _NOT_PLAIN.search(joined):
        found = [
            None if text is None or _NOT_PLAIN.search(text) else text for text in found
        ]
        joined = b"\n".join(text for text in found if text is not None)
    try:
        texts = iter(joined.decode().split("\n"))
    except UnicodeDecodeError:
        return None
    return [None if text is None else next(texts) for text in found]


def _text_alone(chunk: _Chunk) -> str | None:
    """The text of a chunk that is text of choice 0 and nothing else."""
    choices = chunk.choices
    if len(choices) != 1:
        return None
    choice = choices[0]
    delta = choice.delta
    if delta is None or not delta.content or choice.index:
        return None
    is_alone = (
        choice.finish_reason
        is choice.logprobs
        is choice.token_ids
        is delta.reasoning_content
        is delta.reasoning
        is delta.tool_calls
        is delta.function_call
        is delta.refusal
        is chunk.usage
        is chunk.error
        is None
    )
    return delta.content if is_alone else None
