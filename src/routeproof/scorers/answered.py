"""The steps every scorer shares: how the answer ended, reasoning, class, trace.

A scorer proper sees only the text after the reasoning, of an answer that came. What
did not come, or came empty, is classed here, once and the same for all scorers.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from routeproof.scorers.reasoning import strip_reasoning
from routeproof.scorers.score import Score, ScoreClass, ScoredAnswer
from routeproof.workloads.case import Case

ScoreText = Callable[[Case, ScoredAnswer], Score]

ANSWERED = frozenset({"completed", "truncated", "empty", "refused"})
"""Outcomes in which the server did its work; every other one is ``failed``."""

SHOWN_CHARACTERS = 200


def shown(text: str) -> str:
    """``text`` as it may be stored: at most 200 characters, lone surrogates escaped."""
    cut = text if len(text) <= SHOWN_CHARACTERS else text[: SHOWN_CHARACTERS - 1] + "…"
    if cut.isascii():
        return cut
    return cut.encode("utf-8", "backslashreplace").decode("utf-8")


def score(
    class_: ScoreClass, value: float | None, extracted: str | None, trace: str
) -> Score:
    """A score whose texts are short and can be stored."""
    seen = None if extracted is None else shown(extracted)
    return Score(class_=class_, value=value, extracted=seen, trace=shown(trace))


def verdict(is_right: bool, extracted: str | None, trace: str) -> Score:
    """``correct`` with 1 or ``wrong`` with 0."""
    return score("correct" if is_right else "wrong", float(is_right), extracted, trace)


def unscored(trace: str) -> Score:
    """The scorer cannot say; the fault is not the answer's."""
    return score("unscored", None, None, trace)


def unparseable(trace: str, extracted: str | None = None) -> Score:
    """There is an answer, and nothing in it has the form asked for: counts 0."""
    return score("unparseable", 0.0, extracted, trace)


def option(case: Case, scorer: str, name: str, default: Any = None) -> Any:
    """An option of a scorer.

    ``case.options[scorer][name]`` wins over ``case.options[name]``, so that two
    scorers of one case can be told different things.
    """
    own = case.options.get(scorer)
    if isinstance(own, dict) and name in own:
        return own[name]
    return case.options.get(name, default)


def reference(case: Case, scorer: str) -> Any:
    """The reference of a scorer: its own option ``reference``, or the case's."""
    own = case.options.get(scorer)
    if isinstance(own, dict) and "reference" in own:
        return own["reference"]
    return case.reference


def answered(
    inner: ScoreText, *, takes_calls: bool = False, reads_filter: bool = False
) -> ScoreText:
    """Wrap a scorer so that it sees only answers, without their reasoning.

    Args:
        inner: The scorer proper.
        takes_calls: True when an answer without text may still be one: tool calls,
            or none where none was expected.
        reads_filter: True when an answer ended by the server's content filter is
            the scorer's matter; otherwise it is ``refused`` and counts 0.
    """

    def of(case: Case, answer: ScoredAnswer) -> Score:
        if answer.outcome not in ANSWERED:
            return score("failed", None, None, f"request ended {answer.outcome}")
        if answer.outcome == "refused":
            if reads_filter:
                return inner(case, answer)
            return score("refused", 0.0, None, "content filter")
        text, how = strip_reasoning(answer.text, case.options.get("reasoning"))
        is_cut = answer.outcome == "truncated" or answer.finish_reason == "length"
        if (not text or text.isspace()) and not (
            takes_calls and answer.outcome == "completed"
        ):
            silent: ScoreClass = "truncated" if is_cut else "empty"
            return score(silent, 0.0, None, how or "no visible text")
        if how:
            answer = replace(answer, text=text)
        result = inner(case, answer)
        if not how and not is_cut:
            return result
        trace = f"{how}; {result.trace}" if how else result.trace
        class_ = "truncated" if is_cut and result.value is not None else result.class_
        return score(class_, result.value, result.extracted, trace)

    return of
