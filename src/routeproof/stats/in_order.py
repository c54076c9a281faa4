"""One non-inferiority question answered over units in the order they were drawn."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from routeproof.stats.clusters import Differences
from routeproof.stats.interval import Interval, NonInferiority
from routeproof.stats.planner import zero_flip_minimum
from routeproof.stats.until_decided import (
    PValues,
    Settling,
    StoppingRule,
    sequential_interval,
    settle,
)

METHOD = "until_decided"


@dataclass(frozen=True, slots=True)
class Drawn:
    """Units of one question in the order in which they were drawn, shape ``(n,)``.

    Attributes:
        value: Mean difference of a unit over what is known in both arms, 0 where
            nothing is.
        known: Whether anything is known of it in both arms.
        worst: The same with every missing score at its worst.
        missing_pairs: Pairs that lack a score.
    """

    value: NDArray[np.float64]
    known: NDArray[np.bool_]
    worst: NDArray[np.float64]
    missing_pairs: int = 0

    @classmethod
    def of(cls, differences: Differences) -> "Drawn":
        """Means per cluster; clusters must be numbered in the order of the draw."""
        group, known = differences.cluster, differences.known
        n = int(group.max(initial=-1)) + 1
        cases = np.bincount(group, minlength=n)
        seen = np.bincount(group, known, minlength=n)
        total = np.bincount(group, np.where(known, differences.value, 0), minlength=n)
        return cls(
            value=total / np.maximum(seen, 1),
            known=seen > 0,
            worst=np.bincount(group, differences.worst, minlength=n)
            / np.maximum(cases, 1),
            missing_pairs=differences.missing_pairs,
        )

    def drops(self, drop: float) -> "Drawn":
        """Units that fell (-1) or rose (1) by ``drop`` or more; a missing one fell."""
        edge = drop - 1e-9

        def net(x: NDArray[np.float64]) -> NDArray[np.float64]:
            return np.where(x <= -edge, -1.0, np.where(x >= edge, 1.0, 0.0))

        worst = np.where(self.known, net(self.value), -1.0)
        return Drawn(
            net(self.value), self.known, worst, int(np.count_nonzero(~self.known))
        )


def answer_in_order(
    drawn: Drawn, rule: StoppingRule, *, fixed: Callable[[float], NonInferiority]
) -> tuple[NonInferiority, Settling]:
    """Answer a question that may stop after any unit.

    Args:
        drawn: The units seen so far.
        rule: When it may stop.
        fixed: The fixed-size answer at a given alpha; asked for at the ceiling, and
            for how many more units an undecided question needs.

    Returns:
        The answer, whose p-values hold however often they were looked at, and when
        it was settled.
    """

    def at_ceiling() -> PValues:
        found = fixed(rule.alpha * (1 - rule.early_share))
        return PValues(
            1.0 if found.p_value is None else found.p_value,
            1.0 if found.harm_p_value is None else found.harm_p_value,
        )

    seen = np.where(drawn.known, drawn.value, 0.0)
    how = settle(drawn.worst, seen, rule, at_ceiling=at_ceiling)
    decision = how.settled or "undecided"
    n = int(np.count_nonzero(drawn.known))
    is_harm = how.p_values.harm <= rule.alpha
    answer = NonInferiority(
        decision=decision,
        estimate=float(drawn.value[drawn.known].mean()) if n else 0.0,
        interval=_interval(drawn.worst, seen, rule, fixed),
        tolerance=rule.tolerance,
        p_value=how.p_values.tolerance,
        harm_p_value=how.p_values.harm,
        n=n,
        n_needed=_needed(how, n, rule, fixed),
        method=METHOD,
        note="worse, within tolerance" if decision == "certified" and is_harm else None,
        n_minimum=early_minimum(rule),
        missing=drawn.missing_pairs,
    )
    return answer, how


def early_minimum(rule: StoppingRule) -> int:
    """Fewest units that can certify, without a flip among them.

    Below the ceiling by the betting test. At the ceiling the exact test may still
    certify, at its share of alpha; if it cannot either, more units are needed than
    there are.
    """
    zeros = np.zeros(rule.ceiling)

    def never() -> PValues:
        return PValues(1.0, 1.0)

    found = settle(zeros, zeros, rule, at_ceiling=never)
    if found.settled == "certified" and found.after is not None:
        return found.after
    late = zero_flip_minimum(rule.tolerance, rule.alpha * (1 - rule.early_share))
    return max(late, rule.ceiling)


def _needed(
    how: Settling,
    n: int,
    rule: StoppingRule,
    fixed: Callable[[float], NonInferiority],
) -> int | None:
    """Units in all that would decide: up to the ceiling first, then beyond it."""
    if how.settled is None:
        return rule.ceiling
    if how.settled != "undecided":
        return None
    needed = fixed(rule.alpha * (1 - rule.early_share)).n_needed
    return max(needed or 0, n + 1)


def _interval(
    worst: NDArray[np.float64],
    seen: NDArray[np.float64],
    rule: StoppingRule,
    fixed: Callable[[float], NonInferiority],
) -> Interval:
    """The sequential interval; at the ceiling cut with the fixed-size one."""
    found = sequential_interval(worst, seen, rule)
    if worst.size < rule.ceiling:
        return found
    late = fixed(rule.alpha * (1 - rule.early_share)).interval
    lows = [x for x in (found.low, late.low) if x is not None]
    highs = [x for x in (found.high, late.high) if x is not None]
    return Interval(
        low=max(lows), high=min(highs), level=found.level, method=found.method
    )
