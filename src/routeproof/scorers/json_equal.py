"""Equality of JSON values."""

from typing import Any


def json_equal(left: Any, right: Any, *, fold_strings: bool = False) -> bool:
    """True when two JSON values are the same value. Symmetric; never recurses.

    1 equals 1.0, but ``true`` is not 1; big integers are compared exactly; keys have
    no order, lists have one.

    Args:
        left: A value as ``json.loads`` gives it.
        right: Another.
        fold_strings: Compare strings without case and with white space collapsed.
    """
    pending = [(left, right)]
    while pending:
        a, b = pending.pop()
        if isinstance(a, dict) and isinstance(b, dict):
            if a.keys() != b.keys():
                return False
            pending += [(a[key], b[key]) for key in a]
        elif isinstance(a, list | tuple) and isinstance(b, list | tuple):
            if len(a) != len(b):
                return False
            pending += zip(a, b, strict=True)
        elif not _is_same_scalar(a, b, fold_strings):
            return False
    return True


def _is_same_scalar(a: Any, b: Any, fold_strings: bool) -> bool:
    if isinstance(a, bool) or isinstance(b, bool) or a is None or b is None:
        return a is b
    if isinstance(a, str) and isinstance(b, str):
        return a == b or (fold_strings and fold(a) == fold(b))
    if isinstance(a, int | float) and isinstance(b, int | float):
        return a == b
    return False


def fold(text: str) -> str:
    """Text without case, white space collapsed."""
    return " ".join(text.casefold().split())
