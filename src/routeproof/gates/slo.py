"""The service levels agreed, held against the percentiles at the target load."""

from routeproof.gates.evidence import Evidence
from routeproof.gates.facts import LatencyRow, Percentile
from routeproof.gates.result import Check, Status

ALIASES = {
    "inter_token_latency": "time_per_output_token",
    "ttft": "time_to_first_token",
    "tpot": "time_per_output_token",
    "itl": "time_per_output_token",
    "e2e_latency": "request_latency",
    "inter_chunk_latency": "chunk_gap",
}
"""Other names of the field for metrics of the table. What tools call inter-token
latency is here the time per token, not the gap between chunks."""


def metric_of(name: str) -> str:
    """The metric an SLO or a gain names: without its unit, by its name in the table."""
    bare = name.removesuffix("_s").removesuffix("_per")
    return ALIASES.get(bare, bare)


def target_load(evidence: Evidence) -> tuple[str, str] | None:
    """Phase and level at which the SLOs are judged: the top of the sweep.

    Without a sweep the soak, then the single stream. ``None`` when nothing ran.
    """
    seen = {(row.phase, row.level): row.asked for row in evidence.speed.loads}
    for phase in ("sweep", "soak", "latency", "quality"):
        levels = [(asked or 0.0, key) for key, asked in seen.items() if key[0] == phase]
        if levels:
            return max(levels)[1]
    return None


def slo_checks(evidence: Evidence) -> list[Check]:
    """One check for each SLO at the target load.

    Passed when the upper limit of the percentile is inside, failed when its lower
    limit is outside or the percentile falls into the failures; else inconclusive,
    also when there are too few requests for that percentile.
    """
    load = target_load(evidence)
    rows = {
        (row.arm, row.metric): row
        for row in evidence.speed.latencies
        if (row.phase, row.level) == load
    }
    checks = []
    for metric, limits in sorted(evidence.agreed.performance.slo.items()):
        name = metric_of(metric)
        row, base = rows.get(("candidate", name)), rows.get(("baseline", name))
        for quantile, limit in sorted(limits.items()):
            checks.append(_slo(f"{name} {quantile}", quantile, limit, (row, base)))
    return checks


def _slo(
    name: str,
    quantile: str,
    limit: float,
    rows: tuple[LatencyRow | None, LatencyRow | None],
) -> Check:
    row, base = rows
    label = f"slo[{name}]"
    found = None if row is None else _find(row, quantile)
    if row is None or found is None:
        reason = f"{name} was not measured at the target load"
        return Check(name=label, status=Status.NOT_MEASURED, reason=reason, limit=limit)
    status, reason = _held(name, found, limit, row)
    base_value = None if base is None else _value(base, quantile)
    if status is Status.FAILED and base_value is not None and base_value > limit:
        reason += "; the baseline misses it too"
    return Check(
        name=label,
        status=status,
        reason=f"{reason} ({row.level})",
        kind="value",
        unit=row.unit,
        baseline=base_value,
        candidate=_value(row, quantile),
        limit=limit,
        n=row.n,
        n_needed=found.n_needed if found.value is None else None,
    )


def _held(
    name: str, found: Percentile, limit: float, row: LatencyRow
) -> tuple[Status, str]:
    if found.is_infinite:
        reason = f"{name} falls into the {row.failed} of {row.n} requests that failed"
        return Status.FAILED, reason
    if found.value is None:
        reason = f"{row.n} requests are too few for {name}"
        return Status.INCONCLUSIVE, reason
    shown = f"{name} is {found.value:.3g} {row.unit}, SLO {limit:g}"
    if found.low is not None and found.low > limit:
        return Status.FAILED, f"{shown}: missed"
    if found.high is not None and found.high <= limit:
        return Status.PASSED, f"{shown}: met"
    return Status.INCONCLUSIVE, f"{shown}: its interval reaches over the SLO"


def quantile_of(text: str) -> float | None:
    """``p95`` is 0.95, ``p99.9`` is 0.999; ``None`` for anything else."""
    try:
        value = float(text.removeprefix("p")) / 100
    except ValueError:
        return None
    return round(value, 9) if text.startswith("p") and 0 < value < 1 else None


def _find(row: LatencyRow, quantile: str) -> Percentile | None:
    wanted = quantile_of(quantile)
    return next((p for p in row.percentiles if p.q == wanted), None)


def _value(row: LatencyRow, quantile: str) -> float | None:
    if quantile == "mean":
        return row.mean
    found = _find(row, quantile)
    return None if found is None else found.value
