"""Constraints on letters and scripts: accents, kana, kanji, sentence ends."""

import re
import unicodedata
from collections.abc import Callable, Mapping

from routeproof.scorers.constraint_length import WORD, holds

HIRAGANA = re.compile(r"[\u3041-\u309f]")
KATAKANA = re.compile(r"[\u30a1-\u30fa\u30fd-\u30ff\uff66-\uff9d]")
KANJI = re.compile(r"[\u4e00-\u9fff\u3400-\u4dbf々]")
LATIN = re.compile(r"[A-Za-zＡ-Ｚａ-ｚ]")
FURIGANA = re.compile(r"[\u4e00-\u9fff\u3400-\u4dbf々]+[（(][\u3041-\u309fー]+[）)]")


def tildes(
    text: str, *, locale: str, num_words: int, relation: str | None = None
) -> bool:
    """Holds when so many words carry an acute accent (á é í ó ú)."""
    count = sum(1 for word in WORD.findall(text) if set(word.casefold()) & set("áéíóú"))
    return holds(count, relation, num_words)


def _words_with(text: str, letter: str) -> int:
    return sum(1 for word in WORD.findall(text) if letter in word.casefold())


def enie(text: str, *, locale: str, let_frequency: int) -> bool:
    """Holds when exactly so many words contain ñ."""
    return _words_with(text, "ñ") == let_frequency


def dieresis(text: str, *, locale: str, let_frequency: int) -> bool:
    """Holds when exactly so many words contain ü."""
    return _words_with(text, "ü") == let_frequency


def accents(text: str, *, locale: str, word_to_accentuate: Mapping[str, str]) -> bool:
    """Holds when every word stands with its accents and none without."""
    said = {word.casefold() for word in WORD.findall(text.replace("’", " "))}
    said |= {part for word in said for part in re.split(r"['\-]", word)}
    return all(
        right.casefold() in said and (bare == right or bare.casefold() not in said)
        for bare, right in word_to_accentuate.items()
    )


def no_accents(text: str, *, locale: str) -> bool:
    """Holds when no letter carries a mark (é, ç, ü ...)."""
    return not any(map(unicodedata.combining, unicodedata.normalize("NFD", text)))


def ethel_or_cedilla(text: str, *, locale: str, forbidden_char: str) -> bool:
    """Holds when the character does not occur in either case."""
    return forbidden_char.casefold() not in text.casefold()


def hiragana_only(text: str, *, locale: str) -> bool:
    """Holds when hiragana is the only script used."""
    return bool(HIRAGANA.search(text)) and not (
        KATAKANA.search(text) or KANJI.search(text) or LATIN.search(text)
    )


def katakana_only(text: str, *, locale: str) -> bool:
    """Holds when katakana is the only script used."""
    return bool(KATAKANA.search(text)) and not (
        HIRAGANA.search(text) or KANJI.search(text) or LATIN.search(text)
    )


def no_hiragana(text: str, *, locale: str) -> bool:
    """Holds when no hiragana occurs."""
    return not HIRAGANA.search(text)


def no_katakana(text: str, *, locale: str) -> bool:
    """Holds when no katakana occurs."""
    return not KATAKANA.search(text)


def kanji(
    text: str, *, locale: str, kanji_limit: int, relation: str | None = None
) -> bool:
    """Holds when so many kanji occur."""
    return holds(len(KANJI.findall(text)), relation, kanji_limit)


def kansuuji(text: str, *, locale: str) -> bool:
    """Holds when numbers occur in kanji numerals only."""
    digits = any(unicodedata.decimal(c, None) is not None for c in text)
    return not digits and bool(re.search(r"[〇零一二三四五六七八九十百千万億兆]", text))


def furigana(text: str, *, locale: str) -> bool:
    """Holds when every run of kanji is followed by its reading in brackets."""
    rest = FURIGANA.sub("", text)
    return bool(FURIGANA.search(text)) and not KANJI.search(rest)


def sentence_unified_end(text: str, *, locale: str, ending: str) -> bool:
    """Holds when every sentence ends in the same word."""
    sentences = [one.strip() for one in re.split(r"[。．.!?！？\n]+", text)]
    filled = [one for one in sentences if WORD.search(one)]
    return bool(filled) and all(one.endswith(ending) for one in filled)


LETTERS: dict[str, Callable[..., bool]] = {
    "tildes": tildes,
    "enie": enie,
    "dieresis": dieresis,
    "accents": accents,
    "no_accents": no_accents,
    "ethel_or_cedilla": ethel_or_cedilla,
    "hiragana_only": hiragana_only,
    "katakana_only": katakana_only,
    "no_hiragana": no_hiragana,
    "no_katakana": no_katakana,
    "kanji": kanji,
    "kansuuji": kansuuji,
    "furigana": furigana,
    "sentence_unified_end": sentence_unified_end,
}
