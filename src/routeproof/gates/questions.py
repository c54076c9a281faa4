"""Which quality questions are asked of a run."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import ceil
from typing import Literal

from routeproof.gates.evidence import Agreed
from routeproof.gates.slices import CaseFacts
from routeproof.stats.mean_bounds import betting_minimum

HEADLINE = "headline"
"""The first scorer of each case, whichever it is."""

DEFAULT_TOLERANCE = 0.03
"""Loss allowed where the proof file declares none; 99 pairs can certify it."""

ALIASES = {
    "schema_valid": "json_schema",
    "json_schema_valid": "json_schema",
    "quality": HEADLINE,
}
"""Names people write for scorers of another name."""

PASS_RATES = frozenset({"pass_at_k", "pass_hat_k"})
"""Metrics that give one value for all samples of a case."""

Origin = Literal["declared", "default", "required_class", "outcome", "screening"]


@dataclass(frozen=True, slots=True)
class Question:
    """One quality question before it is answered."""

    metric: str
    tolerance: float
    origin: Origin
    slice: Mapping[str, str] = field(default_factory=dict)
    is_required: bool = True
    pairs_required: int | None = None
    k: int | None = None

    @property
    def name(self) -> str:
        """Such as ``exact_match[class=factual_qa]``."""
        where = ",".join(f"{k}={v}" for k, v in sorted(self.slice.items()))
        return f"{self.scorer}[{where}]" if where else self.scorer

    @property
    def scorer(self) -> str:
        """Whose rows answer it: ``exact_match``, ``pass_at_k@5``."""
        return f"{self.metric}@{self.k}" if self.k else self.metric


def questions(agreed: Agreed, facts: CaseFacts) -> list[Question]:
    """Declared questions (or the default), required classes, then the screening.

    A required class is asked for its headline score. Its tolerance is the overall
    one, or the finest that its required count can certify at all, if that is coarser:
    50 pairs decide nothing finer than 5.9 points. Declare a tolerance for the class
    to ask for more.
    """
    asked = _declared(agreed) or [_default(agreed)]
    asked += _required_classes(agreed, asked)
    seen = {question.name for question in asked}
    overall = _overall_tolerance(agreed)
    screened = [
        Question(HEADLINE, overall, "screening", slice=where, is_required=False)
        for where in facts.slices()
    ]
    classes = {q.slice.get("class") for q in asked if set(q.slice) == {"class"}}
    return asked + [
        question
        for question in screened
        if question.name not in seen and question.slice.get("class", "") not in classes
    ]


def _declared(agreed: Agreed) -> list[Question]:
    return [
        Question(
            metric=ALIASES.get(spec.metric, spec.metric),
            tolerance=spec.tolerance,
            origin="declared",
            slice=spec.slice,
            is_required=spec.required,
            k=(spec.k or 1) if spec.metric in PASS_RATES else None,
            pairs_required=agreed.classes_required.get(spec.slice.get("class", ""))
            if set(spec.slice) == {"class"}
            else None,
        )
        for spec in agreed.quality
    ]


def _default(agreed: Agreed) -> Question:
    return Question(HEADLINE, DEFAULT_TOLERANCE, "default")


def _overall_tolerance(agreed: Agreed) -> float:
    overall = [s.tolerance for s in agreed.quality if not s.slice and s.tolerance > 0]
    return max(overall, default=DEFAULT_TOLERANCE)


def _required_classes(agreed: Agreed, asked: list[Question]) -> list[Question]:
    named = {q.slice["class"] for q in asked if set(q.slice) == {"class"}}
    overall, alpha = _overall_tolerance(agreed), agreed.policy.alpha
    return [
        Question(
            HEADLINE,
            max(overall, finest_tolerance(count, alpha)),
            "required_class",
            slice={"class": name},
            pairs_required=count,
        )
        for name, count in sorted(agreed.classes_required.items())
        if name not in named
    ]


def finest_tolerance(pairs: int, alpha: float) -> float:
    """Smallest tolerance that ``pairs`` without a flip can certify, in steps of 0.001.

    ``1 - alpha^(1/pairs)``, rounded up, and coarser where graded scores need more pairs
    (``stats.mean_bounds.betting_minimum``); at most 0.5.
    """
    exact = 1 - float(alpha ** (1 / max(1, pairs)))
    steps = ceil(exact * 1000)
    while steps < 500 and betting_minimum(steps / 1000, alpha) > pairs:
        steps += 1
    return min(0.5, steps / 1000)
