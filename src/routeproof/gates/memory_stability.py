"""Gate 6: does it fit, does it stay up, does it leak?"""

from routeproof.gates.evidence import Evidence
from routeproof.gates.facts import MemoryRow
from routeproof.gates.fold import gate_result
from routeproof.gates.leaks import PEAKS, absent, leak_checks
from routeproof.gates.result import Check, Flag, GateResult, Status
from routeproof.gates.staying_up import (
    event_checks,
    normal_stop_checks,
    preemption_checks,
    trend_checks,
)
from routeproof.gates.trends import TRENDED

DRAINED = 0.05
"""Share of the KV cache that may still be in use after the last request."""


def judge_memory_stability(evidence: Evidence) -> GateResult:
    """Whether the candidate stays inside its memory and stays up.

    Fails over a memory limit, on a leak beyond the agreed slope, and on a crash, a
    restart or a stuck stream of the candidate. Without telemetry memory is not
    measured, and crashes that the client saw count all the same.
    """
    stability, limits = evidence.stability, evidence.agreed.memory
    rows = {row.name: row for row in stability.memory}
    memory = [
        *_peak(rows, limits.peak_bytes_ratio_max),
        *_capacity(rows, limits.kv_capacity_ratio_min),
        *leak_checks(rows, limits.leak_bytes_per_hour_max, stability.soak_s),
        *_drained(rows.get("kv_used_share")),
        *preemption_checks(rows.get("preemptions"), evidence),
    ]
    events = [*event_checks(evidence), *normal_stop_checks(evidence)]
    trends = [
        check for metric in TRENDED for check in trend_checks(evidence, only=metric)
    ]
    over = any(check.status is Status.FAILED for check in memory)
    broken = any(check.status is Status.FAILED for check in (*events, *trends))
    found: tuple[tuple[Flag, bool], ...] = (("memory_over", over), ("unstable", broken))
    checks = [*memory, *events, *trends]
    if not stability.has_telemetry:
        checks.insert(0, _no_telemetry())
    return gate_result(
        "memory_stability",
        checks,
        flags=[flag for flag, holds in found if holds],
        passed="inside the memory limits, no crash, no leak",
    )


def _no_telemetry() -> Check:
    return Check(
        name="telemetry",
        status=Status.NOT_MEASURED,
        reason="no telemetry: memory of the engine was not sampled",
    )


def _peak(rows: dict[str, MemoryRow], limit: float | None) -> list[Check]:
    row = next((rows[name] for name in PEAKS if name in rows), None)
    if row is None:
        return absent("peak_memory", limit)
    return [_ratio("peak_memory", row, limit, is_most=True)]


def _capacity(rows: dict[str, MemoryRow], limit: float | None) -> list[Check]:
    row = rows.get("kv_capacity_tokens")
    if row is None:
        return absent("kv_capacity", limit)
    return [_ratio("kv_capacity", row, limit, is_most=False)]


def _ratio(name: str, row: MemoryRow, limit: float | None, *, is_most: bool) -> Check:
    ratio = row.peak.ratio()
    if ratio is None:
        reason = f"{row.name} is not known on both arms"
        status = Status.NOT_MEASURED
    elif limit is None:
        reason = f"{row.name} is {ratio:.2f} times the baseline's; no limit is agreed"
        status = Status.PASSED
    else:
        is_over = ratio > limit if is_most else ratio < limit
        status = Status.FAILED if is_over else Status.PASSED
        side = "at most" if is_most else "at least"
        reason = (
            f"{row.name} is {ratio:.2f} times the baseline's, {side} {limit:g} agreed"
        )
    return Check(
        name=name,
        status=status,
        reason=reason,
        kind="ratio",
        unit=row.unit,
        baseline=row.peak.baseline,
        candidate=row.peak.candidate,
        estimate=ratio,
        limit=limit,
        n=None if row.samples.candidate is None else int(row.samples.candidate),
        required=ratio is not None or limit is not None,
    )


def _drained(row: MemoryRow | None) -> list[Check]:
    """KV blocks still held when nothing runs are lost to the next request."""
    held = None if row is None else row.after_drain.candidate
    if row is None or held is None:
        return []
    base = row.after_drain.baseline
    is_lost = held > DRAINED + (base or 0.0)
    return [
        Check(
            name="kv_after_drain",
            status=Status.FAILED if is_lost else Status.PASSED,
            reason=f"{held:.0%} of the KV cache is still in use after the last request",
            kind="value",
            unit="1",
            baseline=base,
            candidate=held,
            limit=DRAINED,
            required=False,
        )
    ]
