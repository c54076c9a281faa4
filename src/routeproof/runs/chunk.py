"""The usual stream, read the short way.

Nearly every stream is ``data: {...}`` lines between blank lines, and nearly every
chunk of it says one thing: here is more text of the only choice. Such streams are cut
and decoded in batches by C code. Whatever is of another kind is handed, event by
event, to the general readers (``runs.sse``, ``runs.said``); nothing is guessed here.
"""

from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any

import msgspec
import numpy as np

_START = b"data: "
_BETWEEN = b"\n\n" + _START
_EVENTS_PER_BATCH = 64


class _Delta(msgspec.Struct, gc=False):
    content: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    tool_calls: Any = None
    function_call: Any = None
    refusal: Any = None
    text: Any = None


class _Choice(msgspec.Struct, gc=False):
    delta: _Delta | None = None
    index: int | None = None
    text: Any = None
    finish_reason: Any = None
    logprobs: Any = None
    token_ids: Any = None


class Chunk(msgspec.Struct, gc=False):
    """What can matter of a chunk."""

    choices: list[_Choice]
    usage: Any = None
    error: Any = None


Batches = Iterator[tuple[list[bytes], list[int], Sequence[Chunk | None]]]
"""Payloads, the read that completed each, and each decoded (``None``: unusual)."""

_decode_batch = msgspec.json.Decoder(list[Chunk]).decode


def plain_batches(
    pieces: Sequence[bytes],
) -> Batches | None:
    """The events of a stream that is written in the usual way.

    Args:
        pieces: The body, one item per socket read.

    Returns:
        ``None`` when any line is of another kind (comments, fields other than data,
        CR); otherwise batches of payloads, the read that completed each, and each
        decoded, or ``None`` where a payload of the batch is not a usual chunk.
    """
    body = b"".join(pieces)
    if not body.startswith(_START) or b"\r" in body:
        return None
    blocks = body.split(b"\n\n")
    if blocks[-1] == b"":
        blocks.pop()
    lines = body.count(b"\n") - (2 if body.endswith(b"\n\n") else 0)
    between = len(blocks) - 1
    if body.count(_BETWEEN) != between or lines != 2 * between:
        return None
    return _batches(blocks, _reads(blocks, pieces))


def _reads(blocks: Sequence[bytes], pieces: Sequence[bytes]) -> list[int]:
    """For each block, the read that holds the end of its blank line."""
    last = np.fromiter(map(len, blocks), np.int64, len(blocks)) + 2
    covered = np.array(list(accumulate(map(len, pieces))), dtype=np.int64)
    reads = np.searchsorted(covered, np.cumsum(last) - 1, side="right")
    return np.minimum(reads, len(pieces) - 1).tolist()  # type: ignore[no-any-return]


def _batches(blocks: Sequence[bytes], reads: list[int]) -> Batches:
    cut = len(_START)
    for start in range(0, len(blocks), _EVENTS_PER_BATCH):
        end = start + _EVENTS_PER_BATCH
        payloads = [block[cut:] for block in blocks[start:end]]
        yield payloads, reads[start:end], _decoded(payloads)


def _decoded(payloads: list[bytes]) -> Sequence[Chunk | None]:
    is_done = payloads[-1] == b"[DONE]"
    wanted = payloads[:-1] if is_done else payloads
    try:
        chunks: list[Chunk | None] = [*_decode_batch(b"[%b]" % b",".join(wanted))]
    except (msgspec.DecodeError, RecursionError):
        chunks = []
    if len(chunks) != len(wanted):
        return [None] * len(payloads)
    return [*chunks, None] if is_done else chunks


def plain_text(chunk: Chunk) -> str | None:
    """The text of a chunk that is text of choice 0 and nothing else."""
    choices = chunk.choices
    if len(choices) != 1:
        return None
    choice = choices[0]
    delta = choice.delta
    if (
        delta is None
        or not delta.content
        or choice.index
        or not (
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
    ):
        return None
    return delta.content
