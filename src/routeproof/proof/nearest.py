"""The nearest known name to a mistyped one."""

import difflib
from collections.abc import Iterable


def nearest(name: str, known: Iterable[str], *, cutoff: float = 0.5) -> str | None:
    """The known name most like ``name``, or ``None`` when none is near.

    ``cutoff`` is the least similarity, from 0 to 1.

    Example:
        >>> nearest("kv_cach", ["kv_cache", "weights"])
        'kv_cache'
    """
    found = difflib.get_close_matches(name, list(known), n=1, cutoff=cutoff)
    return found[0] if found else None
