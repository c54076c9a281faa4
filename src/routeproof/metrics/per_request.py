"""One part of a run to a few numbers per request, so that memory stays flat.

Lists (chunk times, token ids) and texts are used and dropped here: what is left of a
request is about 200 bytes, however long it was.
"""

import hashlib
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from routeproof.metrics.acceptance_requests import request_columns
from routeproof.metrics.histogram import LogHistogram
from routeproof.metrics.table import METRICS
from routeproof.metrics.timing import (
    IS_SERVED,
    first_bundle_tokens,
    gaps_of,
    output_tokens,
    served,
)
from routeproof.records.columns import Column, Records

Codes = NDArray[np.int64]

KEPT_TEXTS = (
    "arm",
    "phase",
    "level",
    "case_id",
    "outcome",
    "finish_reason",
    "fingerprint",
    "asked",
)
"""Text columns that stay: each has few distinct values."""

COMPARED = frozenset({"quality", "latency", "sweep", "soak"})
"""Phases whose answers are compared text by text."""

KEPT_NUMBERS = (
    "block",
    "trial",
    "wall_s",
    "intended_s",
    "dispatched_s",
    "first_byte_s",
    "end_s",
    "http_status",
    "prompt_tokens",
    "cached_tokens",
    "reasoning_tokens",
    "coalesced_reads",
    "drafted",
    "accepted",
    "spec_passes",
    "plain_passes",
    "passes",
)

COLUMNS = frozenset(
    (
        "request_id",
        *KEPT_TEXTS,
        *KEPT_NUMBERS,
        "output_tokens",
        "chunk_s",
        "chunk_tokens",
    )
    + ("first_visible_s", "sent_s", "queue_s", "prefill_s", "decode_s")
    + ("text", "reasoning", "tool_calls", "accepted_hist", "drafted_per_position")
)
"""Columns that ``per_request`` reads of a part."""


def per_request(records: Records) -> Records:
    """The metric columns of ``METRICS`` beside the keys; lists and texts dropped.

    Further number columns: ``request_key`` (52 bits of the request id),
    ``output_tokens`` (also summed from chunks), ``first_bundle_tokens``,
    ``answer_characters``, ``answer_digest`` (52 bits over text, reasoning and tool
    calls; not of warm-up), ``is_looping`` (0 or 1).
    """
    asked = with_served(records)
    numbers = {
        name: records.numbers[name] for name in KEPT_NUMBERS if name in records.numbers
    }
    numbers["output_tokens"] = output_tokens(asked)
    numbers["first_bundle_tokens"] = first_bundle_tokens(asked)
    numbers |= {name: metric.of(asked) for name, metric in METRICS.items()}
    numbers |= _of_texts(asked)
    numbers |= request_columns(records)
    numbers["request_key"] = request_keys(records.text("request_id"))
    texts = {name: records.texts[name] for name in KEPT_TEXTS if name in records.texts}
    return Records(n=records.n, numbers=numbers, texts=texts)


def with_served(records: Records) -> Records:
    """The same records, with what `timing.served` says kept as a column."""
    every = np.ones(records.n, dtype=np.bool_)
    told = Column(served(records).astype(np.float64), every)
    return records.with_number(IS_SERVED, told)


def request_keys(ids: NDArray[np.object_]) -> Column:
    """52 bits of each id: joins scores to requests without keeping the texts."""
    listed = ids.tolist()
    known = np.fromiter((each is not None for each in listed), np.bool_, len(listed))
    return Column(_numbers(_digest(each or "") for each in listed), known)


def chunk_gaps(records: Records, groups: Codes, count: int) -> list[LogHistogram]:
    """Every gap between chunks of served requests, one histogram for each group.

    Args:
        records: A part with its chunk times.
        groups: Group of each request, 0 to ``count - 1``; -1 is left out.
        count: How many groups.
    """
    chunks = records.ragged("chunk_s")
    gaps, _ = gaps_of(chunks)
    owner = np.where(served(records) & (groups >= 0), groups, count)
    owners = np.repeat(owner, np.maximum(chunks.counts() - 1, 0))
    return LogHistogram.by_group(np.maximum(gaps, 0.0), owners, count)


def is_looping(text: str, *, window: int = 40, repeats: int = 6) -> bool:
    """Whether the end of a text is one phrase repeated, at least ``repeats`` times.

    Looks for the last ``window`` characters earlier in the text; their distance is
    the period, and the text must keep that period over ``repeats`` of them (at least
    200 characters). Costs a few string searches, so every answer of a load run can be
    looked at; the degeneration scorer sees more and costs more.
    """
    if len(text) < 200:
        return False
    end = text.rstrip()
    if len(end) < 200:
        return False
    before = end.rfind(end[-window:], 0, len(end) - 1)
    if before < 0:
        return False
    period = len(end) - window - before
    span = max(200, period * repeats)
    if span > len(end):
        return False
    tail = end[-span:]
    return tail[period:] == tail[:-period]


def _of_texts(records: Records) -> dict[str, Column]:
    texts = records.text("text")
    told = served(records)
    compared = told & records.is_in("phase", COMPARED)
    parts = (texts, records.text("reasoning"), records.text("tool_calls"))
    joined = [
        one if not two and not three else "".join(p for p in (one, two, three) if p)
        for one, two, three in zip(*(part.tolist() for part in parts), strict=True)
    ]
    has_any = np.fromiter(map(bool, joined), np.bool_, records.n)
    known = told & has_any
    digests = (
        _digest(line) if line and wanted else 0.0
        for line, wanted in zip(joined, compared.tolist(), strict=True)
    )
    return {
        "answer_characters": Column(_numbers(len(x or "") for x in joined), known),
        "answer_digest": Column(_numbers(digests), compared & has_any),
        "is_looping": Column(_numbers(is_looping(x or "") for x in joined), known),
    }


def _numbers(values: Iterable[float]) -> NDArray[np.float64]:
    return np.fromiter(values, dtype=np.float64)


def _digest(text: str) -> float:
    """52 bits, so that a float holds it exactly."""
    whole = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=7)
    return float(int.from_bytes(whole.digest(), "big") >> 4)
