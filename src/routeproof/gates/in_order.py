"""Quality questions of a run that stopped as soon as it was decided.

Such a run draws its cases in random order. A question looks at the first cases that
both arms have answered, one unit after the other, and is answered by tests that may be
looked at after each of them (``stats.until_decided``). Looking again later, or after a
resumed run, gives the same answer at the same unit.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from routeproof.gates.questions import HEADLINE, PASS_RATES, Question
from routeproof.metrics.requests import Requests
from routeproof.metrics.score_table import PairedScores
from routeproof.proof.policy import UntilDecidedSpec
from routeproof.stats.clusters import Differences, case_differences
from routeproof.stats.in_order import Drawn, answer_in_order
from routeproof.stats.interval import NonInferiority
from routeproof.stats.paired_binary import non_inferiority
from routeproof.stats.paired_graded import graded_non_inferiority
from routeproof.stats.until_decided import Settling, StoppingRule
from routeproof.workloads.case import Case
from routeproof.workloads.drawn import unit_of

DROP = 0.5
"""Fall of a unit's score that counts as a collapse, as in ``stats.paired_graded``."""


@dataclass(frozen=True, slots=True)
class Order:
    """The order in which the cases of a run were drawn, and how far it got.

    Attributes:
        spec: Floor and shares of alpha.
        cases: In the order of the draw.
        complete: Those of which both arms have a record of every trial.
        trials: Trials of each case.
    """

    spec: UntilDecidedSpec
    cases: tuple[Case, ...]
    complete: frozenset[str]
    trials: int = 1

    @classmethod
    def of(
        cls,
        spec: UntilDecidedSpec,
        cases: Sequence[Case],
        requests: Requests,
        *,
        trials: int,
    ) -> "Order":
        """The order of a run from its cases as sent and its requests so far."""
        return cls(
            spec=spec,
            cases=tuple(cases),
            complete=_complete(requests, trials),
            trials=trials,
        )

    def of_question(
        self, question: Question, inside: frozenset[str]
    ) -> dict[str, Case]:
        """The cases a question is about, in the order of the draw.

        Args:
            question: The question.
            inside: Cases of its slice.
        """
        metric = question.metric
        is_any = metric == HEADLINE or metric in PASS_RATES
        # What judges and people say may be asked of cases that do not name it.
        is_any = is_any or not any(metric in case.scorers for case in self.cases)
        return {
            case.id: case
            for case in self.cases
            if case.id in inside
            and (case.scorers if is_any else question.metric in case.scorers)
        }

    def first(self, asked: Mapping[str, Case], *, is_binary: bool = False) -> "First":
        """The first units of a question that are complete, up to the first that is not.

        Args:
            asked: Cases of the question, in the order of the draw.
            is_binary: Whether its verdicts are right or wrong.
        """
        members: dict[str, list[str]] = {}
        for name, case in asked.items():
            members.setdefault(unit_of(case), []).append(name)
        is_flat = self.trials == 1 and len(members) == len(asked)
        place: dict[str, int] = {}
        for number, cases in enumerate(members.values()):
            if not self.complete.issuperset(cases):
                break
            place |= dict.fromkeys(cases, number)
        return First(self.spec, place, len(members), is_exact=is_binary and is_flat)


@dataclass(frozen=True, slots=True)
class First:
    """The part of one question that is answered.

    Attributes:
        place: Number of the unit of each case in it.
        ceiling: Units of the question in the whole workload.
        is_exact: Whether each unit is one pair of right/wrong verdicts.
    """

    spec: UntilDecidedSpec
    place: Mapping[str, int]
    ceiling: int
    is_exact: bool

    @property
    def ids(self) -> frozenset[str]:
        """Cases to look at."""
        return frozenset(self.place)

    @property
    def units(self) -> int:
        """Units to look at."""
        return max(self.place.values(), default=-1) + 1

    @property
    def is_whole(self) -> bool:
        """Whether every unit of the question is there."""
        return self.units == self.ceiling


def _complete(requests: Requests, trials: int) -> frozenset[str]:
    cases = requests.label("case_id")
    in_phase = requests.at(phase="quality") & (cases.codes >= 0)
    counts = [
        np.bincount(
            cases.codes[in_phase & requests.at(arm=arm)], minlength=len(cases.names)
        )
        for arm in ("baseline", "candidate")
    ]
    done = np.flatnonzero(np.minimum(*counts) >= trials) if cases.names else ()
    return frozenset(cases.names[i] for i in done)


@dataclass(frozen=True, slots=True)
class Turn:
    """How the pairs at hand are taken: one unit after the other.

    Attributes:
        first: The part of the question they are.
        unit: Number of the unit of each pair, in the order of the draw.
    """

    first: First
    unit: NDArray[np.int64]

    @classmethod
    def of(cls, first: First, pairs: PairedScores, names: Sequence[str]) -> "Turn":
        """The turn of some pairs, whose case codes mean ``names``."""
        place = np.array([first.place.get(name, -1) for name in names], dtype=np.int64)
        return cls(first, place[pairs.case])

    @property
    def ceiling(self) -> int:
        """Most units there can be; a scorer may not apply to all of them."""
        if not self.first.is_whole:
            return self.first.ceiling
        return int(np.unique(self.unit).size)

    def rule(self, tolerance: float, alpha: float, pairs: int | None) -> StoppingRule:
        """The stopping rule of the question; a required count raises its floor."""
        spec, ceiling = self.first.spec, self.ceiling
        return StoppingRule(
            tolerance=tolerance,
            alpha=alpha,
            floor=min(max(spec.floor, pairs or 0), ceiling),
            ceiling=ceiling,
            early_share=spec.early_share,
            early_harm_share=spec.early_harm_share,
        )


def binary_in_order(
    pairs: PairedScores, unit: NDArray[np.int64], rule: StoppingRule
) -> tuple[NonInferiority, Settling]:
    """A right/wrong question with one pair per unit; the exact test at the ceiling."""
    return _binary(Drawn.of(_differences(pairs, unit)), rule)


def _binary(drawn: Drawn, rule: StoppingRule) -> tuple[NonInferiority, Settling]:
    def fixed(alpha: float) -> NonInferiority:
        value = drawn.value[drawn.known]
        return non_inferiority(
            losses=int(np.count_nonzero(value < 0)),
            gains=int(np.count_nonzero(value > 0)),
            n=value.size,
            missing=int(np.count_nonzero(~drawn.known)),
            tolerance=rule.tolerance,
            alpha=alpha,
        )

    return answer_in_order(drawn, rule, fixed=fixed)


@dataclass(frozen=True, slots=True)
class InOrder:
    """A graded question: its mean and its collapses, each settled on its own."""

    mean: NonInferiority
    drops: NonInferiority
    how: tuple[Settling, Settling]


def graded_in_order(
    pairs: PairedScores,
    unit: NDArray[np.int64],
    rule: StoppingRule,
    *,
    resamples: int,
    seed: int,
) -> InOrder:
    """A graded question, or one with trials or clusters.

    Args:
        pairs: Its pairs.
        unit: Number of the unit of each pair, in the order of the draw.
        rule: Of the mean. Collapses may be as frequent as they alone would use its
            tolerance up.
        resamples: Of the bounds at the ceiling.
        seed: Of the same.
    """
    differences = _differences(pairs, unit)
    drawn = Drawn.of(differences)

    def fixed(alpha: float) -> NonInferiority:
        return graded_non_inferiority(
            differences,
            tolerance=rule.tolerance,
            alpha=alpha,
            resamples=resamples,
            seed=seed,
        ).mean

    mean, how = answer_in_order(drawn, rule, fixed=fixed)
    falls = StoppingRule(
        tolerance=min(rule.tolerance / DROP, 0.99),
        alpha=rule.alpha,
        floor=rule.floor,
        ceiling=rule.ceiling,
        early_share=rule.early_share,
        early_harm_share=rule.early_harm_share,
    )
    drops, fallen = _binary(drawn.drops(DROP), falls)
    return InOrder(mean, drops, (how, fallen))


def _differences(pairs: PairedScores, unit: NDArray[np.int64]) -> Differences:
    return case_differences(
        case=pairs.case,
        baseline=pairs.left.values,
        candidate=pairs.right.values,
        baseline_known=pairs.left.known,
        candidate_known=pairs.right.known,
        cluster=unit,
    )
