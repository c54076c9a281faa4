"""Opinions that need somebody to be asked: a judge, or an embedding model.

Each grader takes several answers at once and says of each whether it is bad, or why it
cannot say. What is no answer at all, or has no prompt, is not its matter: no opinion,
and no failure either.
"""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite, sqrt
from typing import Any

from routeproof.canary.samples.cleaning import Cleaner
from routeproof.canary.samples.signals import text_of_prompt
from routeproof.canary.samples.spool import Sample
from routeproof.canary.tasting.asked_http import Endpoint
from routeproof.records.outcome import SERVED
from routeproof.scorers.judge.question import SYSTEM, Ask, Question, ask_for, fenced
from routeproof.scorers.reasoning import strip_reasoning

CALIBRATION = 200
"""Control answers that fix a floor before anything is compared with it."""

FLOOR_SHARE = 0.05
TEXT_CHARS = 8_000
"""Of a prompt and of an answer; the rest is not sent to a judge or an embedding."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """A tasted answer with its request, in memory only.

    Attributes:
        sample: Text redacted.
        body: The request as it came.
        path: Of the request.
    """

    sample: Sample
    body: Mapping[str, Any]
    path: str = "/v1/chat/completions"

    @property
    def answer(self) -> str:
        """The answer without its reasoning; empty when there is none."""
        said = self.sample.record.answer
        if said.outcome not in SERVED:
            return ""
        return strip_reasoning(said.text or "")[0].strip()

    @property
    def question(self) -> str:
        """The words of the prompt, not redacted."""
        return text_of_prompt(self.body).strip()


@dataclass(frozen=True, slots=True)
class Opinion:
    """What a grader says of one answer.

    Attributes:
        bad: ``None`` when it says nothing.
        problem: Why it could not say; ``None`` when it did, or need not.
    """

    bad: bool | None = None
    problem: str | None = None


NONE = Opinion()
Grader = Callable[[Sequence[Exchange]], list[Opinion]]

TOPIC_SCHEMA = {
    "type": "object",
    "properties": {
        "reason": {"type": "string"},
        "verdict": {"type": "string", "enum": ["on_topic", "off_topic", "unclear"]},
    },
    "required": ["reason", "verdict"],
    "additionalProperties": False,
}
TOPIC_TASK = (
    "Is the answer about what the request asks for? off_topic: it talks of something "
    "else, answers another question, or drifts away from the matter for most of its "
    "length. on_topic: it deals with the request, however well; declining it or asking "
    "back is on_topic too. unclear: the request itself cannot be understood."
)


def off_topic_grader(ask: Ask, cleaner: Cleaner) -> Grader:
    """A judge's view of whether answers deal with their requests, texts redacted."""

    def grade(exchanges: Sequence[Exchange]) -> list[Opinion]:
        places = [i for i, e in enumerate(exchanges) if e.answer and e.question]
        asked = [_topic_question(exchanges[i], cleaner) for i in places]
        verdicts = ask_for(ask, asked, _topic) if asked else []
        found = [NONE] * len(exchanges)
        for i, verdict in zip(places, verdicts, strict=True):
            if verdict is None:
                found[i] = Opinion(problem="the judge gave no verdict that can be read")
            elif verdict != "unclear":
                found[i] = Opinion(bad=verdict == "off_topic")
        return found

    return grade


def _topic_question(exchange: Exchange, cleaner: Cleaner) -> Question:
    parts = (
        fenced("request", cleaner.text(exchange.question)[-TEXT_CHARS:]),
        fenced("answer", exchange.answer[:TEXT_CHARS]),
        TOPIC_TASK,
        'Reply: {"reason": "...", "verdict": "on_topic" | "off_topic" | "unclear"}',
    )
    messages = (
        {"role": "system", "content": SYSTEM},
        {"role": "user", "content": "\n\n".join(parts)},
    )
    return Question(messages, TOPIC_SCHEMA)


def _topic(value: dict[str, Any]) -> str | None:
    verdict = value.get("verdict")
    known = ("on_topic", "off_topic", "unclear")
    return verdict if isinstance(verdict, str) and verdict in known else None


@dataclass(slots=True)
class Floor:
    """The value below which 5 % of the control's first 200 answers lie.

    A number without a scale of its own becomes a yes or no that both arms can be
    counted by: the control is below about as often as that for ever, an equal canary
    as well. The floor is fixed before any answer is held against it.
    """

    _first: deque[float] = field(default_factory=deque, init=False)
    at: float | None = field(default=None, init=False)

    def is_below(self, value: float, sample: Sample) -> bool | None:
        """Whether a value lies below; ``None`` while the floor is not fixed."""
        if self.at is not None:
            return value < self.at
        if sample.arm == "control":
            self._first.append(value)
        if len(self._first) >= CALIBRATION:
            self.at = sorted(self._first)[int(FLOOR_SHARE * CALIBRATION)]
            self._first.clear()
        return None


def embedding_grader(endpoint: Endpoint, model: str, cleaner: Cleaner) -> Grader:
    """Whether request and answer lie unusually far apart, by their embeddings.

    The endpoint is any that serves ``/embeddings`` in OpenAI's shape.
    """
    floor = Floor()

    def grade(exchanges: Sequence[Exchange]) -> list[Opinion]:
        places = [i for i, e in enumerate(exchanges) if e.answer and e.question]
        if not places:
            return [NONE] * len(exchanges)
        texts = []
        for i in places:
            texts.append(cleaner.text(exchanges[i].question)[-TEXT_CHARS:])
            texts.append(exchanges[i].answer[:TEXT_CHARS])
        status, body = endpoint.post("/embeddings", {"model": model, "input": texts})
        vectors = read_embeddings(body, len(texts)) if status == 200 else None
        found = [NONE] * len(exchanges)
        for place, i in enumerate(places):
            if vectors is None:
                found[i] = Opinion(problem=f"no embedding came (status {status})")
                continue
            near = cosine(vectors[2 * place], vectors[2 * place + 1])
            if near is None:
                found[i] = Opinion(problem="an embedding has no direction")
            else:
                found[i] = Opinion(bad=floor.is_below(near, exchanges[i].sample))
        return found

    return grade


def read_embeddings(body: Any, n: int) -> list[list[float]] | None:
    """The vectors of an ``/embeddings`` answer in the order of the texts.

    ``None`` when one is missing, of another length, or holds what is no number.
    """
    rows = body.get("data") if isinstance(body, dict) else None
    if not isinstance(rows, list) or len(rows) != n:
        return None
    found: dict[int, list[float]] = {}
    for place, row in enumerate(rows):
        vector = row.get("embedding") if isinstance(row, dict) else None
        if not isinstance(vector, list) or not all(map(_is_number, vector)):
            return None
        found[row.get("index", place)] = vector
    if set(found) != set(range(n)) or len({len(v) for v in found.values()}) != 1:
        return None
    return [found[i] for i in range(n)]


def _is_number(value: object) -> bool:
    return (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and isfinite(value)
    )


def cosine(one: Sequence[float], other: Sequence[float]) -> float | None:
    """Cosine of the angle between two vectors; ``None`` when one has no direction.

    Example:
        >>> cosine([1.0, 0.0], [2.0, 0.0]), cosine([0.0], [1.0])
        (1.0, None)
    """
    norms = sqrt(sum(x * x for x in one)) * sqrt(sum(x * x for x in other))
    if norms == 0:
        return None
    return sum(x * y for x, y in zip(one, other, strict=True)) / norms
