"""Paired ratios of the arms, with block-bootstrap intervals and the A/A floor."""

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from routeproof.gates.facts import Arms, RatioRow
from routeproof.gates.load import Load
from routeproof.metrics.pairs import Pairs, pair_arms
from routeproof.metrics.requests import Requests
from routeproof.records.columns import Floats
from routeproof.stats.interval import Interval
from routeproof.stats.ratio import Ratio, Statistic, paired_ratio

PAIRED = (
    "time_to_first_token",
    "time_per_output_token",
    "request_latency",
    "chunk_gap",
    "longest_stall",
)
"""Metrics whose paired ratio is taken, all of them better when lower."""

TAILED = frozenset({"time_to_first_token", "time_per_output_token", "request_latency"})
"""Of these the ratio of the 95th percentiles is taken too."""


_MEAN_AND_TAIL: tuple[Statistic, ...] = ("mean", "p95")


class Sample(NamedTuple):
    """Paired values of two arms and the block of each pair."""

    baseline: Floats
    other: Floats
    blocks: NDArray[np.int64]


def ratio_rows(load: Load, phase: str, level: str) -> list[RatioRow]:
    """Ratios of every paired metric at one load; failures are +inf on both sides."""
    requests = load.requests
    pairs = pair_arms(requests, phase=phase, level=level, other="candidate")
    control = pair_arms(requests, phase=phase, level=level, other="control")
    if not pairs.n:
        return []
    rows = []
    for metric in PAIRED:
        seen, floor = (_sample(requests, p, metric) for p in (pairs, control))
        if not seen.baseline.size:
            continue
        for of in _MEAN_AND_TAIL if metric in TAILED else _MEAN_AND_TAIL[:1]:
            ratio = _ratio(load, seen, of)
            noise = _ratio(load, floor, of) if floor.baseline.size else None
            rows.append(
                _row(load, metric, of, (phase, level), (seen, ratio), (floor, noise))
            )
    return rows


def throughput_rows(load: Load, phase: str, level: str) -> list[RatioRow]:
    """Output tokens per second of the interleaved blocks, arm against arm."""
    requests = load.requests
    pairs = pair_arms(requests, phase=phase, level=level, other="candidate")
    control = pair_arms(requests, phase=phase, level=level, other="control")
    seen, floor = (_per_block(requests, p) for p in (pairs, control))
    if not seen.baseline.size:
        return []
    ratio = _ratio(load, seen, "mean")
    noise = _ratio(load, floor, "mean") if floor.baseline.size else None
    row = _row(
        load,
        "output_token_throughput",
        "mean",
        (phase, level),
        (seen, ratio),
        (floor, noise),
        better="higher",
    )
    return [row]


def length_ratio(load: Load) -> RatioRow | None:
    """Output length candidate / baseline over the quality pairs (else all pairs)."""
    for phase in ("quality", "latency", "sweep", "soak"):
        samples = [
            _lengths(load.requests, phase, other) for other in ("candidate", "control")
        ]
        if samples[0].baseline.size:
            ratios = [
                _ratio(load, s, "mean") if s.baseline.size else None for s in samples
            ]
            assert ratios[0] is not None
            return _row(
                load,
                "output_length",
                "mean",
                (phase, ""),
                (samples[0], ratios[0]),
                (samples[1], ratios[1]),
            )
    return None


def matched_length(load: Load, stages: tuple[tuple[str, str], ...]) -> RatioRow | None:
    """Request latency of the pairs whose answers are about equally long.

    Pairs within 10 % (or two tokens) of each other's length, of the highest load.
    """
    if not stages:
        return None
    phase, level = stages[-1]
    requests = load.requests
    pairs = pair_arms(requests, phase=phase, level=level, other="candidate")
    tokens = requests.number("output_tokens")
    known = tokens.known[pairs.left] & tokens.known[pairs.right]
    left, right = tokens.values[pairs.left], tokens.values[pairs.right]
    alike = known & (np.abs(left - right) <= np.maximum(2.0, 0.1 * left))
    nothing = np.zeros(0, dtype=np.int64)
    kept = Pairs(pairs.left[alike], pairs.right[alike], nothing, nothing)
    sample = _sample(requests, kept, "request_latency")
    if not sample.baseline.size:
        return None
    ratio = _ratio(load, sample, "mean")
    return _row(load, "request_latency", "mean", (phase, level), (sample, ratio), None)


def _sample(requests: Requests, pairs: Pairs, metric: str) -> Sample:
    """Paired values; a failed request is +inf, a served but unknown one is left out."""
    column, good = requests.number(metric), requests.served()
    sides = []
    usable = np.ones(pairs.n, dtype=np.bool_)
    for rows in (pairs.left, pairs.right):
        values = np.where(good[rows], column.values[rows], np.inf)
        sides.append(values)
        usable &= ~good[rows] | (column.known[rows] & (column.values[rows] > 0))
    blocks = requests.number("block").values[pairs.left].astype(np.int64)
    return Sample(sides[0][usable], sides[1][usable], blocks[usable])


def _lengths(requests: Requests, phase: str, other: str) -> Sample:
    pairs = pair_arms(requests, phase=phase, other=other)
    tokens, good = requests.number("output_tokens"), requests.served()
    known = np.ones(pairs.n, dtype=np.bool_)
    for rows in (pairs.left, pairs.right):
        known &= good[rows] & tokens.known[rows] & (tokens.values[rows] > 0)
    left, right = pairs.left[known], pairs.right[known]
    case = requests.label("case_id").codes[left].astype(np.int64)
    return Sample(tokens.values[left], tokens.values[right], case)


def _per_block(requests: Requests, pairs: Pairs) -> Sample:
    """Seconds per output token of each block, for blocks that both arms ran whole."""
    empty = Sample(np.zeros(0), np.zeros(0), np.zeros(0, dtype=np.int64))
    if not pairs.n:
        return empty
    blocks = requests.number("block").values[pairs.left].astype(np.int64)
    ids, inverse = np.unique(blocks, return_inverse=True)
    sides = [
        _seconds_per_token(requests, rows, inverse, ids.size)
        for rows in (pairs.left, pairs.right)
    ]
    usable = (sides[0] > 0) & (sides[1] > 0)
    return Sample(sides[0][usable], sides[1][usable], ids[usable])


def _seconds_per_token(
    requests: Requests, rows: NDArray[np.int64], block: NDArray[np.int64], n: int
) -> Floats:
    """Length of each block in time / its tokens; 0 where it cannot be told.

    A failed request adds its time and no token; a block without a token is +inf.
    """
    tokens, good = requests.number("output_tokens"), requests.served()[rows]
    start, end = requests.number("intended_s"), requests.number("end_s")
    first = np.full(n, np.inf)
    last = np.full(n, -np.inf)
    np.minimum.at(first, block, start.values[rows])
    np.maximum.at(last, block, np.where(end.known[rows], end.values[rows], -np.inf))
    counted = good & tokens.known[rows]
    total = np.bincount(block[counted], tokens.values[rows][counted], minlength=n)
    untold = np.bincount(block[good & ~tokens.known[rows]], minlength=n) > 0
    length = np.where(np.isfinite(last), last - first, 0.0)
    each = np.divide(length, total, out=np.full(n, np.inf), where=total > 0)
    return np.where(untold | (length <= 0), 0.0, each)


MOST_RANKED = 5_000
"""Pairs of which a ratio of percentiles is taken. More are thinned by whole blocks,
evenly over time: the interval stays honest, and ranking does not grow with the run."""


def _thinned(sample: Sample) -> Sample:
    step = -(-sample.baseline.size // MOST_RANKED)
    if step <= 1:
        return sample
    _, place = np.unique(sample.blocks, return_inverse=True)
    kept = place % step == 0
    return Sample(sample.baseline[kept], sample.other[kept], sample.blocks[kept])


def _ratio(load: Load, sample: Sample, of: Statistic) -> Ratio:
    if of != "mean":
        sample = _thinned(sample)
    resamples = int(np.clip(2.5e6 / max(1, sample.baseline.size), 200, 1000))
    return paired_ratio(
        sample.baseline,
        sample.other,
        blocks=sample.blocks,
        statistic=of,
        failure_s=load.timeout_s,
        level=1 - 2 * load.agreed.policy.alpha,
        resamples=resamples,
        seed=load.seed,
    )


def _row(
    load: Load,
    metric: str,
    of: str,
    at: tuple[str, str],
    seen: tuple[Sample, Ratio],
    floor: tuple[Sample, Ratio | None] | None,
    *,
    better: Literal["lower", "higher"] = "lower",
) -> RatioRow:
    """Values are taken in seconds (lower is better); rates are turned for display."""
    sample, ratio = seen
    noise = None if floor is None else floor[1]
    turn = better == "higher"
    control = (
        None
        if floor is None or noise is None
        else _value(floor[0].other, of, load.timeout_s)
    )
    return RatioRow(
        metric=metric,
        of=of,
        phase=at[0],
        level=at[1],
        better=better,
        pairs=ratio.n_pairs,
        blocks=ratio.n_blocks,
        values=Arms(
            baseline=_turned(_value(sample.baseline, of, load.timeout_s), turn),
            candidate=_turned(_value(sample.other, of, load.timeout_s), turn),
            control=_turned(control, turn),
        ),
        ratio=_turned(ratio.estimate, turn),
        interval=_turned_interval(ratio.interval, turn),
        gain=_turned(ratio.estimate, True),
        gain_interval=_turned_interval(ratio.interval, True),
        control_ratio=_turned(noise.estimate, turn) if noise else None,
        control_interval=_turned_interval(noise.interval, turn) if noise else None,
        note=ratio.note,
    )


def _value(values: Floats, of: str, failure_s: float) -> float | None:
    if not values.size:
        return None
    if of == "mean":
        return float(np.where(np.isfinite(values), values, failure_s).mean())
    rank = max(1, int(np.ceil(0.95 * values.size - 1e-9)))
    value = float(np.sort(values)[rank - 1])
    return value if np.isfinite(value) else None


def _turned(value: float | None, turn: bool) -> float | None:
    if value is None or not turn:
        return value
    return 1 / value if value else None


def _turned_interval(interval: Interval | None, turn: bool) -> Interval | None:
    if interval is None or not turn:
        return interval
    return Interval(
        low=_turned(interval.high, True),
        high=_turned(interval.low, True),
        level=interval.level,
        method=interval.method,
    )
