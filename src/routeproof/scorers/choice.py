"""Multiple choice: which of the lettered options the answer takes."""

import re
from typing import Any

from routeproof.scorers.answered import (
    option,
    reference,
    unparseable,
    unscored,
    verdict,
)
from routeproof.scorers.numeric import boxed
from routeproof.scorers.score import Score, ScoredAnswer
from routeproof.scorers.text_match import normalise
from routeproof.workloads.case import Case

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
READ_CHARACTERS = 20_000

_DRESS = r"[\*_`\"']{0,4}"
_LETTER = (
    rf"{_DRESS}[\(\[]?\s{{0,4}}{_DRESS}(?P<letter>[A-Za-z])"
    rf"{_DRESS}\s{{0,4}}[\)\]]?(?![\w'’])"
)
MARKED = re.compile(
    r"\b(?:answer|choice|option)\b[\s\*_]{0,8}(?:is|was|[:=\-])?[\s\*_:]{0,8}"
    rf"(?:option|choice|letter)?\s{{0,4}}{_LETTER}",
    re.IGNORECASE,
)
WHOLE = re.compile(rf"\s*{_LETTER}[\s.:;,\*_`]*\Z")
LEADING = re.compile(
    r"\s*[\*_`]*(?:\((?P<inside>[A-Z])\)|(?P<letter>[A-Z])[\*_`]*[.):\]])(?!\w)"
)
BRACKETED = re.compile(r"(?<!\w)\((?P<letter>[A-Z])\)|\*\*(?P<bold>[A-Z])\*\*")


def choice(case: Case, answer: ScoredAnswer) -> Score:
    """1 when the answer takes the option of the reference.

    The reference is a letter, a 0-based index, or the text of an option. Options:
    ``choices``: how many there are, or their texts (needed for an index or a text).
    Two different letters with equal claim make the answer unparseable, never a
    guess.
    """
    texts, count = _choices(option(case, "choice", "choices", len(LETTERS)))
    wanted = _letter_of(reference(case, "choice"), texts, count)
    if wanted is None:
        return unscored("reference names no option")
    said, rule = extract_choice(answer.text, texts, count)
    if said is None:
        return unparseable(rule)
    return verdict(said == wanted, said, rule)


def _choices(value: Any) -> tuple[tuple[str, ...], int]:
    if isinstance(value, list | tuple):
        texts = tuple(str(one) for one in value)[: len(LETTERS)]
        return texts, len(texts)
    if isinstance(value, int) and not isinstance(value, bool) and value > 0:
        return (), min(value, len(LETTERS))
    return (), len(LETTERS)


def _letter_of(value: Any, texts: tuple[str, ...], count: int) -> str | None:
    if isinstance(value, int) and not isinstance(value, bool):
        return LETTERS[value] if 0 <= value < count else None
    if not isinstance(value, str):
        return None
    bare = value.strip().strip("().").upper()
    if len(bare) == 1 and bare in LETTERS[:count]:
        return bare
    found = [i for i, text in enumerate(texts) if normalise(text) == normalise(value)]
    return LETTERS[found[0]] if len(found) == 1 else None


def extract_choice(
    text: str, texts: tuple[str, ...] = (), count: int = len(LETTERS)
) -> tuple[str | None, str]:
    """The letter an answer takes, and the rule that found it (or why none did)."""
    text = text[-READ_CHARACTERS:]
    letters = LETTERS[:count]
    inside = boxed(text)
    for candidate, rule in ((inside, "last \\boxed"), (text, "whole answer")):
        match = WHOLE.match(candidate) if candidate else None
        if match and match["letter"].upper() in letters:
            return match["letter"].upper(), rule
    marked = [
        m["letter"].upper()
        for m in MARKED.finditer(text)
        if m["letter"].upper() in letters and _is_claim(m, text)
    ]
    if marked:
        return marked[-1], "after the last answer marker"
    exact = [i for i, one in enumerate(texts) if normalise(one) == normalise(text)]
    if len(exact) == 1:
        return LETTERS[exact[0]], "text of the option"
    leading = LEADING.match(text)
    if leading:
        letter = leading["inside"] or leading["letter"]
        if letter in letters:
            return letter, "leading letter"
    bracketed = {
        m["letter"] or m["bold"]
        for m in BRACKETED.finditer(text)
        if (m["letter"] or m["bold"]) in letters
    }
    if len(bracketed) == 1:
        return bracketed.pop(), "only bracketed letter"
    return None, "several letters" if bracketed else "no letter"


def _is_claim(match: re.Match[str], text: str) -> bool:
    """A lower-case or article ``a`` followed by words is no letter of an option."""
    letter = match["letter"]
    if letter.isupper() and letter not in "AI":
        return True
    after = text[match.end() : match.end() + 2]
    is_bracketed = text[match.end() - 1 : match.end()] in (")", "]", "*")
    return is_bracketed or not re.match(r"\s\w", after)
