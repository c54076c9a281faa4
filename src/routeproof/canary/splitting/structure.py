"""Whether a whole answer is the structure its own request asked for."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from routeproof.scorers.json_schema import json_schema
from routeproof.scorers.json_text import parse_json
from routeproof.scorers.score import ScoredAnswer
from routeproof.workloads.case import Case


def structure_check(
    path: str, fields: Mapping[str, Any]
) -> Callable[[bytes], bool] | None:
    """A check of the body of an answer, or ``None`` where there is nothing to check.

    Only whole chat answers with a ``response_format`` of a JSON kind are checked: a
    stream has reached its reader before it can be judged.
    """
    form = fields.get("response_format")
    if path != "/v1/chat/completions" or fields.get("stream"):
        return None
    if not isinstance(form, Mapping) or form.get("type") not in KINDS:
        return None
    return lambda body: _is_good(body, fields)


KINDS = ("json_object", "json_schema")


def _is_good(body: bytes, fields: Mapping[str, Any]) -> bool:
    """False for an answer that shows a fault; a refusal and a tool call show none."""
    try:
        answer = msgspec.json.decode(body)
        choices = answer["choices"]
        said = [choice["message"] for choice in choices]
    except (msgspec.DecodeError, UnicodeDecodeError, LookupError, TypeError):
        return False
    return bool(said) and all(_is_valid(message, fields) for message in said)


def _is_valid(message: Any, fields: Mapping[str, Any]) -> bool:
    if not isinstance(message, Mapping):
        return False
    if message.get("refusal") or message.get("tool_calls"):
        return True
    return is_structure(str(message.get("content") or ""), fields) is not False


def is_structure(text: str, fields: Mapping[str, Any]) -> bool | None:
    """Whether a text is what ``response_format`` asks for; ``None`` when unknown."""
    form = fields.get("response_format")
    kind = form.get("type") if isinstance(form, Mapping) else None
    if kind == "json_object":
        return isinstance(parse_json(text).value, dict)
    if kind != "json_schema":
        return None
    case = Case(
        id="live",
        class_="live",
        prompt="",
        parameters=dict(fields),
        scorers=("degeneration",),
    )
    value = json_schema(case, ScoredAnswer(text=text)).value
    return None if value is None else value == 1.0
