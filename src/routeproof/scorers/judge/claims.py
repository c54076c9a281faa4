"""Groundedness and factuality: a judge takes an answer apart into claims.

Both arms are asked in one shuffled batch with the same prompt, so that the judge
cannot know which arm it reads. No claim and no verdict are ``unscored``: an empty
list is not a perfect one, and not a zero.
"""

import random
from collections.abc import Sequence
from typing import Any, Literal

from routeproof.scorers.answered import (
    ANSWERED,
    option,
    reference,
    score,
    unscored,
)
from routeproof.scorers.degeneration import prompt_text
from routeproof.scorers.judge.question import SYSTEM, Ask, Question, ask_for, fenced
from routeproof.scorers.reasoning import strip_reasoning
from routeproof.scorers.score import Score, ScoreClass, ScoredAnswer
from routeproof.workloads.case import Case

VERDICTS = ("supported", "unsupported", "irrelevant")
SCHEMA = {
    "type": "object",
    "properties": {
        "claims": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "claim": {"type": "string"},
                    "reason": {"type": "string"},
                    "verdict": {"type": "string", "enum": list(VERDICTS)},
                },
                "required": ["claim", "reason", "verdict"],
                "additionalProperties": False,
            },
        }
    },
    "required": ["claims"],
    "additionalProperties": False,
}
TASKS = {
    "groundedness": (
        "Take the answer apart into single claims. A claim is supported when the "
        "source says so or it follows from the source, unsupported when not, whatever "
        "you know yourself; irrelevant when it is no claim about the matter, such as a "
        "greeting."
    ),
    "factuality": (
        "Take the answer apart into single claims. A claim is supported when it is "
        "true, unsupported when it is false or cannot be known; irrelevant when it is "
        "no claim about the matter. Where a source is given it decides before your "
        "knowledge."
    ),
}
Kind = Literal["groundedness", "factuality"]


class ClaimsJudge:
    """A batch scorer for ``score_records``: share of an answer's claims supported."""

    def __init__(self, kind: Kind, ask: Ask, *, seed: int) -> None:
        """Set up.

        Args:
            kind: ``groundedness`` needs a source (option ``source`` or reference).
            ask: Sends questions.
            seed: Shuffles the order of asking.
        """
        self.kind = kind
        self._ask = ask
        self._seed = seed

    def __call__(self, asked: Sequence[tuple[Case, ScoredAnswer]]) -> list[Score]:
        """A score per (case, answer), in order."""
        ready = [self._prepare(case, answer) for case, answer in asked]
        order = [at for at, one in enumerate(ready) if isinstance(one, Question)]
        random.Random(self._seed).shuffle(order)
        questions = [one for at in order if isinstance(one := ready[at], Question)]
        claims = ask_for(self._ask, questions, read_claims) if questions else []
        found = dict(zip(order, claims, strict=True))
        return [
            one if isinstance(one, Score) else _score(found[at], asked[at][1])
            for at, one in enumerate(ready)
        ]

    def _prepare(self, case: Case, answer: ScoredAnswer) -> Score | Question:
        if answer.outcome not in ANSWERED:
            return score("failed", None, None, f"request ended {answer.outcome}")
        if answer.outcome == "refused":
            return score("refused", 0.0, None, "content filter")
        text, how = strip_reasoning(answer.text, case.options.get("reasoning"))
        if not text.strip():
            is_cut = answer.outcome == "truncated"
            return score("truncated" if is_cut else "empty", 0.0, None, how)
        source = option(case, self.kind, "source") or reference(case, self.kind)
        if isinstance(source, list | tuple):
            source = "\n\n".join(str(part) for part in source)
        if not isinstance(source, str) or not source.strip():
            if self.kind == "groundedness":
                return unscored("no source text to be grounded in")
            source = ""
        return _question(self.kind, case, text, source)


def _question(kind: Kind, case: Case, text: str, source: str) -> Question:
    parts = [fenced("request", prompt_text(case))]
    if source:
        parts.append(fenced("source", source))
    parts += [
        fenced("answer", text),
        TASKS[kind],
        'Reply: {"claims": [{"claim": "...", "reason": "...", "verdict": "..."}]}',
    ]
    messages = (
        {"role": "system", "content": SYSTEM},
        {"role": "user", "content": "\n\n".join(parts)},
    )
    return Question(messages, SCHEMA)


def read_claims(value: dict[str, Any]) -> list[str] | None:
    """The verdicts of the claims; ``None`` when one is none of the three."""
    claims = value.get("claims")
    if not isinstance(claims, list):
        return None
    verdicts = [one.get("verdict") if isinstance(one, dict) else None for one in claims]
    known = [one for one in verdicts if isinstance(one, str) and one in VERDICTS]
    return known if len(known) == len(verdicts) else None


def _score(verdicts: list[str] | None, answer: ScoredAnswer) -> Score:
    if verdicts is None:
        return unscored("the judge gave no verdict that can be read")
    supported = verdicts.count("supported")
    total = supported + verdicts.count("unsupported")
    if total == 0:
        return unscored("the judge found no claim to check")
    value = supported / total
    class_: ScoreClass = "correct" if value == 1 else "graded" if value else "wrong"
    if answer.outcome == "truncated":
        class_ = "truncated"
    return score(class_, value, None, f"{supported} of {total} claims supported")


def noise(
    judge: ClaimsJudge, asked: Sequence[tuple[Case, ScoredAnswer]]
) -> float | None:
    """Mean absolute change of the score when the same answers are judged again.

    The judge's own noise floor: a difference between arms below it means nothing.

    Returns:
        ``None`` when no answer was scored both times.
    """
    first, second = judge(asked), judge(asked)
    changes = [
        abs(one.value - other.value)
        for one, other in zip(first, second, strict=True)
        if one.value is not None and other.value is not None
    ]
    return sum(changes) / len(changes) if changes else None
