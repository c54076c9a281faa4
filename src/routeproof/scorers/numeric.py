"""The number an answer comes to, compared exactly."""

import re
from fractions import Fraction
from functools import lru_cache
from typing import Any

from routeproof.scorers.answered import (
    option,
    reference,
    unparseable,
    unscored,
    verdict,
)
from routeproof.scorers.number import (
    Number,
    clean,
    find_numbers,
    first_number,
    last_number,
    parse_number,
)
from routeproof.scorers.score import Score, ScoredAnswer
from routeproof.workloads.case import Case

POLICIES = ("percent_as_number", "percent_as_share", "percent_either")
READ_CHARACTERS = 50_000
"""The final answer is looked for in this many characters at the end."""

RUN_ON = re.compile(
    r"\n\s*(?:Question|Q|Problem|Human|User|Instruction)\s*\d*\s*:"
    r"|<\|im_end\|>|<\|eot_id\|>|<\|endoftext\|>|</s>|<\|im_start\|>"
)
"""Where a model that did not stop begins to ask itself the next question."""

MARKER = re.compile(
    r"(?:####|[Aa]nswer|ANSWER)(?:(?<=#)|\s{0,8}(?:is|was|IS|WAS|[:=])\s{0,8})"
)


def boxed(text: str) -> str | None:
    r"""Content of the last ``\boxed{...}`` with balanced braces, or ``None``."""
    at = text.rfind("\\boxed{")
    if at < 0:
        return None
    start = at + len("\\boxed{")
    depth = 1
    for match in re.compile(r"[{}]").finditer(text, start):
        depth += 1 if match.group() == "{" else -1
        if depth == 0:
            return text[start : match.start()]
    return None


def extract_number(text: str) -> tuple[Number | None, str]:
    r"""The number an answer comes to, and the rule that found it.

    In this order: the last ``\boxed{}``; the last marker (``####``, "the answer is");
    the last number. Text after a run-on (the model asks itself a next question) is
    not read. After a marker the number that follows the last ``=`` of its line
    counts, else the first one.
    """
    run_on = RUN_ON.search(text)
    if run_on and text[: run_on.start()].strip():
        text = text[: run_on.start()]
    text = text[-READ_CHARACTERS:]
    inside = boxed(text)
    if inside is not None:
        found = find_numbers(clean(inside))
        if found:
            return found[-1] if "=" in inside else found[0], "last \\boxed"
    marks = list(MARKER.finditer(text))
    for mark in reversed(marks):
        line = clean(text[mark.end() :].lstrip().split("\n", 1)[0])
        if "=" in line and (after := first_number(line.rsplit("=", 1)[1])):
            return after, "after the marker's ="
        number = first_number(line)
        if number is not None:
            return number, f"after {mark.group().strip().lower()!r}"
    last = last_number(clean(text))
    return (last, "last number") if last else (None, "no number")


def is_same_number(
    left: Number,
    right: Number,
    policy: str = POLICIES[0],
    tolerance: Fraction = Fraction(0),
    relative: Fraction = Fraction(0),
) -> bool:
    """True when the two may stand for the same value. Symmetric.

    Args:
        left: One number.
        right: The other.
        policy: One of ``POLICIES``.
        tolerance: Largest absolute difference that is no difference.
        relative: Largest difference as a share of the larger magnitude.
    """
    if left.value == right.value and left.is_percent == right.is_percent:
        return True
    return any(
        abs(a - b) <= max(tolerance, relative * max(abs(a), abs(b)))
        for a in left.readings(policy)
        for b in right.readings(policy)
    )


def numeric(case: Case, answer: ScoredAnswer) -> Score:
    """1 when the answer comes to the number of the reference.

    Options: ``policy`` for percent signs (one of ``POLICIES``), ``tolerance`` and
    ``relative_tolerance`` (0 by default: equal means equal).
    """
    wanted = _reference_number(reference(case, "numeric"))
    if wanted is None:
        return unscored("reference is not one number")
    policy = option(case, "numeric", "policy", POLICIES[0])
    if policy not in POLICIES:
        return unscored(f"unknown policy {policy!r}, known: {', '.join(POLICIES)}")
    tolerance = _tolerance(option(case, "numeric", "tolerance", 0))
    relative = _tolerance(option(case, "numeric", "relative_tolerance", 0))
    if tolerance is None or relative is None:
        return unscored("a tolerance is not a number of at least 0")
    said, rule = extract_number(answer.text)
    if said is None:
        return unparseable(rule)
    is_right = is_same_number(said, wanted, policy, tolerance, relative)
    return verdict(is_right, said.text, rule)


def _reference_number(value: Any) -> Number | None:
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int | float | str):
        return _parse_reference(str(value))
    return None


@lru_cache(maxsize=8192)
def _parse_reference(text: str) -> Number | None:
    return parse_number(text.rsplit("####", 1)[-1])


def _tolerance(value: Any) -> Fraction | None:
    if isinstance(value, bool):
        return None
    try:
        found = Fraction(str(value))
    except (ValueError, ZeroDivisionError):
        return None
    return found if found >= 0 else None
