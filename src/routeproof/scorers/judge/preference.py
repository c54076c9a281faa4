"""Which of two answers is better: a judge asked in both orders.

The position in which an answer is shown moves verdicts (12.9 % of them in FastChat
issue 3911), so each pair is asked twice and the mean counts. Equal texts are a tie
without a call. A pair that cannot be judged is unscored and stays in the count.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from math import log
from typing import Any

from routeproof.scorers.answered import ANSWERED
from routeproof.scorers.degeneration import prompt_text
from routeproof.scorers.judge.question import SYSTEM, Ask, Question, ask_for, fenced
from routeproof.scorers.reasoning import strip_reasoning
from routeproof.scorers.score import ScoredAnswer
from routeproof.workloads.case import Case

SCHEMA = {
    "type": "object",
    "properties": {
        "reason": {"type": "string"},
        "verdict": {"type": "string", "enum": ["first", "second", "tie"]},
    },
    "required": ["reason", "verdict"],
    "additionalProperties": False,
}
CRITERION = (
    "Which answer serves the person who asked better: correct, complete, to the "
    "point, in the form asked for? Length by itself is no merit. Say tie when neither "
    "is better."
)
POINTS = {"first": 1.0, "second": 0.0, "tie": 0.5}


@dataclass(frozen=True, slots=True)
class AnswerPair:
    """The two arms' answers to one (case, trial)."""

    case: Case
    baseline: ScoredAnswer
    candidate: ScoredAnswer


@dataclass(frozen=True, slots=True)
class Preference:
    """How much a judge prefers the candidate.

    Attributes:
        value: 0, 0.25, 0.5, 0.75 or 1; ``None`` when it could not be judged.
        baseline_first: Points of the candidate when shown second; ``None`` unasked.
        candidate_first: Points of the candidate when shown first; ``None`` unasked.
        log_length_ratio: ln(characters of candidate / characters of baseline);
            ``None`` when one of them is empty.
        how: ``judged``, ``identical``, ``one is empty``, ``failed``, ``no verdict``.
    """

    value: float | None
    baseline_first: float | None
    candidate_first: float | None
    log_length_ratio: float | None
    how: str

    @property
    def is_inconsistent(self) -> bool | None:
        """True when the order changed the verdict; ``None`` when it was not asked."""
        if self.baseline_first is None or self.candidate_first is None:
            return None
        return self.baseline_first != self.candidate_first


def judge_pairs(
    pairs: Sequence[AnswerPair], ask: Ask, *, seed: int, criterion: str = CRITERION
) -> list[Preference]:
    """A preference per pair, in order.

    Args:
        pairs: The judge never learns which answer is whose.
        ask: Sends questions.
        seed: Shuffles the order of asking, so that a judge that drifts favours nobody.
        criterion: What better means here.
    """
    ready = [_without_a_call(pair) for pair in pairs]
    asked = [
        (at, is_swapped)
        for at, one in enumerate(ready)
        if one is None
        for is_swapped in (False, True)
    ]
    random.Random(seed).shuffle(asked)
    questions = [
        _question(pairs[at], is_swapped=is_swapped, criterion=criterion)
        for at, is_swapped in asked
    ]
    verdicts = ask_for(ask, questions, read_verdict) if questions else []
    points: dict[tuple[int, bool], float | None] = {}
    for (at, is_swapped), verdict in zip(asked, verdicts, strict=True):
        own = None if verdict is None else POINTS[verdict]
        points[at, is_swapped] = own if own is None or is_swapped else 1.0 - own
    return [
        one or _combined(pairs[at], points[at, False], points[at, True])
        for at, one in enumerate(ready)
    ]


def read_verdict(value: dict[str, Any]) -> str | None:
    """``first``, ``second`` or ``tie``; ``None`` for anything else."""
    verdict = value.get("verdict")
    return verdict if isinstance(verdict, str) and verdict in POINTS else None


def _texts(pair: AnswerPair) -> tuple[str, str]:
    rules = pair.case.options.get("reasoning")
    baseline, candidate = pair.baseline.text, pair.candidate.text
    return (
        strip_reasoning(baseline, rules)[0].strip(),
        strip_reasoning(candidate, rules)[0].strip(),
    )


def _without_a_call(pair: AnswerPair) -> Preference | None:
    outcomes = (pair.baseline.outcome, pair.candidate.outcome)
    if not ANSWERED.issuperset(outcomes):
        return Preference(None, None, None, None, "failed")
    baseline, candidate = _texts(pair)
    if baseline == candidate:
        return Preference(0.5, None, None, 0.0 if baseline else None, "identical")
    if not baseline or not candidate:
        return Preference(float(bool(candidate)), None, None, None, "one is empty")
    return None


def _question(pair: AnswerPair, *, is_swapped: bool, criterion: str) -> Question:
    baseline, candidate = _texts(pair)
    first, second = (candidate, baseline) if is_swapped else (baseline, candidate)
    text = "\n\n".join(
        (
            fenced("request", prompt_text(pair.case)),
            fenced("first answer", first),
            fenced("second answer", second),
            criterion,
            'Reply: {"reason": "...", "verdict": "first" | "second" | "tie"}',
        )
    )
    messages = (
        {"role": "system", "content": SYSTEM},
        {"role": "user", "content": text},
    )
    return Question(messages, SCHEMA)


def _combined(pair: AnswerPair, one: float | None, other: float | None) -> Preference:
    baseline, candidate = _texts(pair)
    ratio = log(len(candidate) / len(baseline))
    if one is None or other is None:
        return Preference(None, one, other, ratio, "no verdict")
    return Preference((one + other) / 2, one, other, ratio, "judged")
