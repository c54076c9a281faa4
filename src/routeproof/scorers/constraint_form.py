"""Constraints on form: lists, titles, sections, highlights, JSON, quotation."""

import re
import unicodedata
from collections.abc import Callable

from routeproof.scorers.constraint_length import holds
from routeproof.scorers.json_text import parse_fenced_json

TITLE = {
    "fr": re.compile(r"##[^\n#]+##|<<[^\n<>]+>>"),
    "ja": re.compile(r"『[^\n』]+』"),
}
DEFAULT_TITLE = re.compile(r"<<[^\n<>]+>>")
HIGHLIGHT = re.compile(r"(?<!\*)\*\*?[^\n*]*[^\s*][^\n*]*\*\*?(?!\*)")
JA_HIGHLIGHT = re.compile(r"《[^\n《》]+》")
BULLET = re.compile(r"^\s*(?:\*(?!\*)|-(?!-)|\+|•)\s*\S", re.MULTILINE)
JA_BULLET = re.compile(r"^\s*(?:・|[*\-•])\s*\S", re.MULTILINE)
NUMBERED = re.compile(r"^\s*\d+\s*[.．)）、]\s*\S", re.MULTILINE)
QUOTES = (('"', '"'), ("“", "”"), ("„", "“"), ("«", "»"), ("「", "」"), ("『", "』"))
CONSTRAINED = {
    "en": ("My answer is yes.", "My answer is no.", "My answer is maybe."),
    "es": ("Sí.", "No.", "Quizás."),
    "fr": ("Oui.", "Non.", "Peut-être."),
    "ja": ("はい、そうです。", "いいえ、違います。", "どちらとも言えません。"),
}
"""The three answers the prompts of the data set offer, by language."""


def constrained_response(text: str, *, locale: str) -> bool:
    """Holds when one of the answers offered is in the text, word for word."""
    offered = CONSTRAINED.get(locale, CONSTRAINED["en"])
    return any(one in text for one in offered)


def json_format(text: str, *, locale: str) -> bool:
    """Holds when the text, or the code fence in it, is JSON."""
    return parse_fenced_json(text).problem is None


def title(text: str, *, locale: str) -> bool:
    """Holds when there is a title in the marks of the language (``<<title>>``)."""
    return bool(TITLE.get(locale, DEFAULT_TITLE).search(text))


def number_bullet_lists(
    text: str, *, locale: str, num_bullets: int, relation: str | None = None
) -> bool:
    """Holds when there are exactly so many bullets (or in the relation given)."""
    pattern = JA_BULLET if locale == "ja" else BULLET
    count = sum(1 for _ in pattern.finditer(text))
    return (
        count == num_bullets
        if relation is None
        else holds(count, relation, num_bullets)
    )


def number_numbered_lists(text: str, *, locale: str, num_items: int) -> bool:
    """Holds when there are exactly so many numbered items."""
    return sum(1 for _ in NUMBERED.finditer(text)) == num_items


def number_highlighted_sections(
    text: str, *, locale: str, num_highlights: int, relation: str | None = None
) -> bool:
    """Holds when at least so many pieces are highlighted (``*so*``)."""
    pattern = JA_HIGHLIGHT if locale == "ja" else HIGHLIGHT
    count = sum(1 for _ in pattern.finditer(text))
    return holds(count, relation, num_highlights)


def multiple_sections(
    text: str,
    *,
    locale: str,
    num_sections: int,
    section_spliter: str,
    relation: str | None = None,
) -> bool:
    """Holds when at least so many sections are labelled (``SECTION 2``, ``第2章``)."""
    label = re.escape(section_spliter.strip())
    pattern = rf"(?:第\s*[\d一二三四五六七八九十]+\s*{label}|\b{label}\s*\d+)"
    found = re.findall(pattern, unicodedata.normalize("NFKC", text), re.IGNORECASE)
    return holds(len(set(found)), relation, num_sections)


def two_responses(text: str, *, locale: str) -> bool:
    """Holds when ``******`` parts the text into two different responses."""
    parts = [part.strip() for part in re.split(r"(?<!\*)\*{6}(?!\*)", text)]
    filled = [part for part in parts if part]
    return len(filled) == 2 and filled[0] != filled[1] and len(parts) <= 4


def quotation(text: str, *, locale: str) -> bool:
    """Holds when the whole text stands in quotation marks."""
    inner = text.strip()
    return len(inner) > 1 and any(
        inner.startswith(left) and inner.endswith(right) for left, right in QUOTES
    )


def exclamation_marks(text: str, *, locale: str) -> bool:
    """Holds when there is an exclamation, opened as Spanish opens it."""
    return bool(re.search(r"¡[^!]+!" if locale == "es" else r"[!！]", text))


def question_marks(text: str, *, locale: str) -> bool:
    """Holds when there is a question, opened as Spanish opens it."""
    return bool(re.search(r"¿[^?]+\?" if locale == "es" else r"[?？]", text))


FORM: dict[str, Callable[..., bool]] = {
    "constrained_response": constrained_response,
    "json_format": json_format,
    "title": title,
    "number_bullet_lists": number_bullet_lists,
    "number_numbered_lists": number_numbered_lists,
    "number_highlighted_sections": number_highlighted_sections,
    "multiple_sections": multiple_sections,
    "two_responses": two_responses,
    "quotation": quotation,
    "exclamation_marks": exclamation_marks,
    "question_marks": question_marks,
}
