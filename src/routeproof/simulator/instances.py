"""JSON that fits a schema, for prompts whose answer no script knows."""

import random
from collections.abc import Callable
from typing import Any

_WORDS = ("harbor", "cedar", "quartz", "willow", "ember", "meadow")


def instance(schema: Any, rng: random.Random, depth: int = 0) -> Any:
    """A value that fits ``schema`` in its common keywords; patterns are not solved."""
    if not isinstance(schema, dict) or depth > 8:
        return {}
    if "const" in schema:
        return schema["const"]
    if schema.get("enum"):
        return rng.choice(schema["enum"])
    for name in ("anyOf", "oneOf", "allOf"):
        if schema.get(name):
            return instance(schema[name][0], rng, depth + 1)
    kind = schema.get(
        "type", "object" if "properties" in schema or not schema else "string"
    )
    kind = kind[0] if isinstance(kind, list) else kind
    return _KINDS.get(str(kind), _text)(schema, rng, depth)


def _object(schema: dict[str, Any], rng: random.Random, depth: int) -> Any:
    properties = schema.get("properties") or {}
    required = schema.get("required") or list(properties)
    return {
        name: instance(properties.get(name, {"type": "string"}), rng, depth + 1)
        for name in required
    }


def _array(schema: dict[str, Any], rng: random.Random, depth: int) -> Any:
    size = max(int(schema.get("minItems", 1)), 1)
    return [
        instance(schema.get("items", {"type": "string"}), rng, depth + 1)
        for _ in range(size)
    ]


def _number(schema: dict[str, Any], rng: random.Random, depth: int) -> Any:
    low = schema.get("minimum", schema.get("exclusiveMinimum", 0) + 1)
    high = schema.get("maximum", low + 9)
    whole = schema.get("type") == "integer"
    return (
        rng.randint(int(low), max(int(low), int(high)))
        if whole
        else round(low + rng.random() * (high - low), 2)
    )


def _text(schema: dict[str, Any], rng: random.Random, depth: int) -> Any:
    text = rng.choice(_WORDS)
    low, high = int(schema.get("minLength", 0)), schema.get("maxLength")
    while len(text) < low:
        text += rng.choice(_WORDS)
    return text if high is None else text[: int(high)]


def _boolean(schema: dict[str, Any], rng: random.Random, depth: int) -> Any:
    return rng.random() < 0.5


def _null(schema: dict[str, Any], rng: random.Random, depth: int) -> Any:
    return None


_KINDS: dict[str, Callable[[dict[str, Any], random.Random, int], Any]] = {
    "object": _object,
    "array": _array,
    "integer": _number,
    "number": _number,
    "string": _text,
    "boolean": _boolean,
    "null": _null,
}
