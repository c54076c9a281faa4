"""Instruction following: constraints that a program can check."""

from collections.abc import Callable
from typing import Any

from routeproof.scorers.answered import option, reference, score, unscored
from routeproof.scorers.constraints import CONSTRAINTS, ConstraintProblem
from routeproof.scorers.score import Score, ScoredAnswer
from routeproof.workloads.case import Case

Check = tuple[str, dict[str, Any]]


def constraints_of(case: Case, scorer: str = "instruction") -> list[Check] | None:
    """The constraints of a case as (name, arguments); ``None`` when it has none.

    From the option ``constraints`` or the reference: a list of
    ``{"id": ..., **arguments}``, or IFEval's ``instruction_id_list`` and ``kwargs``.
    """
    given = option(case, scorer, "constraints") or reference(case, scorer)
    if isinstance(given, dict) and "instruction_id_list" in given:
        names = given["instruction_id_list"]
        arguments = given.get("kwargs") or [{}] * len(names)
        if len(names) != len(arguments) or not names:
            return None
        return [
            (str(name), {k: v for k, v in (one or {}).items() if v is not None})
            for name, one in zip(names, arguments, strict=True)
        ]
    if not isinstance(given, list | tuple) or not given:
        return None
    checks = []
    for one in given:
        if not isinstance(one, dict) or not isinstance(one.get("id"), str):
            return None
        checks.append((one["id"], {k: v for k, v in one.items() if k != "id"}))
    return checks


def _find(name: str) -> tuple[Callable[..., bool], str] | None:
    """A constraint by its name, with or without language and group in front."""
    parts = name.split(":")
    language = parts[0] if len(parts[0]) == 2 else "en"
    found = CONSTRAINTS.get(parts[-1])
    return (found, language) if found else None


def check_constraints(checks: list[Check], text: str) -> list[bool] | str:
    """Whether each constraint holds, or what is wrong with a constraint."""
    held = []
    for name, arguments in checks:
        found = _find(name)
        if found is None:
            return f"unknown constraint {name}"
        check, language = found
        try:
            held.append(check(text, locale=language, **arguments))
        except (TypeError, ConstraintProblem) as error:
            return f"{name}: {error}"
    return held


def _score(case: Case, answer: ScoredAnswer, scorer: str, is_share: bool) -> Score:
    checks = constraints_of(case, scorer)
    if checks is None:
        return unscored("no constraints: option `constraints` or reference is missing")
    held = check_constraints(checks, answer.text)
    if isinstance(held, str):
        return unscored(held)
    broken = [name for (name, _), ok in zip(checks, held, strict=True) if not ok]
    trace = "broken: " + ", ".join(broken) if broken else f"all {len(held)} hold"
    if not broken:
        return score("correct", 1.0, None, trace)
    value = 1 - len(broken) / len(held) if is_share else 0.0
    return score("graded" if value else "wrong", value, None, trace)


def instruction(case: Case, answer: ScoredAnswer) -> Score:
    """1 when every constraint of the case holds."""
    return _score(case, answer, "instruction", is_share=False)


def instruction_share(case: Case, answer: ScoredAnswer) -> Score:
    """Share of the case's constraints that hold."""
    return _score(case, answer, "instruction_share", is_share=True)
