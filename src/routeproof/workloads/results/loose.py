"""Values of files whose shape is another tool's matter: what is not there is ``None``.

A file of a version we do not know must cost its odd field, not the import.
"""

from collections.abc import Mapping
from typing import Any


def mapping(value: Any) -> Mapping[str, Any]:
    """An object, else an empty one."""
    return value if isinstance(value, dict) else {}


def objects(value: Any) -> list[Mapping[str, Any]]:
    """The objects of a list, else none."""
    if not isinstance(value, list):
        return []
    return [one for one in value if isinstance(one, dict)]


def number(value: Any) -> float | None:
    """A number; a truth value is none."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number else None


def count(value: Any) -> int | None:
    """A whole number, also when it was written as 12.0."""
    found = number(value)
    return int(found) if found is not None and found == int(found) else None


def text(value: Any) -> str | None:
    """A text that is not empty."""
    return value if isinstance(value, str) and value else None
