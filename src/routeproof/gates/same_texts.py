"""Does a lossless change give the same answers, greedy and sampled?"""

from collections.abc import Iterable

from routeproof.gates.evidence import Evidence
from routeproof.gates.facts import EqualityRow
from routeproof.gates.more_often import more_often
from routeproof.gates.result import Check, Status
from routeproof.stats.equivalence import match_rate_of, share_seen
from routeproof.stats.interval import NonInferiority

MATCH_TOLERANCE = 0.03
"""Loss of greedy matches, beyond those of the A/A control, that must be excluded."""


def equality_checks(evidence: Evidence, alpha: float) -> list[Check]:
    """Greedy texts of a lossless change, against what the baseline does to itself.

    Once for the judged phase, and once for every level of load: a batching server is
    not deterministic, and how little depends on the load.
    """
    quality = evidence.quality
    groups: dict[tuple[str, str], dict[str, EqualityRow]] = {}
    for row in (*quality.equality, *quality.equality_under_load):
        groups.setdefault((row.phase, row.level), {})[row.pair] = row
    is_lossless = claims_lossless(evidence)
    checks = []
    for (phase, level), rows in groups.items():
        seen = rows.get("candidate")
        if seen is None or not seen.pairs or (level and not is_lossless):
            continue
        where = f"[level={level},phase={phase}]" if level else ""
        told = _judged(seen, rows.get("control"), alpha, is_lossless=is_lossless)
        checks.append(_equality(f"greedy_equality{where}", seen, *told))
    return checks


def claims_lossless(evidence: Evidence) -> bool:
    """Whether the change has to show that it changes nothing."""
    routes = evidence.routes
    is_lossless = routes is not None and routes.change_class == "lossless"
    return is_lossless and not evidence.judged_as_lossy


_Told = tuple[Status, str, int | None]


def _judged(
    seen: EqualityRow, floor: EqualityRow | None, alpha: float, *, is_lossless: bool
) -> _Told:
    shown = _told(seen) + (f"; against itself {_told(floor)}" if floor else "")
    if not is_lossless:
        return Status.PASSED, f"{shown} (a lossy change need not match)", None
    if seen.equal == seen.pairs:
        share = share_seen(seen.cases or seen.pairs, alpha)
        power = f"a fault in {share:.1%} of the answers would have been seen"
        return Status.PASSED, f"{shown}; {power} with {1 - alpha:.0%}", None
    if _is_more_real(seen, floor, alpha):
        return Status.FAILED, f"a lossless change diverges for real: {shown}", None
    match = _match(seen, alpha)
    if match is not None and match.decision == "certified":
        limit = f"a loss of more than {MATCH_TOLERANCE:.0%} of matches is excluded"
        return Status.PASSED, f"no more than the noise: {shown}; {limit}", None
    if seen.near_ties == seen.pairs - seen.equal:
        return Status.PASSED, f"all divergences are near ties: {shown}", None
    if match is None or match.decision == "harmed":
        reason = f"divergences that cannot be told from near ties: {shown}"
        return Status.INCONCLUSIVE, reason, None
    reason = f"more divergences than the noise are not excluded: {shown}"
    return Status.INCONCLUSIVE, reason, match.n_needed or match.n_minimum


def _match(seen: EqualityRow, alpha: float) -> NonInferiority | None:
    """Does the candidate repeat the baseline as often as the baseline does itself?"""
    if not seen.cases:
        return None
    return match_rate_of(
        control_only=seen.control_only or 0,
        candidate_only=seen.candidate_only or 0,
        cases=seen.cases,
        tolerance=MATCH_TOLERANCE,
        alpha=alpha,
    )


def _equality(
    name: str, seen: EqualityRow, status: Status, reason: str, needed: int | None
) -> Check:
    return Check(
        name=name,
        status=status,
        reason=reason,
        n=seen.cases or seen.pairs,
        n_needed=needed,
        required=False,
        slice={"level": seen.level, "phase": seen.phase} if seen.level else {},
    )


SHARPER = frozenset({"sampled_tokens", "siblings"})
"""Tests beside those of the texts, which share one error rate. Each of these accuses at
a fifth of it, so that together they hardly add to false alarms; a real fault shows at
thousandths."""

SHARPER_SHARE = 0.2


def sampled_checks(evidence: Evidence, alpha: float) -> list[Check]:
    """Sampled answers of a lossless change must come from the same distribution.

    Fails when a difference is significant and the A/A control shows none; open where
    the control shows it too, or where a sharper test is in doubt. That none is found
    is not a proof of equality, and the reason says so. Choices of one request that
    share their random numbers are a fault of any change.
    """
    checks = []
    is_lossless, fine = claims_lossless(evidence), Status.PASSED
    for row in evidence.quality.sampled:
        p, floor = _number(row.get("p_value")), _number(row.get("control_p_value"))
        if p is None:
            continue
        shown = (
            f"{row['test']} of sampled answers over {row['prompts']} prompts and "
            f"{row['answers']} answers: p {p:.3g}"
        )
        if floor is not None:
            shown += f", against itself {floor:.3g}"
        limit = alpha * (SHARPER_SHARE if row["test"] in SHARPER else 1.0)
        status, word = _difference(p, floor, (limit, alpha), row.get("power"))
        checks.append(
            Check(
                name=f"sampled[{row['test']}]",
                status=status if is_lossless or row["test"] == "siblings" else fine,
                reason=f"{shown}: {word}",
                p_value=p,
                n=int(row["prompts"] or 0),
                required=False,
            )
        )
    return checks


def _difference(
    p: float, floor: float | None, limits: tuple[float, float], power: object
) -> tuple[Status, str]:
    """What a p-value means, with the levels that accuse and that raise a doubt."""
    accuses, doubts = limits
    if p > doubts:
        tail = f"; {power}" if power else ""
        return Status.PASSED, f"no difference found, which proves none{tail}"
    if floor is not None and floor <= accuses:
        return Status.INCONCLUSIVE, "differs, and so does the baseline from itself"
    if p > accuses:
        return Status.INCONCLUSIVE, "may differ: more trials decide"
    return Status.FAILED, "differs"


def _told(row: EqualityRow) -> str:
    parts = [f"{row.equal} of {row.pairs} texts equal"]
    if row.near_ties is not None and row.real is not None and row.equal < row.pairs:
        parts.append(f"{row.near_ties} near ties, {row.real} real divergences")
    return ", ".join(parts)


def reclassed(checks: Iterable[Check]) -> list[str]:
    """What follows when a change that claims to be lossless is shown not to be."""
    failed = [
        check.name
        for check in checks
        if check.status is Status.FAILED
        and check.name.startswith(("greedy_equality", "sampled[", "probe[same"))
    ]
    if not failed:
        return []
    return [
        f"this change is lossy, whatever it claims ({', '.join(failed)}): it has to "
        "pass the full suite of task quality, with every required class, to be adopted"
    ]


def _is_more_real(seen: EqualityRow, floor: EqualityRow | None, alpha: float) -> bool:
    """Whether real divergences are more frequent than on the A/A control."""
    if not seen.real:
        return False
    if floor is None or not floor.pairs:
        return True
    return more_often(seen.real, seen.pairs, floor.real or 0, floor.pairs) <= alpha


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None
