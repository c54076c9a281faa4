"""What can be said of a live answer without knowing the right one.

Every signal is a yes or no ("was it bad?"), or ``None`` where it does not apply to
the request. They use the same scorers as the offline proof: a request becomes a case
without a reference.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from routeproof.canary.samples.spool import Sample
from routeproof.records.outcome import SERVED
from routeproof.scorers.answer_of import read_tool_calls
from routeproof.scorers.degeneration import degeneration, new_script
from routeproof.scorers.json_schema import json_schema
from routeproof.scorers.json_text import parse_json
from routeproof.scorers.refusal import refusal_phrase
from routeproof.scorers.score import ScoredAnswer
from routeproof.scorers.tool_call import read_calls, tool_problem
from routeproof.workloads.case import Case


@dataclass(frozen=True, slots=True)
class Tasting:
    """One sample as the signals see it.

    Attributes:
        prompt: Text of the prompt, kept only while it is tasted.
        slo: Limits in seconds by name (``time_to_first_token_s``,
            ``request_latency_s``); a missing one is not judged.
    """

    sample: Sample
    prompt: str
    slo: Mapping[str, float]

    @property
    def is_served(self) -> bool:
        """Whether an answer came at all."""
        return self.sample.record.answer.outcome in SERVED

    @property
    def text(self) -> str:
        """The visible answer."""
        return self.sample.record.answer.text or ""

    def case(self) -> Case:
        """The request as a case without a reference."""
        return Case(
            id=self.sample.request_id,
            class_="live",
            prompt=self.prompt,
            parameters=self.sample.request,
            scorers=("degeneration",),
        )

    def answer(self) -> ScoredAnswer:
        """The answer as a scorer sees it."""
        said = self.sample.record.answer
        return ScoredAnswer(
            text=self.text,
            outcome=said.outcome,
            finish_reason=said.finish_reason,
            reasoning=said.reasoning,
            tool_calls=read_tool_calls(said.tool_calls),
            output_tokens=self.sample.record.usage.output_tokens,
        )


def _error(seen: Tasting) -> bool | None:
    outcome = seen.sample.record.answer.outcome
    return None if outcome == "cancelled" else outcome not in {*SERVED, "empty"}


def _empty(seen: Tasting) -> bool | None:
    outcome = seen.sample.record.answer.outcome
    return outcome == "empty" if outcome in {*SERVED, "empty"} else None


def _truncated(seen: Tasting) -> bool | None:
    if not seen.is_served:
        return None
    return seen.sample.record.answer.outcome == "truncated"


def _degenerate(seen: Tasting) -> bool | None:
    if not seen.is_served or not seen.text:
        return None
    value = degeneration(seen.case(), seen.answer()).value
    return None if value is None else value > 0.0


def _invalid_structure(seen: Tasting) -> bool | None:
    form = seen.sample.request.get("response_format")
    if not seen.is_served or not isinstance(form, Mapping):
        return None
    if form.get("type") == "json_object":
        return not isinstance(parse_json(seen.text).value, dict)
    if form.get("type") != "json_schema":
        return None
    value = json_schema(seen.case(), seen.answer()).value
    return None if value is None else value < 1.0


def _invalid_tool_call(seen: Tasting) -> bool | None:
    answer = seen.answer()
    if not seen.is_served or not seen.sample.request.get("tools"):
        return None
    if not answer.tool_calls:
        return None
    calls = read_calls(answer)
    return isinstance(calls, str) or tool_problem(seen.case(), calls) is not None


def _refusal(seen: Tasting) -> bool | None:
    if not seen.is_served or not seen.text:
        return None
    return refusal_phrase(seen.text) is not None


def _script_switch(seen: Tasting) -> bool | None:
    if not seen.is_served or not seen.text or not seen.prompt:
        return None
    return new_script(seen.text, seen.prompt) is not None


def _over(name: str) -> Callable[[Tasting], bool | None]:
    def judge(seen: Tasting) -> bool | None:
        limit = seen.slo.get(name)
        if limit is None or seen.sample.record.answer.outcome == "cancelled":
            return None
        clock, stream = seen.sample.record.clock, seen.sample.record.stream
        if not seen.is_served:
            return True
        if name == "time_to_first_token_s":
            end = stream.chunk_s[0] if stream.chunk_s else None
        else:
            end = clock.end_s
        return None if end is None else end - clock.intended_s > limit

    return judge


@dataclass(frozen=True, slots=True)
class Signal:
    """A row of the table: what it asks, in words and as a function."""

    what: str
    of: Callable[[Tasting], bool | None]


SIGNALS: dict[str, Signal] = {
    "error": Signal("no proper answer came", _error),
    "empty": Signal("the answer was empty", _empty),
    "truncated": Signal("the answer was cut at max_tokens", _truncated),
    "degenerate": Signal("loops, noise or one character for ever", _degenerate),
    "invalid_structure": Signal(
        "not the JSON the request asked for", _invalid_structure
    ),
    "invalid_tool_call": Signal(
        "a tool call the request's own tools refuse", _invalid_tool_call
    ),
    "refusal": Signal("the answer declines", _refusal),
    "script_switch": Signal(
        "the answer changes to a script the prompt has not", _script_switch
    ),
    "slow_first_token": Signal("later than the SLO", _over("time_to_first_token_s")),
    "slow": Signal("longer than the SLO", _over("request_latency_s")),
}
"""Signals scored on every sample. ``complaint`` (user feedback) comes from elsewhere
and shares the evidence."""


def taste(
    seen: Tasting,
    signals: Mapping[str, Signal] = SIGNALS,
    note: Callable[[str, str | None], None] | None = None,
) -> dict[str, bool | None]:
    """Every signal of one sample.

    A scorer that breaks leaves its signal unknown; the others go on.

    Args:
        seen: The sample.
        signals: What is asked.
        note: Told of each signal that was scored, and of what broke it otherwise.
    """
    found: dict[str, bool | None] = {}
    for name, signal in signals.items():
        problem = None
        try:
            found[name] = signal.of(seen)
        except Exception as error:  # answers are foreign text: any scorer may break
            found[name] = None
            problem = f"{type(error).__name__} in the scorer"
        if note is not None and (problem or found[name] is not None):
            note(name, problem)
    return found


def text_of_prompt(body: Mapping[str, Any]) -> str:
    """The words of a request's prompt, for signals that compare with them."""
    if isinstance(body.get("prompt"), str):
        return str(body["prompt"])
    words = []
    messages = body.get("messages")
    for message in messages if isinstance(messages, list) else ():
        content = message.get("content") if isinstance(message, Mapping) else None
        if isinstance(content, str):
            words.append(content)
        elif isinstance(content, list):
            words += [
                str(part["text"])
                for part in content
                if isinstance(part, Mapping) and isinstance(part.get("text"), str)
            ]
    return "\n".join(words)
