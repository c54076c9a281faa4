"""JSON as RFC 8259 has it, out of an answer."""

import json
import re
from dataclasses import dataclass
from typing import Any, NoReturn

FENCE = re.compile(r"^[ \t]*```+[ \t]*([\w+-]*)[^\n]*\n", re.MULTILINE)
CLOSING = re.compile(r"^[ \t]*```+[ \t]*$", re.MULTILINE)
MAX_FENCES = 50


@dataclass(frozen=True, slots=True)
class ParsedJson:
    """A JSON value, or why there is none.

    Attributes:
        problem: ``None`` when ``value`` is one.
        where: The rule that found it.
    """

    value: Any = None
    problem: str | None = None
    where: str = "raw"


class _NotJsonError(ValueError):
    """A number that JSON does not have."""


def _no_constant(name: str) -> NoReturn:
    raise _NotJsonError(f"{name} is no JSON value")


def parse_json(text: str, where: str = "raw") -> ParsedJson:
    """Parse a whole text as one JSON value; strict.

    NaN and Infinity are no JSON, neither is a raw line break inside a string; for
    the latter the problem says ``repairable``.
    """
    try:
        return ParsedJson(json.loads(text, parse_constant=_no_constant), None, where)
    except RecursionError:
        return ParsedJson(None, "nested too deeply", where)
    except ValueError as error:
        problem = str(error)
    try:
        json.loads(text, parse_constant=_no_constant, strict=False)
    except (ValueError, RecursionError):
        return ParsedJson(None, problem, where)
    return ParsedJson(None, f"{problem} (repairable: raw control character)", where)


def fences(text: str) -> list[tuple[str, str]]:
    """Fenced blocks as (language, content), in order; at most 50.

    A last fence that is never closed reaches to the end.
    """
    found: list[tuple[str, str]] = []
    at = 0
    while len(found) < MAX_FENCES and (opening := FENCE.search(text, at)):
        closing = CLOSING.search(text, opening.end())
        end = closing.start() if closing else len(text)
        found.append((opening.group(1).lower(), text[opening.end() : end]))
        at = closing.end() if closing else len(text)
    return found


def parse_fenced_json(text: str) -> ParsedJson:
    """The JSON of an answer that may be wrapped in a code fence.

    In this order: the whole text; each fence tagged ``json``; each other fence. The
    first that parses counts.
    """
    raw = parse_json(text)
    if raw.problem is None:
        return raw
    blocks = fences(text)
    tagged = [content for language, content in blocks if language.startswith("json")]
    other = [content for language, content in blocks if not language.startswith("json")]
    first: ParsedJson | None = None
    for content, where in [(c, "json fence") for c in tagged] + [
        (c, "fence") for c in other
    ]:
        parsed = parse_json(content, where)
        if parsed.problem is None:
            return parsed
        first = first or parsed
    return first or raw
