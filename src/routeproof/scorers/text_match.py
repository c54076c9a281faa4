"""Exact match, containment and regular expressions."""

import re
import unicodedata
from typing import Any

from routeproof.scorers.answered import (
    option,
    reference,
    unscored,
    verdict,
)
from routeproof.scorers.score import Score, ScoredAnswer
from routeproof.workloads.case import Case

EDGE = frozenset(" \t\r\n.,;:!?…\"'`“”‘’«»„*_~。、！？；：，．")
PAIRS = {"(": ")", "[": "]", "{": "}", "（": "）", "【": "】", "「": "」", "『": "』"}
TRIMMED_CHARACTERS = 10_000
"""Longer texts are compared untrimmed: no short answer hides in them."""

REGEX_CHARACTERS = 200_000


def normalise(text: str) -> str:
    """The text as exact match compares it.

    Unicode NFKC, one space for any run of white space, no case, and no quotes,
    brackets, emphasis or punctuation around it. Signs, digits and everything inside
    are left alone: ``-5`` stays ``-5`` and ``3.14`` stays ``3.14``. Idempotent.
    """
    folded = unicodedata.normalize(
        "NFKC", unicodedata.normalize("NFKC", text).casefold()
    )
    flat = " ".join(folded.split())
    return _trim(flat) if len(flat) <= TRIMMED_CHARACTERS else flat


def _trim(text: str) -> str:
    start, end = 0, len(text)
    while start < end:
        if text[end - 1] in EDGE:
            end -= 1
        elif text[start] in EDGE and not _is_decimal_point(text, start):
            start += 1
        elif PAIRS.get(text[start]) == text[end - 1]:
            start, end = start + 1, end - 1
        else:
            return text[start:end]
    return text


def _is_decimal_point(text: str, at: int) -> bool:
    return text[at] == "." and text[at + 1 : at + 2].isdigit()


def as_texts(value: Any) -> tuple[str, ...] | None:
    """References as texts: one, or a list of accepted ones; ``None`` if neither."""
    if isinstance(value, str):
        return (value,)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return (str(value),)
    if isinstance(value, list | tuple) and value:
        found = [as_texts(one) for one in value if not isinstance(one, list | tuple)]
        if len(found) == len(value) and all(found):
            return tuple(one[0] for one in found if one)
    return None


def exact_match(case: Case, answer: ScoredAnswer) -> Score:
    """1 when the answer is one of the references, after :func:`normalise`.

    Options: ``strict`` (compare as sent, outer white space aside).
    """
    accepted = as_texts(reference(case, "exact_match"))
    if not accepted or not all(accepted):
        return unscored("reference is no text, or an empty one")
    if option(case, "exact_match", "strict", False):
        said = answer.text.strip()
        return verdict(said in {one.strip() for one in accepted}, said, "strict")
    said = normalise(answer.text)
    is_right = said in {normalise(one) for one in accepted}
    return verdict(is_right, said, "normalised")


def contains(case: Case, answer: ScoredAnswer) -> Score:
    """1 when the references occur in the answer as whole words.

    ``11`` does not occur in ``711``. Options: ``mode`` is ``any`` (default: one of
    the references is enough) or ``all``; ``absent`` is a list that must not occur.
    """
    wanted = as_texts(reference(case, "contains"))
    banned = as_texts(option(case, "contains", "absent")) or ()
    if not wanted or not all(one.strip() for one in wanted):
        return unscored("reference is no text, or an empty one")
    text = " ".join(unicodedata.normalize("NFKC", answer.text).casefold().split())
    hits = [one for one in wanted if occurs(_folded(one), text)]
    unwanted = [one for one in banned if occurs(_folded(one), text)]
    need = len(wanted) if option(case, "contains", "mode", "any") == "all" else 1
    trace = f"{len(hits)} of {len(wanted)} found, {need} needed"
    if unwanted:
        return verdict(False, unwanted[0], f"{trace}; must not occur")
    return verdict(len(hits) >= need, hits[0] if hits else None, trace)


def _folded(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def occurs(needle: str, text: str) -> bool:
    """True when ``needle`` occurs in ``text`` and neither end splits a word.

    Scripts written without spaces (Han, kana, Thai) have no word ends to respect.
    """
    at = text.find(needle) if needle else -1
    while at >= 0:
        end = at + len(needle)
        if not _joins(text[at - 1 : at], needle[0]) and not _joins(
            needle[-1], text[end : end + 1]
        ):
            return True
        at = text.find(needle, at + 1)
    return False


def _joins(left: str, right: str) -> bool:
    if not left or not right:
        return False
    if _is_unspaced(left) or _is_unspaced(right):
        return False
    return left.isalnum() and right.isalnum()


def _is_unspaced(character: str) -> bool:
    return "\u0e00" <= character <= "\u0e7f" or "\u3040" <= character <= "\u9fff"


def regex(case: Case, answer: ScoredAnswer) -> Score:
    """1 when the pattern of the reference matches the answer.

    Options: ``mode`` is ``search`` (default) or ``full``; ``ignore_case``. Only the
    first 200,000 characters are read.
    """
    pattern = reference(case, "regex")
    if not isinstance(pattern, str) or not pattern:
        return unscored("reference is no pattern")
    flags = re.IGNORECASE if option(case, "regex", "ignore_case", False) else 0
    try:
        compiled = re.compile(pattern, flags)
    except (re.error, RecursionError, OverflowError) as error:
        return unscored(f"pattern does not compile: {error}")
    text = answer.text[:REGEX_CHARACTERS].strip()
    is_full = option(case, "regex", "mode", "search") == "full"
    match = compiled.fullmatch(text) if is_full else compiled.search(text)
    if match is None:
        return verdict(False, None, "no match")
    return verdict(True, match.group(), "matched")
