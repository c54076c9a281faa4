"""Does a lossless change give the same answers, greedy and sampled?"""

from routeproof.gates.evidence import Evidence
from routeproof.gates.facts import EqualityRow
from routeproof.gates.more_often import more_often
from routeproof.gates.result import Check, Status


def equality_checks(evidence: Evidence, alpha: float) -> list[Check]:
    """Greedy texts of a lossless change, against what the baseline does to itself."""
    rows = {row.pair: row for row in evidence.quality.equality}
    seen, floor = rows.get("candidate"), rows.get("control")
    if seen is None or not seen.pairs:
        return []
    is_lossless = evidence.routes is not None and (
        evidence.routes.change_class == "lossless"
    )
    shown = _told(seen) + (f"; against itself {_told(floor)}" if floor else "")
    if not is_lossless:
        return [_equality(Status.PASSED, f"{shown} (a lossy change need not match)")]
    if seen.equal == seen.pairs:
        return [_equality(Status.PASSED, shown)]
    if _is_more(seen.real or 0, seen, floor, alpha, only_real=True):
        reason = f"a lossless change diverges for real: {shown}"
        return [_equality(Status.FAILED, reason)]
    if floor and not _is_more(seen.pairs - seen.equal, seen, floor, alpha):
        return [_equality(Status.PASSED, f"no more than the noise: {shown}")]
    if seen.near_ties == seen.pairs - seen.equal:
        return [_equality(Status.PASSED, f"all divergences are near ties: {shown}")]
    reason = f"divergences that cannot be told from near ties: {shown}"
    return [_equality(Status.INCONCLUSIVE, reason)]


def _equality(status: Status, reason: str) -> Check:
    return Check(name="greedy_equality", status=status, reason=reason, required=False)


def sampled_checks(evidence: Evidence, alpha: float) -> list[Check]:
    """Sampled answers of a lossless change must come from the same distribution.

    Fails when a difference is significant and the A/A control shows none. That none
    is found is not a proof of equality, and the reason says so.
    """
    checks = []
    is_lossless = evidence.routes is not None and (
        evidence.routes.change_class == "lossless"
    )
    for row in evidence.quality.sampled:
        p, floor = _number(row.get("p_value")), _number(row.get("control_p_value"))
        if p is None:
            continue
        differs = p <= alpha and (floor is None or floor > alpha)
        shown = (
            f"{row['test']} of sampled answers over {row['prompts']} prompts and "
            f"{row['answers']} answers: p {p:.3g}"
        )
        if floor is not None:
            shown += f", against itself {floor:.3g}"
        word = "differs" if differs else "no difference found, which proves none"
        checks.append(
            Check(
                name=f"sampled[{row['test']}]",
                status=Status.FAILED if differs and is_lossless else Status.PASSED,
                reason=f"{shown}: {word}",
                p_value=p,
                n=int(row["prompts"] or 0),
                required=False,
            )
        )
    return checks


def _told(row: EqualityRow) -> str:
    parts = [f"{row.equal} of {row.pairs} texts equal"]
    if row.near_ties is not None and row.real is not None and row.equal < row.pairs:
        parts.append(f"{row.near_ties} near ties, {row.real} real divergences")
    return ", ".join(parts)


def _is_more(
    count: int,
    seen: EqualityRow,
    floor: EqualityRow | None,
    alpha: float,
    *,
    only_real: bool = False,
) -> bool:
    """Whether divergences are more frequent than on the A/A control."""
    if count == 0:
        return False
    if floor is None or not floor.pairs:
        return only_real
    floor_count = (floor.real or 0) if only_real else floor.pairs - floor.equal
    return more_often(count, seen.pairs, floor_count, floor.pairs) <= alpha


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None
