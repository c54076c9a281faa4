"""What a load run measured, as one document and as the facts of its page."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np

from routeproof.gates.evidence import Agreed, Speed
from routeproof.gates.facts import TimeBin
from routeproof.gates.load import Load
from routeproof.gates.measure_speed import measure_speed
from routeproof.gates.timeline import time_bins
from routeproof.jobs.loading.plan import LENGTH_ASKED
from routeproof.metrics.histogram import LogHistogram
from routeproof.metrics.per_request import (
    COLUMNS,
    chunk_gaps,
    per_request,
    with_served,
)
from routeproof.metrics.requests import Requests, gather
from routeproof.metrics.stages import Stage, stages_of
from routeproof.metrics.table import METRICS
from routeproof.metrics.windows import flying, rates, within_slo
from routeproof.proof.policy import PerformanceSpec, PolicySpec
from routeproof.records.columns import Floats, Records
from routeproof.records.manifest import ClientHealth, Manifest
from routeproof.records.store import RunFolder
from routeproof.reports.load_page import InFlight
from routeproof.stats.percentile import percentile

DISTRIBUTIONS: dict[str, str] = {
    "time_to_first_token_s": "time_to_first_token",
    "time_to_first_visible_token_s": "time_to_first_visible_token",
    "time_per_output_token_s": "time_per_output_token",
    "chunk_gap_s": "chunk_gap",
    "tokens_per_chunk": "tokens_per_chunk",
    "request_latency_s": "request_latency",
}
"""Names in the document to metrics per request."""

QUANTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}

Part = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Measured:
    """A load run in memory, a few numbers per request, warm-up left out.

    Attributes:
        gaps: Every gap between two chunks, by (arm, phase, level).
        slo: Most seconds by metric.
    """

    manifest: Manifest
    requests: Requests
    gaps: Mapping[Stage, LogHistogram]
    slo: Mapping[str, float]

    @property
    def is_length_asked(self) -> bool:
        """Whether an answer that ends by the length limit is complete."""
        return bool(self.manifest.notes.get(LENGTH_ASKED))


def measured(folder: RunFolder) -> Measured:
    """Read a run folder part by part, without its texts.

    Raises:
        StoredRunError: No run, or one that cannot be read.
    """
    manifest = folder.read_manifest()
    gaps: dict[Stage, LogHistogram] = {}
    requests = gather(_reduced(folder, gaps))
    slo = manifest.notes.get("slo")
    return Measured(
        manifest=manifest,
        requests=requests.where(~requests.at(phase="warmup")),
        gaps={stage: found for stage, found in gaps.items() if stage[1] != "warmup"},
        slo=dict(slo) if isinstance(slo, dict) else {},
    )


_TEXTS = {"text", "reasoning", "tool_calls"}


def _reduced(folder: RunFolder, gaps: dict[Stage, LogHistogram]) -> Iterator[Records]:
    for stored in folder.parts(only=COLUMNS - _TEXTS):
        part = with_served(stored)
        yield per_request(part)
        stages, groups = stages_of(part)
        found = chunk_gaps(part, groups, len(stages))
        for stage, each in zip(stages, found, strict=True):
            gaps[stage] = gaps[stage].plus(each) if stage in gaps else each


def summary(run: Measured) -> Part:
    """One document about a load run.

    Returns:
        ``requests``, ``outcomes``, ``metrics`` (each with p50, p95, p99, mean, n) and
        ``client`` (valid, reasons); with several levels also ``levels``, the same for
        each. Percentiles count failures as infinite; what cannot be told is ``None``,
        and so are rates over several levels together.
    """
    stages = run.requests.levels()
    whole = _part(run, run.requests, stages, has_rates=len(stages) <= 1)
    document = {**whole, "client": _client(run.manifest.health)}
    if len(stages) > 1:
        document["levels"] = {
            level: level_part(run, phase, level) for phase, level in stages
        }
    return document


def level_part(run: Measured, phase: str, level: str) -> Part:
    """``requests``, ``outcomes`` and ``metrics`` of one level."""
    some = run.requests.where(run.requests.at(phase=phase, level=level))
    return _part(run, some, ((phase, level),), has_rates=True)


def _part(
    run: Measured,
    requests: Requests,
    stages: tuple[tuple[str, str], ...],
    *,
    has_rates: bool,
) -> Part:
    metrics = {name: _spread(requests, of) for name, of in DISTRIBUTIONS.items()}
    gaps = [g for (_, *at), g in run.gaps.items() if tuple(at) in stages]
    metrics["chunk_gap_s"] = _of_gaps(gaps)
    found = rates(requests, within=within_slo(requests, run.slo))
    for name, value in (
        ("output_token_throughput_per_s", found.output_tokens_per_s),
        ("goodput_per_s", found.goodput_per_s),
    ):
        mean = value if has_rates else None
        metrics[name] = {**dict.fromkeys(QUANTILES), "mean": mean, "n": requests.n}
    return {
        "requests": requests.n,
        "outcomes": outcomes_of(requests, is_length_asked=run.is_length_asked),
        "metrics": metrics,
    }


def outcomes_of(requests: Requests, *, is_length_asked: bool) -> dict[str, int]:
    """How many ended in which way, ``completed`` first.

    With ``is_length_asked`` an answer that ended by its own limit is completed: a load
    test cuts answers on purpose.
    """
    outcome = requests.label("outcome")
    counts = {name: int(outcome.equal(name).sum()) for name in sorted(outcome.names)}
    counts = {name: count for name, count in counts.items() if count}
    return {"completed": 0, **(_asked_for(counts) if is_length_asked else counts)}


def _spread(requests: Requests, metric: str) -> dict[str, float | None]:
    column, served = requests.number(metric), requests.served()
    known: Floats = column.values[served & column.known]
    if not known.size:
        return {**dict.fromkeys(QUANTILES), "mean": None, "n": 0}
    sample = known
    if METRICS[metric].better == "lower":
        failures = np.full(int((~served).sum()), np.inf)
        sample = np.concatenate([known, failures])
    spread: dict[str, float | None] = {
        name: percentile(sample, q).value for name, q in QUANTILES.items()
    }
    return {**spread, "mean": float(known.mean()), "n": int(sample.size)}


def _of_gaps(gaps: list[LogHistogram]) -> dict[str, float | None]:
    whole = LogHistogram.empty()
    for each in gaps:
        whole = whole.plus(each)
    spread: dict[str, float | None] = {
        name: whole.quantile(q) for name, q in QUANTILES.items()
    }
    return {**spread, "mean": whole.mean(), "n": whole.n}


def _client(health: ClientHealth | None) -> dict[str, Any]:
    if health is None:
        return {"valid": False, "reasons": ["the client's health was not recorded"]}
    return {"valid": health.valid, "reasons": list(health.reasons)}


# -- for people ------------------------------------------------------------------------


def speed_of(run: Measured) -> Speed:
    """Percentiles with intervals, distributions and rates of every level."""
    limits = {f"{name}_s": {"p99": most} for name, most in run.slo.items()}
    agreed = Agreed(
        performance=msgspec.convert({"slo": limits}, PerformanceSpec),
        policy=PolicySpec(alpha=0.025),
    )
    return measure_speed(Load(requests=run.requests, agreed=agreed, gaps=run.gaps))


def bins_of(run: Measured) -> tuple[TimeBin, ...]:
    """How requests ended, over time."""
    bins = time_bins(run.requests)
    if not run.is_length_asked:
        return bins
    return tuple(
        msgspec.structs.replace(each, outcomes=_asked_for(each.outcomes))
        for each in bins
    )


def _asked_for(counts: Mapping[str, int]) -> dict[str, int]:
    """Answers that ended by their own limit counted among the completed."""
    done = counts.get("completed", 0) + counts.get("truncated", 0)
    others = {k: n for k, n in counts.items() if k not in ("completed", "truncated")}
    return {"completed": done, **others} if done else others


def in_flight(run: Measured) -> tuple[InFlight, ...]:
    """How many requests were under way, over time, level by level."""
    found = []
    for phase, level in run.requests.levels():
        some = run.requests.where(run.requests.at(phase=phase, level=level))
        start, end = some.number("intended_s"), some.number("end_s")
        known = start.known & end.known
        course = flying(start.values[known], end.values[known])
        found.append(InFlight(phase=phase, level=level, course=course))
    return tuple(found)
