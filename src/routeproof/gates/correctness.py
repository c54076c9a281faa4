"""Gate 5, the veto: are the answers still as good?"""

from collections.abc import Iterable

from routeproof.gates.evidence import Evidence
from routeproof.gates.facts import QualityRow, RatioRow, Row
from routeproof.gates.fold import gate_result
from routeproof.gates.quality_check import as_believed, quality_check
from routeproof.gates.repeats import seed_checks
from routeproof.gates.result import Check, Flag, GateResult, Status
from routeproof.gates.same_texts import equality_checks, reclassed, sampled_checks


def judge_correctness(evidence: Evidence) -> GateResult:
    """Whether quality is within tolerance, overall and in every required slice.

    Fails on harm in a required question, on a screened slice harmed after Holm, on
    an outcome class that became more frequent than its tolerance, on real greedy
    divergences beyond the A/A control in a change that claims to be lossless, and
    when the degeneration guard trips. Too few pairs are inconclusive, never a pass.
    """
    quality, alpha = evidence.quality, evidence.agreed.policy.alpha
    judges = {row.scorer: row for row in quality.judges}
    asked = [
        as_believed(quality_check(row, alpha), judges.get(row.metric))
        for row in quality.rows
    ]
    guard = [_guard_check(row) for row in quality.guard]
    length = _length_check(
        evidence.speed.length_ratio, evidence.agreed.policy.length_ratio_guard
    )
    checks = [
        *asked,
        *guard,
        *length,
        *equality_checks(evidence, alpha),
        *sampled_checks(evidence, alpha),
        *seed_checks(quality.repeats, alpha),
    ]
    if not any(check.required for check in asked):
        checks.insert(0, _nothing_asked())
    return gate_result(
        "correctness",
        checks,
        flags=_flags(quality.rows, checks),
        hints=[*_hints(asked, quality.rows), *reclassed(checks)],
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


def _flags(rows: Iterable[QualityRow], checks: list[Check]) -> tuple[Flag, ...]:
    guard = any(
        check.name.startswith("guard[") and check.status is Status.FAILED
        for check in checks
    )
    suspicious = {row.question for row in rows if is_suspicious(row)}
    open_slice = any(
        check.status is Status.INCONCLUSIVE
        and not check.required
        and (
            check.name in suspicious
            or check.name.startswith(("guard[", "greedy", "sampled["))
        )
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
