"""Constraints on how much there is: words, sentences, paragraphs, characters."""

import re
from collections.abc import Callable

AT_LEAST = {"at least", "au moins", "al menos", "por lo menos", "以上", "mínimo"}
LESS_THAN = {"less than", "moins de", "menos de", "menos que", "未満"}
AT_MOST = {"at most", "au plus", "como máximo", "以下"}

WORD = re.compile(r"[^\W_]+(?:['’\-][^\W_]+)*")
SENTENCE = re.compile(r"[.!?。！？]+[\"'”’)\]]*(?=\s|\Z)|[。！？]+|\n\s*\n")
ABBREVIATION = re.compile(
    r"\b(?:Mr|Mrs|Ms|Dr|Prof|St|vs|etc|e\.g|i\.e|Jr|Sr|No|Sra?|M|Mme)\.", re.IGNORECASE
)
RULER = re.compile(r"^\s*\*\*\*\s*$", re.MULTILINE)


class ConstraintProblem(ValueError):
    """The constraint's own arguments make no sense."""


def holds(count: int, relation: str | None, limit: int) -> bool:
    """Whether ``count`` stands in ``relation`` to ``limit``; at least when ``None``.

    Raises:
        ConstraintProblem: The relation is not known.
    """
    word = "at least" if relation is None else relation.strip().lower()
    if word in AT_LEAST:
        return count >= limit
    if word in LESS_THAN:
        return count < limit
    if word in AT_MOST:
        return count <= limit
    raise ConstraintProblem(f"unknown relation {relation!r}")


def count_words(text: str) -> int:
    """Words: runs of letters and digits; hyphens and apostrophes inside join."""
    return len(WORD.findall(text))


def count_sentences(text: str) -> int:
    """Sentences: pieces with a word in them, cut at . ! ? and their full-width kin.

    A decimal point and a common abbreviation end none; an empty line does.
    """
    plain = ABBREVIATION.sub(lambda m: m.group().replace(".", ""), text)
    return sum(1 for piece in SENTENCE.split(plain) if WORD.search(piece))


def split_paragraphs(text: str, by_ruler: bool) -> list[str]:
    """Paragraphs with text, between rulers (``***``) or between empty lines."""
    parts = RULER.split(text) if by_ruler else re.split(r"\n\s*\n", text)
    return [part.strip() for part in parts if part.strip()]


def number_words(
    text: str, *, locale: str, num_words: int, relation: str | None = None
) -> bool:
    """Holds when the number of words is as asked."""
    return holds(count_words(text), relation, num_words)


def number_letters(
    text: str, *, locale: str, num_letters: int, relation: str | None = None
) -> bool:
    """Holds when the number of characters that are no white space is as asked."""
    return holds(len("".join(text.split())), relation, num_letters)


def number_sentences(
    text: str, *, locale: str, num_sentences: int, relation: str | None = None
) -> bool:
    """Holds when the number of sentences is as asked."""
    return holds(count_sentences(text), relation, num_sentences)


def number_paragraphs(text: str, *, locale: str, num_paragraphs: int) -> bool:
    """Holds when ``***`` rulers part the text into exactly so many paragraphs."""
    return len(split_paragraphs(text, by_ruler=True)) == num_paragraphs


def nth_paragraph_first_word(
    text: str,
    *,
    locale: str,
    num_paragraphs: int,
    nth_paragraph: int,
    first_word: str,
) -> bool:
    """Holds when there are so many paragraphs and the n-th (1-based) starts right."""
    parts = split_paragraphs(text, by_ruler=False)
    if len(parts) != num_paragraphs or not 1 <= nth_paragraph <= len(parts):
        return False
    opening = parts[nth_paragraph - 1].lstrip("\"'*_“«¡¿#「『 ")
    if locale == "ja":
        return opening.startswith(first_word)
    found = WORD.match(opening)
    return found is not None and found.group().casefold() == first_word.casefold()


LENGTH: dict[str, Callable[..., bool]] = {
    "number_words": number_words,
    "number_letters": number_letters,
    "number_sentences": number_sentences,
    "number_paragraphs": number_paragraphs,
    "nth_paragraph_first_word": nth_paragraph_first_word,
}
