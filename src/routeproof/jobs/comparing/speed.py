"""How speed moved between two runs that lie apart in time."""

from collections.abc import Iterator

import numpy as np

from routeproof.gates.evidence import Agreed
from routeproof.gates.facts import LatencyRow
from routeproof.jobs.gathering.gathered import Gathered
from routeproof.metrics.pairs import pair_arms
from routeproof.metrics.requests import Requests
from routeproof.reports.comparison import GainMoved, NumberMoved
from routeproof.reports.judgement import Judgement
from routeproof.stats.ratio import paired_ratio

_QUANTILES = (0.5, 0.95)
_LATENCIES = ("time_to_first_token", "time_per_output_token", "request_latency")
_PHASES = ("latency", "sweep")

Key = tuple[str, int]


def gains(runs: tuple[Gathered, Gathered], agreed: Agreed) -> Iterator[GainMoved]:
    """The ratio candidate / baseline of each metric and load, now against then.

    The baseline of the same run stands beside the candidate in both, so that a slower
    machine does not look like a slower route.
    """
    then, now = (run.requests for run in runs)
    shared = set(then.levels()) & set(now.levels())
    for phase, level in (each for each in now.levels() if each in shared):
        if phase not in _PHASES:
            continue
        for metric in _LATENCIES:
            moved = _gain(then, now, (phase, level, metric), agreed)
            if moved is not None:
                yield moved


def _gain(
    then: Requests, now: Requests, place: tuple[str, str, str], agreed: Agreed
) -> GainMoved | None:
    before, after = _ratios(then, place), _ratios(now, place)
    keys = [key for key in after if key in before]
    if not keys:
        return None
    found = paired_ratio(
        [before[key][0] for key in keys],
        [after[key][0] for key in keys],
        blocks=[after[key][1] for key in keys],
        level=1 - 2 * agreed.policy.alpha,
    )
    phase, level, metric = place
    return GainMoved(
        metric=metric.replace("_", " "),
        where=f"{phase} {level}",
        pairs=len(keys),
        then=_middle([before[key][0] for key in keys]),
        now=_middle([after[key][0] for key in keys]),
        ratio=found.estimate,
        interval=found.interval,
    )


def _middle(values: list[float]) -> float:
    """Geometric mean."""
    return float(np.exp(np.mean(np.log(values))))


def _ratios(
    requests: Requests, place: tuple[str, str, str]
) -> dict[Key, tuple[float, float]]:
    """Candidate / baseline by (case, trial), with the candidate's block."""
    phase, level, metric = place
    pairs = pair_arms(requests, phase=phase, level=level, other="candidate")
    column, block = requests.number(metric), requests.number("block")
    trial, case = requests.number("trial"), requests.label("case_id")
    found: dict[Key, tuple[float, float]] = {}
    for left, right in zip(pairs.left, pairs.right, strict=True):
        slow, fast = column.values[left], column.values[right]
        if column.known[left] and column.known[right] and slow > 0 and fast > 0:
            key = (case.of(int(right)) or "", int(trial.values[right]))
            found[key] = (float(fast / slow), float(block.values[right]))
    return found


def numbers(then: Judgement, now: Judgement) -> Iterator[NumberMoved]:
    """Percentiles that both runs have, and peak memory."""
    before, after = (_percentiles(judgement) for judgement in (then, now))
    for key in [key for key in after if key in before]:
        metric, phase, level, q = key
        yield NumberMoved(
            what=f"{metric.replace('_', ' ')} p{100 * q:g}",
            where=f"{phase} {level}",
            unit="s",
            then=before[key].get("candidate"),
            now=after[key].get("candidate"),
            baseline_then=before[key].get("baseline"),
            baseline_now=after[key].get("baseline"),
        )
    yield from _memory(then, now)


Place = tuple[str, str, str, float]


def _percentiles(judgement: Judgement) -> dict[Place, dict[str, float]]:
    found: dict[Place, dict[str, float]] = {}
    for row in judgement.evidence.speed.latencies:
        for q, value in _known(row):
            place = (row.metric, row.phase, row.level, q)
            found.setdefault(place, {})[row.arm] = value
    return found


def _known(row: LatencyRow) -> Iterator[tuple[float, float]]:
    if row.metric in _LATENCIES:
        for percentile in row.percentiles:
            if percentile.q in _QUANTILES and percentile.value is not None:
                yield percentile.q, percentile.value


def _memory(then: Judgement, now: Judgement) -> Iterator[NumberMoved]:
    before = {row.name: row for row in then.evidence.stability.memory}
    for row in now.evidence.stability.memory:
        earlier = before.get(row.name)
        if earlier is not None and row.name.endswith("_bytes"):
            yield NumberMoved(
                what=f"peak {row.name.removesuffix('_bytes').replace('_', ' ')}",
                where="whole run",
                unit=row.unit,
                then=earlier.peak.candidate,
                now=row.peak.candidate,
                baseline_then=earlier.peak.baseline,
                baseline_now=row.peak.baseline,
            )
