"""Constraints on what is in the text: keywords, letters, language, ends."""

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence

from routeproof.scorers.constraint_length import WORD, ConstraintProblem, holds
from routeproof.scorers.language import may_be_language
from routeproof.scorers.text_match import occurs


def _flat(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def count_keyword(text: str, keyword: str) -> int:
    """Whole-word occurrences, case aside, without overlap."""
    needle, hay = _flat(keyword), _flat(text)
    if not needle:
        raise ConstraintProblem("an empty keyword")
    count, at = 0, hay.find(needle)
    while at >= 0:
        end = at + len(needle)
        if occurs(needle, hay[max(0, at - 1) : end + 1]):
            count += 1
            at = hay.find(needle, end)
        else:
            at = hay.find(needle, at + 1)
    return count


def existence(text: str, *, locale: str, keywords: Sequence[str]) -> bool:
    """Holds when every keyword occurs."""
    return all(count_keyword(text, keyword) > 0 for keyword in keywords)


def forbidden_words(text: str, *, locale: str, forbidden_words: Sequence[str]) -> bool:
    """Holds when none of the words occurs."""
    return not any(count_keyword(text, word) for word in forbidden_words)


def frequency(
    text: str,
    *,
    locale: str,
    keyword: str,
    frequency: int,
    relation: str | None = None,
) -> bool:
    """Holds when the keyword occurs as often as asked."""
    return holds(count_keyword(text, keyword), relation, frequency)


def letter_frequency(
    text: str,
    *,
    locale: str,
    letter: str,
    let_frequency: int,
    let_relation: str | None = None,
    relation: str | None = None,
) -> bool:
    """Holds when the letter, case aside, occurs as often as asked."""
    if not letter:
        raise ConstraintProblem("an empty letter")
    count = text.casefold().count(letter.casefold())
    return holds(count, let_relation or relation, let_frequency)


def response_language(text: str, *, locale: str, language: str) -> bool:
    """Holds when the text is written in the language asked for (ISO 639-1).

    By script where the script tells, else by the language's most common words; a
    text too short to tell holds, and so does any language of the script when it is
    not among those whose words are known.
    """
    return may_be_language(text, language.lower().split("-")[0])


def no_comma(text: str, *, locale: str) -> bool:
    """Holds when there is no comma of any script."""
    return not any(comma in text for comma in ",，、،")


def no_period(text: str, *, locale: str) -> bool:
    """Holds when there is no full stop."""
    return not any(stop in text for stop in ("。", "．", "."))


def no_digits(text: str, *, locale: str) -> bool:
    """Holds when no digit occurs."""
    return not any(map(str.isdigit, text))


def end_checker(text: str, *, locale: str, end_phrase: str) -> bool:
    """Holds when the text ends with the phrase, case and closing quotes aside."""
    return _flat(text.rstrip().rstrip("\"'”’»」*_")).endswith(
        _flat(end_phrase.rstrip().rstrip("\"'”’»」*_"))
    )


def repeat_prompt(text: str, *, locale: str, prompt_to_repeat: str) -> bool:
    """Holds when the text begins with the prompt, word for word."""
    return _flat(text).startswith(_flat(prompt_to_repeat))


def postscript(text: str, *, locale: str, postscript_marker: str) -> bool:
    """Holds when a line begins with the postscript's mark, such as ``P.S.``."""
    mark = _flat(postscript_marker).replace(" ", "")
    lines = (_flat(line).replace(" ", "").lstrip("*_") for line in text.splitlines())
    return any(line.startswith(mark) and len(line) > len(mark) for line in lines)


def number_placeholders(
    text: str, *, locale: str, num_placeholders: int, relation: str | None = None
) -> bool:
    """Holds when there are so many placeholders like ``[address]``."""
    count = len(re.findall(r"\[[^\[\]\n]{1,200}\]|［[^［］\n]{1,200}］", text))
    return holds(count, relation, num_placeholders)


def capital_word_frequency(
    text: str, *, locale: str, capital_frequency: int, capital_relation: str
) -> bool:
    """Holds when so many words are written in capitals."""
    count = sum(1 for word in WORD.findall(text) if word.isupper())
    return holds(count, capital_relation, capital_frequency)


def all_capital(text: str, *, locale: str) -> bool:
    """Holds when there are letters and none is lower case."""
    return text.isupper()


def all_lowercase(text: str, *, locale: str) -> bool:
    """Holds when there are letters and none is upper case."""
    return text.islower()


def informal_address(text: str, *, locale: str) -> bool:
    """Holds when a French text says ``tu`` and not ``vous``."""
    words = Counter(word.casefold() for word in WORD.findall(text.replace("’", "'")))
    said = {part for word in words for part in re.split(r"['\-]", word)}
    formal, informal = {"vous", "votre", "vos"}, {"tu", "te", "toi", "ton", "ta", "tes"}
    return not said & formal and bool(said & (informal | {"t"}))


CONTENT: dict[str, Callable[..., bool]] = {
    "existence": existence,
    "forbidden_words": forbidden_words,
    "frequency": frequency,
    "letter_frequency": letter_frequency,
    "response_language": response_language,
    "no_comma": no_comma,
    "no_period": no_period,
    "no_digits": no_digits,
    "end_checker": end_checker,
    "repeat_prompt": repeat_prompt,
    "postscript": postscript,
    "number_placeholders": number_placeholders,
    "capital_word_frequency": capital_word_frequency,
    "english_capital": all_capital,
    "spanish_capital": all_capital,
    "french_capital": all_capital,
    "english_lowercase": all_lowercase,
    "spanish_lowercase": all_lowercase,
    "french_lowercase": all_lowercase,
    "informal_address": informal_address,
}
