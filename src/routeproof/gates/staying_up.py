"""Does it stay up, and stay as it was? Checks of events and trends."""

from scipy.special import bdtr

from routeproof.gates.evidence import Evidence
from routeproof.gates.facts import MemoryRow, TrendRow
from routeproof.gates.more_often import more_often
from routeproof.gates.result import Check, Status
from routeproof.gates.stability import NORMAL_STOPS
from routeproof.metrics.table import METRICS

BREAKS = frozenset({"crashes", "restarts"})
"""Events of which a single one on the candidate fails the gate."""

HANGS = frozenset({"stuck_streams"})
"""Events of which one more than on the baseline fails the gate."""

WORSE_TREND = 0.2
"""Change over the soak, as a share, from which a trend fails the gate."""

MORE_ABNORMAL = 0.02
"""Share of abnormal ends beyond the baseline's from which the gate fails."""

MORE_PREEMPTIONS = 0.01
"""Preemptions per request beyond the baseline's from which the gate fails."""


def preemption_checks(row: MemoryRow | None, evidence: Evidence) -> list[Check]:
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


def event_checks(evidence: Evidence) -> list[Check]:
    """One check for each kind of event that was counted on the candidate."""
    counts: dict[tuple[str, str], float] = {}
    for row in evidence.stability.events:
        value = row.get("count")
        if isinstance(value, int | float):
            counts[(str(row["name"]), str(row["arm"]))] = float(value)
    checks = []
    for name in sorted({name for name, _ in counts} - {NORMAL_STOPS}):
        candidate = counts.get((name, "candidate"))
        if candidate is None:
            continue
        baseline = counts.get((name, "baseline"))
        status = Status.PASSED
        if name in BREAKS and candidate > 0:
            status = Status.FAILED
        elif name in HANGS and candidate > 0:
            # Of a baseline that tells none, nobody knows whether it had fewer.
            status = Status.INCONCLUSIVE
            if baseline is not None:
                status = Status.FAILED if candidate > baseline else Status.PASSED
        checks.append(
            Check(
                name=name,
                status=status,
                reason=f"{candidate:g} {name.replace('_', ' ')} on the candidate, "
                f"{'unknown' if baseline is None else f'{baseline:g}'} on the baseline",
                kind="value",
                baseline=baseline,
                candidate=candidate,
                required=name in BREAKS,
            )
        )
    return checks


def normal_stop_checks(evidence: Evidence) -> list[Check]:
    """Whether as many answers of the soak end by themselves as on the baseline.

    Fails when abnormal ends (errors, cut or truncated answers) are more frequent on the
    candidate, significantly and by ``MORE_ABNORMAL``.
    """
    seen = {
        str(row["arm"]): (int(row["count"] or 0), int(row["of"] or 0))
        for row in evidence.stability.events
        if row["name"] == NORMAL_STOPS
    }
    if "candidate" not in seen:
        return []
    stops, n = seen["candidate"]
    base_stops, base_n = seen.get("baseline", (0, 0))
    p = more_often(n - stops, n, base_n - base_stops, base_n)
    share = stops / n
    base = base_stops / base_n if base_n else None
    is_worse = base is not None and base - share >= MORE_ABNORMAL
    is_worse = is_worse and p <= evidence.agreed.policy.alpha
    told = "unknown" if base is None else f"{base:.1%}"
    return [
        Check(
            name="normal_stops",
            status=Status.FAILED if is_worse else Status.PASSED,
            reason=f"{share:.1%} of the candidate's answers in the soak ended by "
            f"themselves, {told} of the baseline's",
            kind="value",
            unit="1",
            baseline=base,
            candidate=share,
            p_value=p,
            n=n,
            required=False,
        )
    ]


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
                kind="value",
                unit="1",
                baseline=None if base is None else base.change_share,
                candidate=row.change_share,
                limit=WORSE_TREND,
                p_value=row.p_value,
                n=row.n,
                required=False,
            )
        )
    return checks
