"""Gate 6: does it fit, does it stay up, does it leak?"""

from scipy.special import bdtr

from routeproof.gates.evidence import Evidence
from routeproof.gates.facts import MemoryRow, TrendRow
from routeproof.gates.fold import gate_result
from routeproof.gates.result import Check, Flag, GateResult, Status
from routeproof.gates.trends import TRENDED
from routeproof.metrics.table import METRICS

PEAKS = ("device_memory_bytes", "process_rss_bytes", "memory_bytes")
"""Series whose peak counts as memory, the most telling first."""

BREAKS = frozenset({"crashes", "restarts"})
"""Events of which a single one on the candidate fails the gate."""

HANGS = frozenset({"stuck_streams"})
"""Events of which one more than on the baseline fails the gate."""

WORSE_TREND = 0.2
"""Change over the soak, as a share, from which a trend fails the gate."""

MORE_PREEMPTIONS = 0.01
"""Preemptions per request beyond the baseline's from which the gate fails."""

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
        *_leak(rows, limits.leak_bytes_per_hour_max, stability.soak_s),
        *_drained(rows.get("kv_used_share")),
        *_preempted(rows.get("preemptions"), evidence),
    ]
    events = _events(evidence)
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
        return _absent("peak_memory", limit)
    return [_ratio("peak_memory", row, limit, is_most=True)]


def _capacity(rows: dict[str, MemoryRow], limit: float | None) -> list[Check]:
    row = rows.get("kv_capacity_tokens")
    if row is None:
        return _absent("kv_capacity", limit)
    return [_ratio("kv_capacity", row, limit, is_most=False)]


def _absent(name: str, limit: float | None) -> list[Check]:
    if limit is None:
        return []
    reason = f"a limit of {limit:g} is agreed, and nothing was sampled to hold it to"
    return [Check(name=name, status=Status.NOT_MEASURED, reason=reason, limit=limit)]


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


def _leak(
    rows: dict[str, MemoryRow], limit: float | None, soak_s: float | None
) -> list[Check]:
    row = next((rows[name] for name in PEAKS if name in rows), None)
    if row is None or row.per_hour.candidate is None:
        return _absent("leak", limit)
    slope, low = row.per_hour.candidate, row.per_hour_low.candidate
    shown = f"{row.name} grows by {slope:.3g} bytes an hour"
    if soak_s is None:
        status, reason = Status.INCONCLUSIVE, f"{shown}, without a soak to trust it"
    elif limit is None:
        status, reason = Status.PASSED, f"{shown}; no limit is agreed"
    elif low is not None and low > limit:
        status, reason = Status.FAILED, f"{shown}, more than the {limit:.3g} agreed"
    elif slope > limit:
        status, reason = Status.INCONCLUSIVE, f"{shown}, perhaps over {limit:.3g}"
    else:
        status, reason = Status.PASSED, f"{shown}, inside the {limit:.3g} agreed"
    return [
        Check(
            name="leak",
            status=status,
            reason=reason,
            kind="value",
            unit="bytes/h",
            baseline=row.per_hour.baseline,
            candidate=slope,
            limit=limit,
            required=limit is not None,
        )
    ]


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


def _preempted(row: MemoryRow | None, evidence: Evidence) -> list[Check]:
    """Requests pushed out of the batch, counted per request sent to each engine.

    The control is sent to the baseline's engine, so that one serves two arms.
    """
    if row is None or row.peak.candidate is None:
        return []
    sent = {"baseline": 0.0, "candidate": 0.0}
    for load in evidence.speed.loads:
        sent["candidate" if load.arm == "candidate" else "baseline"] += load.requests
    own, other = row.peak.candidate, row.peak.baseline or 0.0
    per_request = own / sent["candidate"] if sent["candidate"] else 0.0
    per_base = other / sent["baseline"] if sent["baseline"] else 0.0
    share = sent["candidate"] / max(1.0, sum(sent.values()))
    # Given all preemptions, the candidate's are binomial with its share of requests.
    p = 1 - float(bdtr(own - 1, int(own + other), share)) if own >= 1 else 1.0
    more = per_request - per_base >= MORE_PREEMPTIONS
    is_worse = more and p <= evidence.agreed.policy.alpha
    return [
        Check(
            name="preemptions",
            status=Status.FAILED if is_worse else Status.PASSED,
            reason=f"{own:g} preemptions on the candidate, {other:g} on the baseline",
            kind="value",
            unit="count",
            baseline=row.peak.baseline,
            candidate=own,
            p_value=p,
            required=False,
        )
    ]


def _events(evidence: Evidence) -> list[Check]:
    counts: dict[tuple[str, str], float] = {}
    for row in evidence.stability.events:
        value = row.get("count")
        if isinstance(value, int | float):
            counts[(str(row["name"]), str(row["arm"]))] = float(value)
    checks = []
    for name in sorted({name for name, _ in counts}):
        candidate = counts.get((name, "candidate"))
        if candidate is None:
            continue
        baseline = counts.get((name, "baseline"))
        is_break = (name in BREAKS and candidate > 0) or (
            name in HANGS and candidate > (baseline or 0)
        )
        checks.append(
            Check(
                name=name,
                status=Status.FAILED if is_break else Status.PASSED,
                reason=f"{candidate:g} {name.replace('_', ' ')} on the candidate, "
                f"{'unknown' if baseline is None else f'{baseline:g}'} on the baseline",
                kind="value",
                baseline=baseline,
                candidate=candidate,
                required=name in BREAKS,
            )
        )
    return checks


def _worsening(row: TrendRow) -> float:
    """The change turned so that above 0 is worse."""
    change = row.change_share or 0.0
    metric = METRICS.get(row.metric)
    better_higher = metric is None or metric.better == "higher"
    return -change if better_higher else change


def trend_checks(evidence: Evidence, *, only: str) -> list[Check]:
    """Whether one metric worsens over the soak on the candidate alone."""
    rows = {(row.metric, row.arm): row for row in evidence.stability.trends}
    alpha = evidence.agreed.policy.alpha
    checks = []
    for (metric, arm), row in sorted(rows.items()):
        if (metric, arm) != (only, "candidate") or row.change_share is None:
            continue
        base = rows.get((metric, "baseline"))
        shown = base is not None and base.change_share is not None
        floor = abs(base.change_share or 0.0) if base is not None and shown else 0.0
        sure = row.p_value is not None and row.p_value <= alpha
        worse = sure and _worsening(row) > max(WORSE_TREND, 2 * floor)
        checks.append(
            Check(
                name=f"trend[{metric}]",
                status=Status.FAILED if worse else Status.PASSED,
                reason=f"{metric} changes by {row.change_share:+.0%} over the soak",
                kind="ratio",
                baseline=row.first,
                candidate=row.last,
                estimate=row.change_share,
                p_value=row.p_value,
                n=row.n,
                required=False,
            )
        )
    return checks
