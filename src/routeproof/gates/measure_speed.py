"""From requests to the times and rates that the latency gate judges."""

import numpy as np

from routeproof.gates.evidence import Agreed, Speed
from routeproof.gates.facts import LatencyRow, LoadRow, Percentile, RatioRow
from routeproof.gates.load import Load
from routeproof.gates.ratios import (
    length_ratio,
    matched_length,
    ratio_rows,
    throughput_rows,
)
from routeproof.gates.slo import metric_of, quantile_of
from routeproof.metrics.histogram import LogHistogram
from routeproof.metrics.requests import Requests, asked_load
from routeproof.metrics.table import METRICS
from routeproof.metrics.windows import RATED, rates, within_slo
from routeproof.records.columns import Bools
from routeproof.stats.percentile import percentile

ARMS = ("baseline", "candidate", "control")
QUANTILES = (0.5, 0.9, 0.95, 0.99)
ECDF_POINTS = 120
CACHED_SHARE_TOLERANCE = 0.1
"""Arms whose shares of cached prompt tokens differ by more did different work."""
_ECDF_METRICS = (
    "time_to_first_token",
    "time_per_output_token",
    "request_latency",
    "longest_stall",
)


def measure_speed(load: Load) -> Speed:
    """Percentiles, paired ratios and rates of every arm at every load.

    The quality phase is measured for speed only when nothing else was run for it, and
    never when answers in it were taken over from an earlier run.
    """
    stages = timed_stages(load.requests)
    if load.is_reused:
        stages = tuple(stage for stage in stages if stage[0] != "quality")
    cached = {arm: _cached_share(load.requests, arm, stages) for arm in ARMS}
    is_void = _warmed_by_control(stages, cached)
    if is_void:
        stages = ()
    latencies: list[LatencyRow] = []
    loads: list[LoadRow] = []
    ratios: list[RatioRow] = []
    for phase, level in stages:
        latencies += _latency_rows(load, phase, level)
        loads += _load_rows(load, phase, level)
        ratios += ratio_rows(load, phase, level)
        ratios += throughput_rows(load, phase, level)
    return Speed(
        latencies=tuple(latencies),
        ratios=tuple(ratios),
        loads=tuple(loads),
        matched_length=matched_length(load, stages),
        length_ratio=length_ratio(load),
        prefill_share=_prefill_share(load, stages),
        median_output_tokens=_median_output_tokens(load.requests),
        cached_share=cached,
        is_warmed_by_control=is_void,
    )


def _warmed_by_control(
    stages: tuple[tuple[str, str], ...], cached: dict[str, float | None]
) -> bool:
    """Whether times of a quality stage compare a warm cache with a cold one.

    Prompts of that stage are sent as they are, and the control sends them to the
    baseline's server a second time.
    """
    base, other = cached["baseline"], cached["candidate"]
    if base is None or other is None or any(s[0] != "quality" for s in stages):
        return False
    return abs(other - base) > CACHED_SHARE_TOLERANCE


def timed_stages(requests: Requests) -> tuple[tuple[str, str], ...]:
    """(phase, level) whose times are judged, low load first."""
    stages = [s for s in requests.levels() if s[0] not in ("warmup", "probe")]
    speed = tuple(s for s in stages if s[0] != "quality")
    return speed or tuple(stages)


def _latency_rows(load: Load, phase: str, level: str) -> list[LatencyRow]:
    rows = []
    for arm in ARMS:
        keep = load.requests.at(arm=arm, phase=phase, level=level)
        if not keep.any():
            continue
        some = load.requests.where(keep, only=METRICS)
        good = some.served()
        for name in METRICS:
            row = _latency_row(load, some, good, (arm, phase, level), name)
            if row is not None:
                rows.append(row)
    return rows


def _latency_row(
    load: Load, some: Requests, good: Bools, at: tuple[str, str, str], name: str
) -> LatencyRow | None:
    metric, column = METRICS[name], some.number(name)
    values = np.sort(column.where_known())
    if not values.size and good.any():
        return None
    arm, phase, level = at
    failed = int((~good).sum())
    unknown = int((good & ~column.known).sum())
    is_time = metric.better == "lower"
    shown = np.concatenate([values, np.full(failed if is_time else 0, np.inf)])
    gaps = load.gaps.get(at) if name == "chunk_gap" else None
    return LatencyRow(
        arm=arm,
        phase=phase,
        level=level,
        metric=name,
        unit=metric.unit,
        n=some.n if gaps is None else gaps.n,
        failed=failed,
        unknown=unknown,
        mean=float(values.mean()) if values.size else None,
        percentiles=_percentiles(load.agreed, name, shown)
        if gaps is None
        else _of_histogram(gaps),
        ecdf=ecdf(values, some.n - unknown) if name in _ECDF_METRICS else (),
    )


def _percentiles(
    agreed: Agreed, name: str, samples: "np.ndarray[tuple[int], np.dtype[np.float64]]"
) -> tuple[Percentile, ...]:
    asked = [
        quantile_of(text)
        for slo, limits in agreed.performance.slo.items()
        if metric_of(slo) == name
        for text in limits
    ]
    wanted = {*QUANTILES, *(q for q in asked if q is not None)}
    level = 1 - 2 * agreed.policy.alpha
    rows = []
    for q in sorted(wanted):
        found = percentile(samples, q, level=level)
        interval = found.interval
        rows.append(
            Percentile(
                q=q,
                value=found.value,
                low=None if interval is None else interval.low,
                high=None if interval is None else interval.high,
                n_needed=found.n_minimum,
                is_infinite=found.in_failures,
            )
        )
    return tuple(rows)


def _of_histogram(gaps: LogHistogram) -> tuple[Percentile, ...]:
    return tuple(Percentile(q=q, value=gaps.quantile(q)) for q in QUANTILES)


def ecdf(
    values: "np.ndarray[tuple[int], np.dtype[np.float64]]", n: int
) -> tuple[tuple[float, float], ...]:
    """Points (value, share of ``n`` at most that value), at most ``ECDF_POINTS``.

    ``values`` are sorted; ``n`` counts the failures too: a curve that ends below 1
    shows them.
    """
    if not values.size or n <= 0:
        return ()
    count = min(ECDF_POINTS, values.size)
    ranks = np.unique(np.linspace(1, values.size, count).round().astype(np.int64))
    points = zip(values[ranks - 1].tolist(), (ranks / n).tolist(), strict=True)
    return tuple((value, share) for value, share in points)


def _load_rows(load: Load, phase: str, level: str) -> list[LoadRow]:
    kind, asked = asked_load(level)
    limits = slo_limits(load.agreed)
    rows = []
    for arm in ARMS:
        keep = load.requests.at(arm=arm, phase=phase, level=level)
        some = load.requests.where(keep, only=(*RATED, *limits))
        if not some.n:
            continue
        correct = None if load.correct is None else load.correct[keep]
        found = rates(some, within=within_slo(some, limits), correct=correct)
        rows.append(
            LoadRow(
                arm=arm,
                phase=phase,
                level=level,
                kind="request_rate" if kind == "request_rate" else "concurrency",
                asked=asked,
                requests=found.requests,
                failed=found.failed,
                achieved_concurrency=found.achieved_concurrency,
                window_s=found.window_s,
                requests_per_s=found.requests_per_s,
                whole_requests_per_s=found.whole_requests_per_s,
                output_tokens_per_s=found.output_tokens_per_s,
                goodput_per_s=found.goodput_per_s,
                correct_goodput_per_s=found.correct_goodput_per_s,
                slo_share=found.slo_share,
            )
        )
    return rows


def slo_limits(agreed: Agreed) -> dict[str, float]:
    """Most seconds per request by metric: the strictest limit of each SLO."""
    return {
        metric_of(name): min(limits.values())
        for name, limits in agreed.performance.slo.items()
        if limits and metric_of(name) in METRICS
    }


def _prefill_share(load: Load, stages: tuple[tuple[str, str], ...]) -> float | None:
    """Share of request latency before the first token, on the baseline."""
    if not stages:
        return None
    phase, level = stages[0]
    keep = load.requests.at(arm="baseline", phase=phase, level=level)
    wanted = ("time_to_first_token", "request_latency")
    some = load.requests.where(keep, only=wanted)
    first, whole = some.number("time_to_first_token"), some.number("request_latency")
    known = first.known & whole.known
    total = float(whole.values[known].sum())
    return float(first.values[known].sum()) / total if total > 0 else None


def _median_output_tokens(requests: Requests) -> float | None:
    keep = requests.at(arm="baseline") & requests.served()
    some = requests.number("output_tokens")
    tokens = some.values[keep & some.known]
    return float(np.median(tokens)) if tokens.size else None


def _cached_share(
    requests: Requests, arm: str, stages: tuple[tuple[str, str], ...]
) -> float | None:
    """Cached prompt tokens / prompt tokens of what is timed.

    ``None`` unless the engine tells both. What the quality phase found in a cache
    does not change a time that is judged.
    """
    timed = np.zeros(requests.n, dtype=np.bool_)
    for phase, level in stages:
        timed |= requests.at(arm=arm, phase=phase, level=level)
    prompt, cached = requests.number("prompt_tokens"), requests.number("cached_tokens")
    known = timed & requests.served() & prompt.known & cached.known
    total = float(prompt.values[known].sum())
    return float(cached.values[known].sum()) / total if total > 0 else None
