"""One case of a run as text: the prompt, then every answer."""

import json
import textwrap
from collections.abc import Iterator
from typing import Any

import msgspec

from routeproof.reports import figures
from routeproof.workloads.case import Case


class Shown(msgspec.Struct, frozen=True, kw_only=True):
    """One request of the case.

    Times are seconds since the request was due; ``None`` means not known.
    """

    request_id: str
    arm: str
    phase: str
    level: str
    trial: int
    outcome: str
    finish_reason: str | None
    error: str | None
    text: str | None
    reasoning: str | None
    tool_calls: str | None
    prompt_tokens: float | None
    output_tokens: float | None
    first_visible_after_s: float | None
    ended_after_s: float | None
    drafted: float | None
    accepted: float | None


class ShownCase(msgspec.Struct, frozen=True, kw_only=True):
    """A case as sent (``None`` when the run kept no cases) and what came back."""

    case_id: str
    case: Case | None
    requests: tuple[Shown, ...]


def case_text(case: Case) -> Iterator[str]:
    """The lines of a case: class, messages, reference."""
    yield f"case         {case.id}"
    yield f"class        {case.class_}"
    for message in case.messages or ():
        yield f"{message.get('role', 'message')}:"
        yield _indented(_content(message.get("content")))
    if case.prompt is not None:
        yield "prompt:"
        yield _indented(case.prompt)
    if case.reference is not None:
        yield f"reference    {_plain(case.reference)}"


def answer_text(answer: Shown) -> Iterator[str]:
    """The lines of one answer: where it stands, how it ended, what it said."""
    trial = f", trial {answer.trial}" if answer.trial else ""
    yield f"{answer.arm} · {answer.phase} {answer.level}{trial} · {answer.outcome}"
    yield f"    {', '.join(_facts(answer))}"
    if answer.error:
        yield _indented(f"error: {answer.error}")
    if answer.reasoning:
        yield _indented(f"(reasoning) {answer.reasoning}")
    if answer.text is not None:
        yield _indented(answer.text)
    if answer.tool_calls:
        yield _indented(answer.tool_calls)


def _facts(answer: Shown) -> Iterator[str]:
    yield f"first visible {figures.number(answer.first_visible_after_s, 's')}"
    yield f"ended {figures.number(answer.ended_after_s, 's')}"
    yield figures.number(answer.output_tokens, "tokens")
    if answer.drafted is not None and answer.accepted is not None:
        yield f"{answer.accepted:.0f} of {answer.drafted:.0f} drafts accepted"


def _content(content: Any) -> str:
    return content if isinstance(content, str) else json.dumps(content, indent=2)


def _plain(reference: Any) -> str:
    return reference if isinstance(reference, str) else json.dumps(reference)


def _indented(text: str) -> str:
    return textwrap.indent(_visible(text), "    ", lambda _: True)


def _visible(text: str) -> str:
    """Text without control characters, so that no answer can steer the terminal."""
    kept = "\n\t"
    return "".join(c if c.isprintable() or c in kept else repr(c)[1:-1] for c in text)
