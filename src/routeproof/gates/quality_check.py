"""One quality question to one check: certified, harmed or undecided."""

import msgspec

from routeproof.gates.facts import JudgeRow, QualityRow
from routeproof.gates.result import Check, Status
from routeproof.stats.interval import NonInferiority

MOST_UNANSWERED = 0.05
"""Share of pairs without a score on either arm above which a question stays open:
what is wrong there may be wrong with the measurement."""


def quality_check(row: QualityRow, alpha: float) -> Check:
    """The status of one question, with every number it rests on.

    A screened slice fails only when it is harmed after Holm's correction; a required
    class with fewer units than asked is inconclusive however good it looks, and a
    question with missing pairs passes only if it would with every one of them lost
    (``answer`` holds that already).
    """
    answer = row.answer
    if answer is None or not row.units:
        return _check(row, _unanswered(row))
    status, reason, notes = _decide(row, answer, alpha)
    return _check(row, (status, f"{_numbers(row, answer)}: {reason}", notes))


_Told = tuple[Status, str, tuple[str, ...]]


def _unanswered(row: QualityRow) -> _Told:
    wanted = row.pairs_required
    tail = f" of the {wanted} required" if wanted else ""
    lost = f", {row.unanswered} were answered by neither arm" if row.unanswered else ""
    reason = f"no pair{tail} could be scored{lost}"
    return Status.INCONCLUSIVE, reason, ()


def _decide(row: QualityRow, answer: NonInferiority, alpha: float) -> _Told:
    notes = () if answer.note is None else (answer.note,)
    if _is_harmed(row, answer, alpha):
        return Status.FAILED, _harm(row, answer), notes
    if row.pairs_required and row.units < row.pairs_required:
        reason = f"{row.pairs_required} are required"
        return Status.INCONCLUSIVE, reason, notes
    if answer.decision != "certified":
        return Status.INCONCLUSIVE, _undecided(row, answer), notes
    if row.unanswered > MOST_UNANSWERED * (row.units + row.unanswered):
        reason = f"{row.unanswered} pairs more were answered by neither arm"
        return Status.INCONCLUSIVE, reason, notes
    if answer.harm_p_value is not None and answer.harm_p_value <= alpha:
        return Status.PASSED, "worse, within tolerance", (*notes, "worse")
    return Status.PASSED, "within tolerance", notes


def as_believed(check: Check, judge: JudgeRow | None) -> Check:
    """A check that rests on a judge: open where the judge cannot be believed.

    Whatever the judge says then is shown and decides nothing, neither way.
    """
    if judge is None or not judge.problems or check.status is Status.INCONCLUSIVE:
        return check
    why = "; ".join(judge.problems)
    return msgspec.structs.replace(
        check,
        status=Status.INCONCLUSIVE,
        reason=f"the judge {judge.who} decides nothing, as {why}. It says: "
        f"{check.reason}",
    )


def _is_harmed(row: QualityRow, answer: NonInferiority, alpha: float) -> bool:
    if row.origin != "screening":
        return answer.decision == "harmed"
    adjusted = row.adjusted_harm_p
    return answer.decision == "harmed" and adjusted is not None and adjusted <= alpha


def _harm(row: QualityRow, answer: NonInferiority) -> str:
    if row.origin == "screening":
        return "harmed, also after correction for the slices looked at"
    high = answer.interval.high
    if high is not None and high < -answer.tolerance:
        return "a loss larger than the tolerance is shown"
    return "harm is shown and a loss larger than the tolerance is not excluded"


def _undecided(row: QualityRow, answer: NonInferiority) -> str:
    if row.missing and row.units >= (answer.n_minimum or 0):
        return f"{row.missing} missing pairs count as lost, and then it is not excluded"
    if answer.n_minimum is not None and row.units < answer.n_minimum:
        return f"not powered: {answer.n_minimum} pairs are the least that can decide"
    if answer.n_needed is not None and answer.n_needed > row.units:
        told = "" if row.power is None else f" ({row.units} have a power of "
        told += "" if row.power is None else f"{row.power:.0%})"
        return f"not powered: about {answer.n_needed} units decide it{told}"
    return "a loss larger than the tolerance is not excluded"


def _numbers(row: QualityRow, answer: NonInferiority) -> str:
    points = f"{answer.estimate * 100:+.1f} points"
    low, high = answer.interval.low, answer.interval.high
    if low is not None and high is not None:
        points += f" [{low * 100:+.1f}, {high * 100:+.1f}]"
    text = f"{points} over {row.units} pairs, tolerance {answer.tolerance * 100:g}"
    if row.losses is not None and row.gains is not None:
        text += f", {row.losses} lost and {row.gains} won"
    if row.ceiling is not None and row.settled_after is not None:
        text += f", settled after {row.settled_after} of {row.ceiling}"
    return text


def _check(row: QualityRow, told: _Told) -> Check:
    status, reason, notes = told
    answer = row.answer
    return Check(
        name=row.question,
        status=status,
        reason=reason,
        kind="difference",
        unit="1",
        baseline=row.means.baseline,
        candidate=row.means.candidate,
        estimate=None if answer is None else answer.estimate,
        interval=None if answer is None else answer.interval,
        limit=None if answer is None else -answer.tolerance,
        n=row.units,
        n_needed=_needed(row),
        p_value=None if answer is None else answer.p_value,
        required=row.is_required,
        slice=row.slice,
        notes=notes,
    )


def _needed(row: QualityRow) -> int | None:
    asked = [n for n in (row.pairs_required, answer_needs(row)) if n is not None]
    return max(asked) if asked and max(asked) > row.units else None


def answer_needs(row: QualityRow) -> int | None:
    """Units that would decide the question, by its power or at the very least."""
    answer = row.answer
    if answer is None or answer.decision != "undecided":
        return None
    return answer.n_needed or answer.n_minimum
