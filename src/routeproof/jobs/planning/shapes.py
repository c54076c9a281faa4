"""What a plan consists of."""

from typing import Literal

import msgspec

from routeproof.jobs.planning.costs import RequestCost, StageCost


class _Part(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of the parts of a plan."""


class Need(_Part, frozen=True, kw_only=True):
    """Units needed when this share of cases flips between equally good routes."""

    flips: float
    units: int


class QuestionPlan(_Part, frozen=True, kw_only=True):
    """One quality question of the proof.

    Attributes:
        kind: ``exact`` (one right/wrong verdict per case), ``graded`` (graded scores,
            several trials, or clusters: decided on means), ``no_new_failures``.
        units: Cases (or clusters) the workload has for it.
        minimum: Fewest units that could certify, without any flip; ``None`` for
            ``no_new_failures``, which any number can pass and one failure breaks.
        needs: Units for the planned power, by assumed flips.
        finest: Finest tolerance its units could certify, by assumed flips.
        power: Probability that its units certify its tolerance between equally good
            routes, by assumed flips.
        answer: What the present workload can do.
    """

    question: str
    tolerance: float
    kind: Literal["exact", "graded", "no_new_failures"]
    is_required: bool
    units: int
    minimum: int | None
    needs: tuple[Need, ...]
    finest: dict[str, float]
    answer: Literal["decides", "only_if_few_flips", "cannot_decide"]
    decides_up_to_flips: float | None = None
    power: dict[str, float] = {}


class TolerancePrice(_Part, frozen=True, kw_only=True):
    """What a tolerance costs, for right/wrong verdicts over the whole workload.

    ``requests``, ``tokens`` and ``minutes`` are for baseline, candidate and control.
    """

    tolerance: float
    flips: float
    cases: int
    requests: int
    tokens: int
    minutes: float


class EarlyStop(_Part, frozen=True, kw_only=True):
    """What ``--until-decided`` would spend, by simulation.

    Attributes:
        used_share: Mean share of the ceiling that was used.
    """

    route: str
    tolerance: float
    floor: int
    ceiling: int
    used_share: float
    certified_share: float
    harmed_share: float


class Bounds(_Part, frozen=True, kw_only=True):
    """How few and how many units a required question takes with ``--until-decided``.

    Attributes:
        floor: Fewest units before it may be settled.
        earliest: Units after which a route without a flip is certified; more than the
            ceiling where the workload cannot certify it at all that way.
        ceiling: Units the workload has for it.
    """

    question: str
    tolerance: float
    floor: int
    earliest: int
    ceiling: int


class ProofPlan(_Part, frozen=True, kw_only=True):
    """The plan of a proof: what it needs, what it costs, what it could decide.

    Attributes:
        graded_sd: Spread assumed for graded scores.
        bounds: Of ``--until-decided``, question by question.
        stops_early: Whether the proof or the call asks for it.
    """

    cases: int
    trials: int
    alpha: float
    power: float
    questions: tuple[QuestionPlan, ...]
    prices: tuple[TolerancePrice, ...]
    stages: tuple[StageCost, ...]
    cost: RequestCost
    until_decided: tuple[EarlyStop, ...]
    bounds: tuple[Bounds, ...] = ()
    stops_early: bool = False
    graded_sd: float
    notes: tuple[str, ...] = ()
