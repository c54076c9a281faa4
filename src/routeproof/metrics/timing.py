"""Times of one request: vectorised functions ``Records -> Column``.

Every time starts at ``intended_s``, when the schedule wanted the request: waiting in
the client counts. A time is known only for a request that was served; failures are
added back as +inf where percentiles are taken. An answer ends with its last content
chunk, not with the usage event or the closing of the connection.
"""

from collections.abc import Callable

import numpy as np

from routeproof.records.columns import Bools, Column, Floats, Ragged, Records
from routeproof.records.outcome import SERVED

IS_SERVED = "is_served"
"""Number column with what `served` says, for records that are asked many times."""


def served(records: Records) -> Bools:
    """True where an answer came, shape ``(n,)``."""
    kept = records.numbers.get(IS_SERVED)
    if kept is not None:
        return kept.known & (kept.values > 0)
    return records.is_in("outcome", SERVED)


def time_to_first_token(records: Records) -> Column:
    """First chunk with a token of any kind, reasoning and tool calls included."""
    first, known = _edge(records, 0)
    return _since(records, "intended_s", first, known)


def time_to_first_visible_token(records: Records) -> Column:
    """First chunk with visible text or a tool call; reasoning does not count."""
    visible = records.number("first_visible_s")
    return _since(records, "intended_s", visible.values, visible.known)


def request_latency(records: Records) -> Column:
    """Last content chunk, or the end of an answer that was not streamed."""
    last, known = _answer_end(records)
    return _since(records, "intended_s", last, known)


def service_latency(records: Records) -> Column:
    """The same from the moment the client began: without its own delay."""
    last, known = _answer_end(records)
    return _since(records, "dispatched_s", last, known)


def dispatch_delay(records: Records) -> Column:
    """How late the client began; part of every other time."""
    begun = records.number("dispatched_s")
    return _since(records, "intended_s", begun.values, begun.known)


def time_per_output_token(records: Records) -> Column:
    """Decode time for each token after the first bundle.

    ``(last chunk - first chunk) / (n - k1)``, with ``k1`` the tokens of the first
    bundle where the server tells them, else 1. Unknown with a single chunk: its
    tokens came at once and the time between them cannot be seen.
    """
    chunks = records.ragged("chunk_s")
    first, has_first = _edge(records, 0)
    last, _ = _edge(records, -1)
    tokens, bundle = output_tokens(records), first_bundle_tokens(records)
    later = tokens.values - np.where(bundle.known, bundle.values, 1.0)
    known = has_first & tokens.known & (chunks.counts() > 1) & (later > 0)
    return _served_only(records, _ratio(last - first, later, known), known)


def decode_throughput(records: Records) -> Column:
    """Tokens per second while decoding: the inverse of ``time_per_output_token``."""
    each = time_per_output_token(records)
    known = each.known & (each.values > 0)
    return Column(_ratio(np.ones(records.n), each.values, known), known)


def output_token_throughput(records: Records) -> Column:
    """Output tokens per second of the whole request."""
    tokens, latency = output_tokens(records), request_latency(records)
    known = tokens.known & latency.known & (latency.values > 0)
    return Column(_ratio(tokens.values, latency.values, known), known)


def chunk_gap(records: Records) -> Column:
    """Mean gap between chunks of one request; grows with tokens per chunk."""
    chunks = records.ragged("chunk_s")
    first, has_first = _edge(records, 0)
    last, _ = _edge(records, -1)
    gaps = (chunks.counts() - 1).astype(np.float64)
    known = has_first & (gaps > 0)
    return _served_only(records, _ratio(last - first, gaps, known), known)


def longest_stall(records: Records) -> Column:
    """Longest gap between two chunks of one request."""
    chunks = records.ragged("chunk_s")
    gaps, owner_first = gaps_of(chunks)
    counts = np.maximum(chunks.counts() - 1, 0)
    known = chunks.known & (counts > 0)
    longest = np.zeros(records.n)
    if known.any():
        longest[known] = np.maximum.reduceat(gaps, owner_first[known])
    return _served_only(records, longest, known)


def tokens_per_chunk(records: Records) -> Column:
    """Output tokens / content chunks."""
    chunks, tokens = records.ragged("chunk_s"), output_tokens(records)
    counts = chunks.counts().astype(np.float64)
    known = chunks.known & (counts > 0) & tokens.known
    return _served_only(records, _ratio(tokens.values, counts, known), known)


def output_tokens(records: Records) -> Column:
    """Tokens of the answer: as the server counts, else the sum over its chunks."""
    told, chunk_tokens = records.number("output_tokens"), records.ragged("chunk_tokens")
    sums = np.zeros(records.n)
    some = chunk_tokens.known & (chunk_tokens.counts() > 0)
    if some.any():
        starts = chunk_tokens.offsets[:-1][some]
        sums[some] = np.add.reduceat(chunk_tokens.values, starts)
    values = np.where(told.known, told.values, sums)
    return Column(values, told.known | some)


def first_bundle_tokens(records: Records) -> Column:
    """Tokens in the first content chunk, where the server tells."""
    chunk_tokens = records.ragged("chunk_tokens")
    some = chunk_tokens.known & (chunk_tokens.counts() > 0)
    first = np.zeros(records.n)
    first[some] = chunk_tokens.values[chunk_tokens.offsets[:-1][some]]
    return Column(first, some & (first > 0))


def served_number(name: str) -> Callable[[Records], Column]:
    """A stored number, known only for served requests."""

    def of(records: Records) -> Column:
        column = records.number(name)
        return _served_only(records, column.values, column.known)

    of.__doc__ = f"``{name}`` as stored, for served requests."
    return of


def gaps_of(
    chunks: Ragged,
) -> tuple[Floats, "np.ndarray[tuple[int], np.dtype[np.int64]]"]:
    """Every gap between chunks of one request, in order.

    Returns:
        The gaps, and for each record the index at which its gaps begin.
    """
    counts = np.maximum(chunks.counts() - 1, 0)
    starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)[:-1]
    if not chunks.values.size:
        return np.zeros(0), starts
    between = np.diff(chunks.values)
    inside = np.ones(between.size, dtype=np.bool_)
    borders = chunks.offsets[1:-1]
    borders = borders[(borders > 0) & (borders < chunks.values.size)]
    inside[borders - 1] = False
    return between[inside], starts


def _edge(records: Records, which: int) -> tuple[Floats, Bools]:
    """First (0) or last (-1) chunk of each record."""
    chunks = records.ragged("chunk_s")
    known = chunks.known & (chunks.counts() > 0)
    places = chunks.offsets[:-1] if which == 0 else chunks.offsets[1:] - 1
    values = np.zeros(records.n)
    values[known] = chunks.values[places[known]]
    return values, known


def _answer_end(records: Records) -> tuple[Floats, Bools]:
    last, has_chunks = _edge(records, -1)
    end = records.number("end_s")
    return np.where(has_chunks, last, end.values), has_chunks | end.known


def _since(records: Records, start: str, stop: Floats, known: Bools) -> Column:
    begun = records.number(start)
    return _served_only(records, stop - begun.values, known & begun.known)


def _served_only(records: Records, values: Floats, known: Bools) -> Column:
    return Column(values, known & served(records))


def _ratio(over: Floats, under: Floats, known: Bools) -> Floats:
    return np.divide(over, under, out=np.zeros_like(over), where=known)
