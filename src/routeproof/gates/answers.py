"""A quality question and its pairs to an answered row."""

from dataclasses import dataclass
from typing import NamedTuple

import msgspec
import numpy as np

from routeproof.gates.facts import Arms, QualityRow
from routeproof.gates.in_order import Turn, binary_in_order, graded_in_order
from routeproof.gates.questions import Question
from routeproof.metrics.score_table import PairedScores
from routeproof.records.columns import Bools, Floats
from routeproof.stats.clusters import Differences, case_differences, clustered
from routeproof.stats.interval import NonInferiority
from routeproof.stats.paired_binary import no_new_failures, non_inferiority
from routeproof.stats.paired_graded import graded_non_inferiority
from routeproof.stats.planner import Spread, approximate_power, graded_power


@dataclass(frozen=True, slots=True)
class Rules:
    """How a question is answered.

    Attributes:
        alpha: One-sided error rate.
        seed: Of resampling.
        resamples: Of the graded bounds.
        turn: Set in a run that stops as soon as it is decided.
    """

    alpha: float
    seed: int = 0
    resamples: int = 10_000
    turn: Turn | None = None


class Sides(NamedTuple):
    """Pairs of baseline and candidate, and of baseline and control (A/A)."""

    candidate: PairedScores
    control: PairedScores | None


def answered(question: Question, sides: Sides, rules: Rules) -> list[QualityRow]:
    """The row of a question, and for a graded one the row of its collapses.

    Values must point up: 1 is good. Right/wrong scores with one pair per unit go to
    the exact paired test; trials, clusters and graded scores to the clustered one.
    """
    pairs = sides.candidate
    both = pairs.both()
    is_binary = _is_binary(pairs)
    counts = _flips(pairs)
    floor = None if sides.control is None else _flips(sides.control)
    row = QualityRow(
        question=question.name,
        metric=question.metric,
        slice=dict(question.slice),
        origin=question.origin,
        is_required=question.is_required,
        is_binary=is_binary,
        units=_units(pairs, both),
        missing=int(pairs.one().sum()),
        unanswered=int((~pairs.left.known & ~pairs.right.known).sum()),
        means=_means(sides),
        losses=counts.losses if is_binary else None,
        gains=counts.gains if is_binary else None,
        control_losses=floor.losses if floor and is_binary else None,
        control_gains=floor.gains if floor and is_binary else None,
        pairs_required=question.pairs_required,
        ceiling=None if rules.turn is None else rules.turn.ceiling,
    )
    if not both.any():
        return [row]
    if question.tolerance == 0:
        return [_settled_at_zero(_with(row, _no_new(counts, floor, rules)), rules)]
    if rules.turn is not None:
        return _in_turn(row, pairs, question, rules)
    if is_binary and _is_flat(pairs):
        found = _with(row, _exact(counts, question.tolerance, rules))
        return [msgspec.structs.replace(found, power=_power(counts, question, rules))]
    return _graded(row, pairs, question, rules)


class Flips(NamedTuple):
    """Pairs in which the other arm is worse, better; all compared; missing."""

    losses: int
    gains: int
    n: int
    missing: int


def _flips(pairs: PairedScores) -> Flips:
    both = pairs.both()
    change = pairs.right.values[both] - pairs.left.values[both]
    return Flips(
        int((change < 0).sum()),
        int((change > 0).sum()),
        int(both.sum()),
        int(pairs.one().sum()),
    )


def _is_binary(pairs: PairedScores) -> bool:
    return _only_0_1(pairs.left.where_known()) and _only_0_1(pairs.right.where_known())


def _only_0_1(values: Floats) -> bool:
    return bool(np.isin(values, (0.0, 1.0)).all())


def _is_flat(pairs: PairedScores) -> bool:
    """Whether every independent unit has exactly one pair."""
    return np.unique(pairs.cluster).size == pairs.n


def _units(pairs: PairedScores, both: Bools) -> int:
    return int(np.unique(pairs.cluster[both]).size)


def _means(sides: Sides) -> Arms:
    pairs, control = sides
    both = pairs.both()
    floor = None if control is None else control.right.values[control.both()]
    return Arms(
        baseline=_mean(pairs.left.values[both]),
        candidate=_mean(pairs.right.values[both]),
        control=None if floor is None else _mean(floor),
    )


def _mean(values: Floats) -> float | None:
    return float(values.mean()) if values.size else None


def _exact(counts: Flips, tolerance: float, rules: Rules) -> NonInferiority:
    return non_inferiority(
        losses=counts.losses,
        gains=counts.gains,
        n=counts.n,
        missing=counts.missing,
        tolerance=tolerance,
        alpha=rules.alpha,
    )


def _power(counts: Flips, question: Question, rules: Rules) -> float | None:
    if not question.is_required or not counts.n:
        return None
    return approximate_power(
        counts.n,
        flips=(counts.losses + counts.gains) / counts.n,
        tolerance=question.tolerance,
        alpha=rules.alpha,
    )


def _graded_power(
    differences: Differences, question: Question, rules: Rules
) -> float | None:
    value = differences.value[differences.known]
    if not question.is_required or value.size < 2:
        return None
    means = clustered(value, differences.cluster[differences.known])
    unit = means.total / means.count
    spread = Spread(between=float(unit.var(ddof=1)) if unit.size > 1 else 0.0, within=0)
    return graded_power(
        unit.size, spread, trials=1, tolerance=question.tolerance, alpha=rules.alpha
    )


def _no_new(counts: Flips, floor: Flips | None, rules: Rules) -> NonInferiority:
    return no_new_failures(
        losses=counts.losses,
        gains=counts.gains,
        n=counts.n,
        missing=counts.missing,
        alpha=rules.alpha,
        control_losses=None if floor is None or not floor.n else floor.losses,
        control_n=0 if floor is None else floor.n,
    )


def _graded(
    row: QualityRow, pairs: PairedScores, question: Question, rules: Rules
) -> list[QualityRow]:
    differences = case_differences(
        case=pairs.case,
        baseline=pairs.left.values,
        candidate=pairs.right.values,
        baseline_known=pairs.left.known,
        candidate_known=pairs.right.known,
        cluster=pairs.cluster,
    )
    found = graded_non_inferiority(
        differences,
        tolerance=question.tolerance,
        alpha=rules.alpha,
        resamples=rules.resamples,
        seed=rules.seed,
    )
    mean = msgspec.structs.replace(
        _with(row, found.mean), power=_graded_power(differences, question, rules)
    )
    if question.origin == "screening":
        return [mean]
    return [mean, _collapse(row, found.drops)]


def _collapse(
    row: QualityRow, answer: NonInferiority, *, settled_after: int | None = None
) -> QualityRow:
    """The companion of a graded question: units that lost half a score or more."""
    return QualityRow(
        question=f"{row.question} collapse",
        metric=row.metric,
        slice=row.slice,
        origin=row.origin,
        is_required=row.is_required,
        is_binary=True,
        units=answer.n,
        missing=answer.missing,
        answer=answer,
        ceiling=row.ceiling,
        settled_after=settled_after,
    )


def _in_turn(
    row: QualityRow, pairs: PairedScores, question: Question, rules: Rules
) -> list[QualityRow]:
    """Answered by tests that hold whenever the run stops."""
    turn = rules.turn
    assert turn is not None
    rule = turn.rule(question.tolerance, rules.alpha, question.pairs_required)
    if turn.first.is_exact:
        answer, how = binary_in_order(pairs, turn.unit, rule)
        return [_with(row, answer, settled_after=how.after)]
    found = graded_in_order(
        pairs, turn.unit, rule, resamples=rules.resamples, seed=rules.seed
    )
    mean = _with(row, found.mean, settled_after=found.how[0].after)
    if question.origin == "screening":
        return [mean]
    drops = _collapse(row, found.drops, settled_after=found.how[1].after)
    return [mean, drops]


def _settled_at_zero(row: QualityRow, rules: Rules) -> QualityRow:
    """A tolerance of 0 is settled by a failure nobody else has, or by every unit."""
    turn, answer = rules.turn, row.answer
    if turn is None or answer is None:
        return row
    if turn.first.is_whole or answer.harm_p_value == 0.0:
        return msgspec.structs.replace(row, settled_after=turn.first.units)
    return row


def _with(
    row: QualityRow, answer: NonInferiority, *, settled_after: int | None = None
) -> QualityRow:
    return msgspec.structs.replace(row, answer=answer, settled_after=settled_after)
