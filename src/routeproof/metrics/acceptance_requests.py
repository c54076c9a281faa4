"""Counts of speculation per request: columns, ratios of sums, intervals."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from routeproof.records.columns import Bools, Column, Ragged, Records

HIST, DRAFTED_AT = "accepted_hist", "drafted_at"
TOKENS_ALONG, PASSES_ALONG = "tokens_along", "passes_along"
OUTPUT_EDGES = (32, 128, 512)
"""Tokens into an answer at which a stretch of it ends, exclusive."""

MAX_POSITIONS = 64
BLOCKS = 2000
"""Largest number of resampled units; more requests are thrown into this many blocks
at random, which leaves the interval as wide and the work small."""


class Numbers(Protocol):
    """What carries number columns: ``Records`` or ``Requests``."""

    @property
    def n(self) -> int:
        """How many requests."""
        ...

    @property
    def numbers(self) -> Mapping[str, Column]:
        """Number columns by name."""
        ...

    def number(self, name: str) -> Column:
        """One number per request."""
        ...


def request_columns(records: Records) -> dict[str, Column]:
    """Lists of counts as number columns, so that they outlive their part.

    ``accepted_hist:<j>`` are passes that accepted ``j`` drafts, ``drafted_at:<i>``
    passes that drafted position ``i``. A column past the end of a request's list is 0
    for it: histograms end at their largest entry. Requests without a list are unknown.
    ``tokens_along:<k>`` and ``passes_along:<k>`` are tokens and passes of the k-th
    stretch of the answer, see `along_the_answer`.
    """
    return {
        **_spread(records.ragged("accepted_hist"), HIST),
        **_spread(records.ragged("drafted_per_position"), DRAFTED_AT),
        **along_the_answer(records),
    }


def along_the_answer(records: Records) -> dict[str, Column]:
    """Tokens and passes by how far into the answer a pass began.

    Engines that send a chunk a pass (vLLM, SGLang) show in their chunks which pass
    gave how many tokens. A request counts only when its chunks after the first are as
    many as its passes; of the others nothing is known.
    """
    told = records.ragged("chunk_tokens")
    passes = all_passes(records)
    counts = told.counts()
    known = told.known & passes.known & (counts - 1 == passes.values) & (counts > 1)
    if not known.any():
        return {}
    owner = np.repeat(np.arange(records.n), counts)
    values = told.values[: owner.size]
    before = np.cumsum(values) - values
    before -= np.repeat(before[told.offsets[:-1].clip(max=values.size - 1)], counts)
    is_pass = np.ones(owner.size, dtype=np.bool_)
    is_pass[told.offsets[:-1][counts > 0]] = False
    is_pass &= known[owner]
    place = np.searchsorted(OUTPUT_EDGES, before[is_pass], side="right")
    cells = owner[is_pass] * (len(OUTPUT_EDGES) + 1) + place
    shape = (records.n, len(OUTPUT_EDGES) + 1)
    size = shape[0] * shape[1]
    made = np.bincount(cells, weights=values[is_pass], minlength=size).astype(float)
    taken = np.bincount(cells, minlength=size).astype(np.float64)
    found = {}
    for name, flat in ((TOKENS_ALONG, made), (PASSES_ALONG, taken)):
        table = flat.reshape(shape)
        for k in range(shape[1]):
            found[f"{name}:{k}"] = Column(table[:, k].copy(), known.copy())
    return found


def _spread(ragged: Ragged, name: str) -> dict[str, Column]:
    sizes = ragged.counts()
    width = min(int(sizes.max(initial=0)), MAX_POSITIONS)
    if not ragged.known.any():
        return {}
    out = {}
    for j in range(width):
        has = sizes > j
        values = np.zeros(len(sizes))
        values[has] = ragged.values[ragged.offsets[:-1][has] + j]
        out[f"{name}:{j}"] = Column(values, ragged.known.copy())
    return out


@dataclass(frozen=True, slots=True)
class Estimate:
    """One derived number over requests.

    Attributes:
        micro: Sum over sum: predicts throughput; the headline.
        macro: Mean of the requests' own ratios, as some papers report it.
        low, high: Bootstrap interval of ``micro`` at ``level``; ``None`` for fewer
            than 10 units.
        n: Requests with both numbers known.
        units: Resampled units (cases).
    """

    micro: float | None
    macro: float | None
    low: float | None
    high: float | None
    level: float
    n: int
    units: int


def estimate(
    above: Column,
    below: Column,
    keep: Bools,
    *,
    unit: NDArray[np.int64] | None = None,
    level: float = 0.9,
    seed: int = 0,
    draws: int = 1000,
) -> Estimate:
    """A ratio of sums with its interval, and the mean of ratios beside it.

    Percentile bootstrap over units: the trials of one case stay together, since they
    repeat the same text.

    Args:
        above: Numerator per request.
        below: Denominator per request; requests where it is 0 count in the sums and
            not in ``macro``.
        keep: Which requests.
        unit: Case of each request; each its own when absent.
        level: Two-sided confidence level.
        seed: Of the resampling.
        draws: Bootstrap samples.
    """
    known = keep & above.known & below.known
    x, y = above.values[known], below.values[known]
    groups = np.arange(x.size) if unit is None else unit[known]
    _, index = np.unique(groups, return_inverse=True)
    units = int(index.max() + 1) if index.size else 0
    total = float(y.sum())
    positive = y > 0
    macro = float((x[positive] / y[positive]).mean()) if positive.any() else None
    micro = float(x.sum()) / total if total > 0 else None
    low = high = None
    if units >= 10 and micro is not None:
        rng = np.random.default_rng(seed)
        low, high = _interval(x, y, _blocks(index, units, rng), level, rng, draws)
    return Estimate(micro, macro, low, high, level, int(x.size), units)


def _blocks(
    index: NDArray[np.int64], units: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    if units <= BLOCKS:
        return index
    return rng.permutation(units)[index] % BLOCKS


def _interval(
    x: NDArray[np.float64],
    y: NDArray[np.float64],
    block: NDArray[np.int64],
    level: float,
    rng: np.random.Generator,
    draws: int,
) -> tuple[float | None, float | None]:
    size = int(block.max()) + 1
    sums_x = np.bincount(block, weights=x, minlength=size)
    sums_y = np.bincount(block, weights=y, minlength=size)
    weights = rng.multinomial(size, np.full(size, 1.0 / size), size=draws)
    below = weights @ sums_y
    good = below > 0
    if good.sum() < draws * 0.9:
        return None, None
    ratios = (weights @ sums_x)[good] / below[good]
    tail = (1.0 - level) / 2.0
    low, high = np.quantile(ratios, [tail, 1.0 - tail])
    return float(low), float(high)


def decode_tokens(requests: Numbers) -> Column:
    """Output tokens that came from decode passes: all but the first."""
    output = requests.number("output_tokens")
    return Column(np.maximum(output.values - 1.0, 0.0), output.known)


def all_passes(requests: Numbers, draft_tokens: int | None = None) -> Column:
    """``S + P`` per request, from both or as told.

    llama.cpp tells neither; its sum follows from the tokens, and a last run that was
    cut at the end of the answer hides up to one pass. A pass drafts at most
    ``draft_tokens``, so there were at least ``drafted / draft_tokens`` of them; the
    larger number is taken.
    """
    spec, plain = requests.number("spec_passes"), requests.number("plain_passes")
    told, drafted = requests.number("passes"), requests.number("drafted")
    both = spec.known & plain.known
    least = np.zeros(requests.n)
    if draft_tokens:
        least[drafted.known] = np.ceil(drafted.values[drafted.known] / draft_tokens)
    values = np.where(both, spec.values + plain.values, np.maximum(told.values, least))
    return Column(values, both | told.known)


def tokens_per_pass(requests: Numbers, draft_tokens: int | None = None) -> Column:
    """Tokens a decode pass yields, per request: the acceptance metric to pair on."""
    made, passes = decode_tokens(requests), all_passes(requests, draft_tokens)
    known = made.known & passes.known & (passes.values > 0)
    values = np.divide(
        made.values, passes.values, out=np.zeros(requests.n), where=known
    )
    return Column(values, known)


def step_time(
    requests: Numbers, *, speculates: bool, draft_tokens: int | None = None
) -> Column:
    """Seconds a decode pass takes, per request: time per token x tokens per pass.

    On a route that does not speculate every pass yields one token, so its step time
    is its time per output token. Speed then has two factors that can be tested
    apart: tokens per pass (the workload's) and step time (the system's). Candidate
    step time / baseline step time - 1 is the overhead of drafting and verifying.

    Args:
        requests: With ``time_per_output_token`` and the counts of speculation.
        speculates: Whether the route drafts at all. If it does, requests without
            counts are unknown.
        draft_tokens: Configured drafts per pass, see `all_passes`.
    """
    per_token = requests.number("time_per_output_token")
    if not speculates:
        return per_token
    per_pass = tokens_per_pass(requests, draft_tokens)
    return Column(per_token.values * per_pass.values, per_token.known & per_pass.known)
