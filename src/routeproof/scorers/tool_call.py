"""Tool calls: the right functions with the right arguments."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from routeproof.scorers.answered import (
    option,
    reference,
    unparseable,
    unscored,
    verdict,
)
from routeproof.scorers.json_equal import json_equal
from routeproof.scorers.json_schema import SchemaProblem, schema_problem
from routeproof.scorers.json_text import parse_json
from routeproof.scorers.score import Score, ScoredAnswer
from routeproof.workloads.case import Case


@dataclass(frozen=True, slots=True)
class Call:
    """A call that was made."""

    name: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Expected:
    """A call that is expected.

    Attributes:
        accepted: Accepted values by argument.
        optional: Arguments that may be left out.
        fold_strings: Compare strings without case and extra white space; nested
            values are themselves lists of accepted values (the BFCL convention).
    """

    name: str
    accepted: Mapping[str, tuple[Any, ...]]
    optional: frozenset[str]
    fold_strings: bool = False

    def problem(self, call: Call) -> str | None:
        """Why a call is not this one, or ``None`` when it is."""
        if call.name != self.name:
            return f"called {call.name}, expected {self.name}"
        for name in self.accepted:
            if name not in call.arguments and name not in self.optional:
                return f"{self.name}: {name} is missing"
        for name, value in call.arguments.items():
            if name not in self.accepted:
                return f"{self.name}: {name} was not asked for"
            if not any(self._is_equal(value, one) for one in self.accepted[name]):
                return f"{self.name}: {name} has another value"
        return None

    def _is_equal(self, value: Any, accepted: Any) -> bool:
        if not self.fold_strings:
            return json_equal(value, accepted)
        return _is_accepted_value(value, accepted)


def _is_accepted_value(value: Any, accepted: Any) -> bool:
    """Equality where the fields of an accepted object are lists of accepted values."""
    if isinstance(accepted, dict):
        if not isinstance(value, dict) or value.keys() - accepted.keys():
            return False
        return all(_is_field_accepted(value, key, ok) for key, ok in accepted.items())
    if isinstance(accepted, list):
        return (
            isinstance(value, list)
            and len(value) == len(accepted)
            and all(map(_is_accepted_value, value, accepted))
        )
    return json_equal(value, accepted, fold_strings=True)


def _is_field_accepted(value: dict[str, Any], key: str, accepted: Any) -> bool:
    choices = accepted if isinstance(accepted, list) else [accepted]
    if key not in value:
        return "" in choices
    return any(_is_accepted_value(value[key], one) for one in choices)


def read_expected(value: Any) -> tuple[Expected, ...] | None:
    """Expected calls of a reference; ``None`` when it has neither form.

    Two forms: ``{"name": ..., "arguments": {...}, "optional": [...]}`` with one value
    per argument, and ``{name: {argument: [accepted, ...]}}`` (BFCL), in which an empty
    string among the accepted values means the argument may be left out.
    """
    if not isinstance(value, list | tuple):
        return None
    found = [_read_one(one) for one in value]
    return None if any(one is None for one in found) else tuple(e for e in found if e)


def _read_one(value: Any) -> Expected | None:
    if not isinstance(value, dict):
        return None
    if "name" in value:
        arguments = value.get("arguments", {})
        if not isinstance(arguments, dict) or not isinstance(value["name"], str):
            return None
        accepted = {name: (one,) for name, one in arguments.items()}
        return Expected(value["name"], accepted, frozenset(value.get("optional", ())))
    if len(value) != 1:
        return None
    name, arguments = next(iter(value.items()))
    if not isinstance(arguments, dict) or not all(
        isinstance(one, list) for one in arguments.values()
    ):
        return None
    optional = frozenset(key for key, ok in arguments.items() if "" in ok)
    accepted = {key: tuple(ok) for key, ok in arguments.items()}
    return Expected(name, accepted, optional, fold_strings=True)


def read_calls(answer: ScoredAnswer) -> tuple[Call, ...] | str:
    """The calls of an answer, or why they cannot be read."""
    calls = []
    for call in answer.tool_calls:
        name, arguments = call.get("name"), call.get("arguments")
        if not isinstance(name, str) or not name:
            return "a call without a name"
        if isinstance(arguments, str):
            parsed = parse_json(arguments if arguments.strip() else "{}")
            if parsed.problem is not None:
                return f"arguments of {name} are no JSON: {parsed.problem}"
            arguments = parsed.value
        if arguments is None:
            arguments = {}
        if not isinstance(arguments, dict):
            return f"arguments of {name} are no object"
        calls.append(Call(name, arguments))
    return tuple(calls)


def tool_call(case: Case, answer: ScoredAnswer) -> Score:
    """1 when exactly the expected calls were made.

    An empty reference expects no call. Parallel calls have no order unless the option
    ``ordered`` is true; a call made twice is one too many. The option ``expect``
    (``some`` or ``none``) needs no reference: any valid call, or no call at all.
    """
    expect = option(case, "tool_call", "expect")
    expected = read_expected(reference(case, "tool_call"))
    if expect == "none" or (expected == () and expect is None):
        return _score_none(answer)
    calls = read_calls(answer)
    if isinstance(calls, str):
        return unparseable(calls)
    if expected is None and expect != "some":
        return unscored("reference is no list of expected calls")
    if not calls:
        written = "{" in answer.text and '"name"' in answer.text
        return verdict(
            False, None, "call written as text" if written else "no call was made"
        )
    names = ", ".join(call.name for call in calls)
    problem = tool_problem(case, calls)
    if problem is None and expect != "some":
        is_ordered = bool(option(case, "tool_call", "ordered", False))
        problem = _mismatch(expected or (), calls, is_ordered)
    return verdict(problem is None, names, problem or f"{len(calls)} as expected")


def _score_none(answer: ScoredAnswer) -> Score:
    made = len(answer.tool_calls)
    return verdict(made == 0, None, f"no call expected, {made} made")


def tool_problem(case: Case, calls: tuple[Call, ...]) -> str | None:
    """A call of a tool that was not offered, or against the tool's own schema."""
    offered = {
        tool["function"].get("name"): tool["function"].get("parameters")
        for tool in case.parameters.get("tools") or ()
        if isinstance(tool, dict) and isinstance(tool.get("function"), dict)
    }
    for call in calls:
        if not offered:
            return None
        if call.name not in offered:
            return f"unknown tool {call.name}"
        schema = offered[call.name]
        try:
            problem = schema_problem(schema, dict(call.arguments)) if schema else None
        except SchemaProblem:
            problem = None
        if problem is not None:
            return f"{call.name}: {problem}"
    return None


def _mismatch(
    expected: tuple[Expected, ...], calls: tuple[Call, ...], is_ordered: bool
) -> str | None:
    if len(expected) != len(calls):
        return f"{len(calls)} calls made, {len(expected)} expected"
    if is_ordered:
        pairs = zip(expected, calls, strict=True)
        return next((p for e, c in pairs if (p := e.problem(c)) is not None), None)
    taken: dict[int, int] = {}
    for index in range(len(expected)):
        if not _assign(index, expected, calls, taken, set()):
            return _nearest_problem(expected[index], calls)
    return None


def _assign(
    index: int,
    expected: tuple[Expected, ...],
    calls: tuple[Call, ...],
    taken: dict[int, int],
    seen: set[int],
) -> bool:
    """Augmenting path of a bipartite matching: accepted sets may overlap."""
    for at, call in enumerate(calls):
        if at in seen or expected[index].problem(call) is not None:
            continue
        seen.add(at)
        if at not in taken or _assign(taken[at], expected, calls, taken, seen):
            taken[at] = index
            return True
    return False


def _nearest_problem(expected: Expected, calls: tuple[Call, ...]) -> str:
    same = [call for call in calls if call.name == expected.name]
    if not same:
        return f"{expected.name} was not called"
    problems = [expected.problem(call) for call in same]
    return next((p for p in problems if p), f"{expected.name}: one call too few")


def is_same_calls(left: ScoredAnswer, right: ScoredAnswer) -> bool:
    """True when two answers make the same calls, whatever their order. Symmetric."""
    a, b = read_calls(left), read_calls(right)
    if isinstance(a, str) or isinstance(b, str) or len(a) != len(b):
        return False
    exact = tuple(
        Expected(c.name, {k: (v,) for k, v in c.arguments.items()}, frozenset())
        for c in a
    )
    return _mismatch(exact, b, False) is None
