"""Reading values out of answers without trusting their shape."""

import json
from collections.abc import Mapping
from typing import Any


def mapping(text: str | None) -> dict[str, Any]:
    """The JSON object in ``text``; empty when it is missing or something else."""
    value = json_value(text)
    return value if isinstance(value, dict) else {}


def json_value(text: str | None) -> Any:
    """The JSON value in ``text``, or ``None``."""
    if text is None:
        return None
    try:
        return json.loads(text)
    except ValueError:
        return None


def inner(value: Any, *keys: str) -> Mapping[str, Any]:
    """The object at a path of keys; empty where any step is missing."""
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value if isinstance(value, Mapping) else {}


def text_of(value: Any) -> str | None:
    """Canonical text of a scalar; ``None`` for null, lists and mappings.

    Example:
        >>> text_of(False), text_of(7), text_of(0.95), text_of(None)
        ('false', '7', '0.95', None)
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        # llama.cpp reports 32-bit floats as 64-bit ones: 0.949999988079071 is 0.95.
        return f"{value:.6g}"
    if isinstance(value, (str, int)):
        return str(value) or None
    return None


def whole(value: Any) -> int | None:
    """A count: an integer of at least 0, or ``None``."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return int(value) if value >= 0 and value == int(value) else None


def seconds(value: Any, *, per_second: float = 1.0) -> float | None:
    """A duration in seconds, or ``None``; ``per_second`` is 1000 for milliseconds."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return value / per_second if 0 <= value < float("inf") else None


def counts(value: Any) -> tuple[int, ...] | None:
    """A list of counts, or ``None`` when any entry is no count."""
    if not isinstance(value, list) or not value:
        return None
    numbers = [whole(entry) for entry in value]
    return None if None in numbers else tuple(n for n in numbers if n is not None)


def put(fields: dict[str, str], name: str, value: Any) -> None:
    """Set a route field when there is a value for it."""
    text = text_of(value)
    if text is not None:
        fields[name] = text


def model_ids(models: str | None) -> tuple[str, ...]:
    """Ids in the answer of ``/v1/models``."""
    entries = mapping(models).get("data")
    rows = entries if isinstance(entries, list) else []
    return tuple(
        str(row["id"]) for row in rows if isinstance(row, dict) and "id" in row
    )


def first_model(models: str | None) -> Mapping[str, Any]:
    """The first entry of ``/v1/models``; empty when there is none."""
    entries = mapping(models).get("data")
    rows = entries if isinstance(entries, list) else []
    return rows[0] if rows and isinstance(rows[0], dict) else {}
