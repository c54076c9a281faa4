"""The usual stream, read the short way.

Nearly every stream is ``data: {...}`` lines between blank lines, and nearly every
chunk of it says one thing: here is more text of the only choice. Such streams are cut
and decoded in batches by C code. Whatever is of another kind is handed, event by
event, to the general readers (``runs.sse``, ``runs.said``); nothing is guessed here.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec
import numpy as np

from routeproof.runs.said import Said

_START = b"data: "
_BETWEEN = b"\n\n" + _START
_LF = 10
_EVENTS_PER_BATCH = 128


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
    if not body.startswith(_START) or b"\r" in body:
        return None
    breaks = np.flatnonzero(np.frombuffer(body, np.uint8) == _LF)
    ends = breaks[::2]
    is_usual = (
        len(breaks) > 0
        and len(breaks) % 2 == 0
        and breaks[-1] == len(body) - 1
        and np.array_equal(ends + 1, breaks[1::2])
        and body.count(_BETWEEN) == len(ends) - 1
    )
    if not is_usual:
        return None
    covered = np.cumsum([len(piece) for piece in pieces])
    reads = np.searchsorted(covered, ends + 1, side="right").tolist()
    return _batches(body, ends.tolist(), reads, (said, other))


def _batches(
    body: bytes,
    ends: list[int],
    reads: list[int],
    to: tuple[Said, Callable[[bytes, int], bool]],
) -> Iterator[None]:
    said, other = to
    cut, first = len(_START), 0
    for number in range(0, len(ends), _EVENTS_PER_BATCH):
        some = ends[number : number + _EVENTS_PER_BATCH]
        chunks = _decoded(body, first + cut, some)
        texts: list[str] = []
        text_reads: list[int] = []
        for end, read, chunk in zip(some, reads[number:], chunks, strict=False):
            text = None if chunk is None else _text_alone(chunk)
            if text is not None and said.broken is None:
                texts.append(text)
                text_reads.append(read)
            else:
                said.add_texts(texts, text_reads)
                texts, text_reads = [], []
                if other(body[first + cut : end], read):
                    return
            first = end + 2
        said.add_texts(texts, text_reads)
        yield


def _decoded(body: bytes, start: int, ends: list[int]) -> Sequence[_Chunk | None]:
    """Events from ``start`` to the last of ``ends``; all ``None`` if one is odd."""
    payloads = body[start : ends[-1]].removesuffix(_BETWEEN + b"[DONE]")
    try:
        chunks = _decode_batch(b"[%b]" % payloads.replace(_BETWEEN, b","))
    except (msgspec.DecodeError, RecursionError):
        return [None] * len(ends)
    missing = len(ends) - len(chunks)
    is_whole = missing == 0 or (missing == 1 and body[: ends[-1]].endswith(b"[DONE]"))
    return [*chunks, *[None] * missing] if is_whole else [None] * len(ends)


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
