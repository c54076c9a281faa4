"""Words of servers, made fit to be stored and shown."""

import json
import re
from typing import Any

MAX_WORDS = 500
"""Characters kept of an error; the rest of a page of HTML helps nobody."""

_SURROGATE = re.compile("[\ud800-\udfff]")
_SPACE = re.compile(r"\s+")
_TAG = re.compile(r"<(script|style)\b.*?</\1\s*>|<[^>]*>", re.DOTALL | re.IGNORECASE)


def clean(text: str) -> str:
    """Text that UTF-8 can carry.

    Engines send characters beyond the BMP as two JSON escapes, sometimes in two
    chunks; the halves are joined here, and a half alone becomes U+FFFD.
    """
    if _SURROGATE.search(text) is None:
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def error_words(error: Any) -> str:
    """The message of an error object as engines send it, in any of their shapes."""
    if isinstance(error, dict):
        for name in ("message", "detail", "error", "msg", "reason"):
            inner = error.get(name)
            if inner:
                return error_words(inner)
    if isinstance(error, str):
        return short(error)
    return short(json.dumps(error, ensure_ascii=False, default=str))


def first_words(body: bytes) -> str:
    """The start of a body that is not what was asked for, tags removed."""
    text = body[: 16 * MAX_WORDS].decode("utf-8", "replace")
    return short(_TAG.sub(" ", text) if "<" in text[:200] else text)


def short(text: str) -> str:
    """One line of at most ``MAX_WORDS`` characters."""
    line = _SPACE.sub(" ", clean(text)).strip()
    return line if len(line) <= MAX_WORDS else line[: MAX_WORDS - 3] + "..."
