"""What a quality question needs, and what the cases at hand could decide."""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Literal

from routeproof.gates.evidence import Agreed
from routeproof.gates.questions import HEADLINE, Question
from routeproof.gates.slices import case_facts
from routeproof.jobs.planning.shapes import Bounds, Need, QuestionPlan
from routeproof.proof.policy import UntilDecidedSpec
from routeproof.scorers.table import SCORERS
from routeproof.stats.in_order import early_minimum
from routeproof.stats.mean_bounds import betting_minimum
from routeproof.stats.planner import (
    Spread,
    approximate_pairs,
    approximate_power,
    graded_cases_needed,
    graded_power,
    pairs_needed,
    zero_flip_minimum,
)
from routeproof.stats.until_decided import StoppingRule
from routeproof.workloads.case import Case

FLIPS = (0.0, 0.01, 0.02, 0.05)
"""Shares of cases assumed to change their verdict between two equally good routes: none
(a deterministic engine), a near-lossless change, a lossy one, a noisy one."""
_ENUMERATED_UP_TO = 170


@lru_cache(maxsize=512)
def pairs_of(flips: float, tolerance: float, alpha: float, power: float) -> int:
    """Pairs by enumeration where that is quick and matters, by formula above."""
    if flips == 0:
        return zero_flip_minimum(tolerance, alpha)
    rough = approximate_pairs(
        flips=flips, tolerance=tolerance, alpha=alpha, power=power
    )
    if rough > _ENUMERATED_UP_TO:
        return rough
    return pairs_needed(flips=flips, tolerance=tolerance, alpha=alpha, power=power)


def _finest(units: int, flips: float, needed: Callable[[float, float], int]) -> float:
    """Finest tolerance that ``units`` could certify, in steps of 0.001, at most 0.5."""
    low, high = 0, 500
    while high - low > 1:
        middle = (low + high) // 2
        if needed(flips, middle / 1000) <= units:
            high = middle
        else:
            low = middle
    return high / 1000


def question_plan(
    question: Question, cases: Sequence[Case], agreed: Agreed, graded_sd: float
) -> QuestionPlan:
    """What one question needs, has, and could decide with what it has."""
    chosen = cases_of(question, cases)
    clusters = {case.cluster or case.id for case in chosen}
    exact = (
        agreed.trials == 1
        and len(clusters) == len(chosen)
        and all(_is_binary(question, case) for case in chosen)
    )
    kind: Literal["exact", "graded", "no_new_failures"] = "exact" if exact else "graded"
    if question.tolerance == 0:
        kind = "no_new_failures"
    units, tolerance, policy = len(clusters), question.tolerance, agreed.policy

    def needed(flips: float, at: float) -> int:
        if kind == "exact" and at == tolerance:
            return pairs_of(flips, at, policy.alpha, policy.power)
        if kind == "exact":
            # On the way to the finest tolerance the formula is near enough.
            return max(
                zero_flip_minimum(at, policy.alpha),
                approximate_pairs(
                    flips=flips, tolerance=at, alpha=policy.alpha, power=policy.power
                )
                if flips
                else 0,
            )
        # Verdicts that flip in sampling: half of it stays with the case.
        spread = _spread(question, chosen, flips, graded_sd)
        return graded_cases_needed(
            spread,
            trials=agreed.trials,
            tolerance=at,
            alpha=policy.alpha,
            power=policy.power,
        )

    answer: Literal["decides", "only_if_few_flips", "cannot_decide"] = "decides"
    needs: tuple[Need, ...] = ()
    finest: dict[str, float] = {}
    minimum = up_to = None
    if kind == "no_new_failures":
        answer = "decides" if units else "cannot_decide"
    else:
        least = zero_flip_minimum if kind == "exact" else betting_minimum
        minimum = least(tolerance, policy.alpha)
        needs = tuple(Need(flips=f, units=needed(f, tolerance)) for f in FLIPS)
        enough = [need.flips for need in needs if need.units <= units]
        up_to = max(enough, default=None)
        finest = {f"{f:g}": _finest(units, f, needed) for f in FLIPS} if units else {}
        if units < minimum:
            answer = "cannot_decide"
        elif up_to is None:
            # The betting bound certifies a mean from the minimum on if nothing differs.
            answer, up_to = "only_if_few_flips", 0.0
        elif up_to < FLIPS[-1]:
            answer = "only_if_few_flips"
    return QuestionPlan(
        question=question.name,
        tolerance=tolerance,
        kind=kind,
        is_required=question.is_required,
        units=units,
        minimum=minimum,
        needs=needs,
        finest=finest,
        answer=answer,
        decides_up_to_flips=up_to,
        power=_powers(question, chosen, units, agreed, is_exact=exact, sd=graded_sd),
    )


def _powers(
    question: Question,
    cases: Sequence[Case],
    units: int,
    agreed: Agreed,
    *,
    is_exact: bool,
    sd: float,
) -> dict[str, float]:
    """Chance that the units at hand certify, by assumed flips."""
    at, alpha = question.tolerance, agreed.policy.alpha
    if at == 0:
        return {}
    if is_exact:
        return {
            f"{f:g}": approximate_power(units, flips=f, tolerance=at, alpha=alpha)
            for f in FLIPS
        }
    return {
        f"{f:g}": graded_power(
            units,
            _spread(question, cases, f, sd),
            trials=agreed.trials,
            tolerance=at,
            alpha=alpha,
        )
        for f in FLIPS
    }


def _spread(
    question: Question, cases: Sequence[Case], flips: float, graded_sd: float
) -> Spread:
    v = graded_sd**2 if _is_graded(question, cases) else flips
    return Spread(between=v / 2, within=v / 2)


def bounds_of(question: Question, cases: Sequence[Case], agreed: Agreed) -> Bounds:
    """Floor, earliest certificate and ceiling of a question that may stop early."""
    chosen = cases_of(question, cases)
    units = len({case.cluster or case.id for case in chosen})
    spec = agreed.policy.until_decided or UntilDecidedSpec()
    floor = max(spec.floor, question.pairs_required or 0)
    rule = StoppingRule(
        tolerance=question.tolerance,
        alpha=agreed.policy.alpha,
        floor=min(floor, max(units, 1)),
        ceiling=max(units, 1),
        early_share=spec.early_share,
        early_harm_share=spec.early_harm_share,
    )
    return Bounds(
        question=question.name,
        tolerance=question.tolerance,
        floor=rule.floor,
        earliest=early_minimum(rule),
        ceiling=units,
    )


def cases_of(question: Question, cases: Sequence[Case]) -> list[Case]:
    """The cases that a question is about, order kept."""
    facts = case_facts(cases, {}, {})
    tags = {k: v for k, v in question.slice.items() if k not in ("phase", "level")}
    inside = facts.ids(tags)
    return [
        case
        for case in cases
        if case.id in inside
        and (question.metric == HEADLINE or question.metric in case.scorers)
    ]


def _is_binary(question: Question, case: Case) -> bool:
    name = case.scorers[0] if question.metric == HEADLINE else question.metric
    return name in SCORERS and SCORERS[name].binary


def _is_graded(question: Question, cases: Sequence[Case]) -> bool:
    return not all(_is_binary(question, case) for case in cases)
