"""Gate 5, the veto: are the answers still as good?"""

from collections.abc import Iterable

from routeproof.gates.evidence import Evidence
from routeproof.gates.facts import EqualityRow, QualityRow, RatioRow, Row
from routeproof.gates.fold import gate_result
from routeproof.gates.more_often import more_often
from routeproof.gates.quality_check import quality_check
from routeproof.gates.result import Check, Flag, GateResult, Status


def judge_correctness(evidence: Evidence) -> GateResult:
    """Whether quality is within tolerance, overall and in every required slice.

    Fails on harm in a required question, on a screened slice harmed after Holm, on
    an outcome class that became more frequent than its tolerance, on real greedy
    divergences beyond the A/A control in a change that claims to be lossless, and
    when the degeneration guard trips. Too few pairs are inconclusive, never a pass.
    """
    quality, alpha = evidence.quality, evidence.agreed.policy.alpha
    asked = [quality_check(row, alpha) for row in quality.rows]
    guard = [_guard_check(row) for row in quality.guard]
    length = _length_check(
        evidence.speed.length_ratio, evidence.agreed.policy.length_ratio_guard
    )
    checks = [
        *asked,
        *guard,
        *length,
        *_equality_checks(evidence, alpha),
        *_sampled_checks(evidence, alpha),
    ]
    if not any(check.required for check in asked):
        checks.insert(0, _nothing_asked())
    return gate_result(
        "correctness",
        checks,
        flags=_flags(quality.rows, checks),
        hints=_hints(asked, quality.rows),
        passed=_passed(asked),
    )


def tripped(evidence: Evidence) -> tuple[str, ...]:
    """Why speed and acceptance numbers are void; empty when they are not."""
    limit = evidence.agreed.policy.length_ratio_guard
    checks = [
        *(_guard_check(row) for row in evidence.quality.guard),
        *_length_check(evidence.speed.length_ratio, limit),
    ]
    return tuple(check.reason for check in checks if check.status is Status.FAILED)


def _nothing_asked() -> Check:
    return Check(
        name="quality",
        status=Status.NOT_MEASURED,
        reason="no pair of answers was scored: nothing is known of the quality",
    )


def _guard_check(row: Row) -> Check:
    return Check(
        name=f"guard[{row['check']}]",
        status=Status.FAILED if row["tripped"] else Status.PASSED,
        reason=str(row["reason"]),
        kind="difference",
        unit="1",
        baseline=_number(row.get("baseline")),
        candidate=_number(row.get("candidate")),
        p_value=_number(row.get("p_value")),
    )


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def _length_check(row: RatioRow | None, guard: float) -> list[Check]:
    """Two-sided: answers much shorter or longer than the baseline's void the speed."""
    if row is None or row.ratio is None or row.interval is None:
        return []
    low, high = row.interval.low, row.interval.high
    least, most = 1 - guard, 1 + guard
    inside = low is not None and high is not None and low >= least and high <= most
    outside = (high is not None and high < least) or (low is not None and low > most)
    if inside:
        status, word = Status.PASSED, "stays within"
    elif outside:
        status, word = Status.FAILED, "is outside"
    else:
        status, word = Status.INCONCLUSIVE, "may be outside"
    return [
        Check(
            name="guard[output_length]",
            status=status,
            reason=f"output length is {row.ratio:.2f} times the baseline's, which "
            f"{word} the guard of {least:.2f} to {most:.2f}",
            kind="ratio",
            unit="1",
            baseline=row.values.baseline,
            candidate=row.values.candidate,
            estimate=row.ratio,
            interval=row.interval,
            limit=guard,
            n=row.pairs,
            required=False,
        )
    ]


def _equality_checks(evidence: Evidence, alpha: float) -> list[Check]:
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


def _sampled_checks(evidence: Evidence, alpha: float) -> list[Check]:
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


def _flags(rows: Iterable[QualityRow], checks: list[Check]) -> tuple[Flag, ...]:
    guard = any(
        check.name.startswith("guard[") and check.status is Status.FAILED
        for check in checks
    )
    suspicious = {row.question for row in rows if is_suspicious(row)}
    open_slice = any(
        check.status is Status.INCONCLUSIVE
        and not check.required
        and (check.name in suspicious or check.name.startswith(("guard[", "greedy")))
        for check in checks
    )
    found: tuple[tuple[Flag, bool], ...] = (
        ("guard_tripped", guard),
        ("screening_inconclusive", open_slice),
    )
    return tuple(flag for flag, holds in found if holds)


def is_suspicious(row: QualityRow) -> bool:
    """Whether an undecided slice caps the verdict.

    It does when it shows a sign of harm (the estimate is beyond the tolerance) or when
    it had the pairs to be decided and was not. A slice too small for its tolerance
    that shows nothing is listed as not powered and caps nothing: name it under
    ``classes_required`` to have it decided.
    """
    answer = row.answer
    if answer is None or answer.decision == "certified":
        return False
    if row.units and answer.estimate < -answer.tolerance:
        return True
    return row.units >= (answer.n_needed or answer.n_minimum or 0)


def _hints(checks: list[Check], rows: Iterable[QualityRow]) -> list[str]:
    """When one class alone is odd, say where to look first."""
    by_name = {row.question: row for row in rows}
    bad = [
        check
        for check in checks
        if check.status is Status.FAILED and by_name[check.name].slice.get("class")
    ]
    if not bad:
        return []
    classes = sorted({by_name[check.name].slice["class"] for check in bad})
    return [
        f"only some classes are harmed ({', '.join(classes)}): look first at the chat "
        "template, stop tokens and tool or schema handling of the candidate"
    ]


def _passed(checks: list[Check]) -> str:
    asked = [check for check in checks if check.required]
    return f"all {len(asked)} required quality questions are within tolerance"
