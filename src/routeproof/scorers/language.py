"""Which language a text may be in, by script and by its commonest words."""

from routeproof.scorers.constraint_length import WORD
from routeproof.scorers.degeneration import script_counts

SCRIPT_OF = {
    "ar": "arabic", "fa": "arabic", "ur": "arabic",
    "bn": "indic", "gu": "indic", "hi": "indic", "kn": "indic", "ml": "indic",
    "mr": "indic", "ne": "indic", "pa": "indic", "ta": "indic", "te": "indic",
    "bg": "cyrillic", "ru": "cyrillic", "uk": "cyrillic",
    "el": "greek", "he": "hebrew", "th": "thai", "ko": "hangul", "ja": "kana",
    "zh": "han",
}  # fmt: skip
"""Script of a language; every other one is taken to be Latin."""

INDIC_BLOCK = {
    "hi": 0x0900, "mr": 0x0900, "ne": 0x0900, "bn": 0x0980, "pa": 0x0A00,
    "gu": 0x0A80, "ta": 0x0B80, "te": 0x0C00, "kn": 0x0C80, "ml": 0x0D00,
}  # fmt: skip
"""Start of the 128-character Unicode block of an Indic script."""

COMMON = {
    "en": "the of and to in is that it for with as was on are this be by you",
    "fr": "le la les des et est une dans pour que qui du pas au sur vous nous avec",
    "de": "der die das und ist nicht ein eine zu den mit von für auf dem sich auch es",
    "es": "el los las de que y en un una por con para es se del lo como su",
    "it": "il di che è la per un una con non del della sono gli le nel anche più",
    "pt": "o a os as de que e do da em um uma para com não por se mais no na",
    "nl": "de het een en van is dat niet op te voor met zijn er aan die ook",
    "sv": "och att det som en på är av för med till den har inte ett om",
    "fi": "ja on ei että se hän oli ovat mutta kun myös sen joka ole tai kuin voi",
    "vi": "và của là có không được cho các một trong người những với để đã này",
    "sw": "na ya wa kwa ni katika za la kuwa hii cha yake kama hiyo au watu",
    "id": "yang dan di untuk dengan ini dari pada tidak itu dalam adalah akan",
    "tr": "ve bir bu da için ile çok olarak daha gibi olan ne kadar de",
    "pl": "i w na się nie z do to że jest jak o po co tak od za przez",
}
WORDS = {language: frozenset(words.split()) for language, words in COMMON.items()}
"""Most frequent function words; enough to tell these languages from each other."""

MIN_LETTERS = 20


ONLY_ONE = {"kana": "ja", "hangul": "ko", "greek": "el", "hebrew": "he", "thai": "th"}
"""Scripts that one language writes; of the others the script itself is told."""

SURE_HITS = 3
"""Common words by which a language of Latin script is told."""


def language_of(text: str) -> str | None:
    """ISO 639-1 code of a text's language, or its script where several share it.

    ``None`` when it is too short, or two languages fit about as well.
    """
    counts = script_counts(text)
    if counts.total() < MIN_LETTERS:
        return None
    if counts["kana"] >= 0.1 * counts.total():
        return "ja"
    script, most = counts.most_common(1)[0]
    if most < 0.5 * counts.total():
        return None
    if script != "latin":
        return "zh" if script == "han" else ONLY_ONE.get(script, script)
    words = [word.casefold() for word in WORD.findall(text)]
    hits = {name: sum(w in known for w in words) for name, known in WORDS.items()}
    (best, first), (_, second) = sorted(hits.items(), key=lambda h: -h[1])[:2]
    return best if first >= SURE_HITS and second < 0.8 * first else None


def may_be_language(text: str, language: str) -> bool:
    """False when a text is clearly not in ``language`` (ISO 639-1).

    True for texts of fewer than 20 letters: too short to tell.
    """
    counts = script_counts(text)
    total = counts.total()
    if total < MIN_LETTERS:
        return True
    script = SCRIPT_OF.get(language, "latin")
    if language == "ja":
        return counts["kana"] >= 0.1 * total
    if counts[script] < 0.5 * total or (language == "zh" and counts["kana"]):
        return False
    if script == "indic":
        start = INDIC_BLOCK[language]
        inside = sum(1 for c in text if start <= ord(c) < start + 0x80 and c.isalpha())
        return inside > 0
    return script != "latin" or _is_best(text, language)


def _is_best(text: str, language: str) -> bool:
    if language not in WORDS:
        return True
    words = [word.casefold() for word in WORD.findall(text)]
    hits = {name: sum(w in known for w in words) for name, known in WORDS.items()}
    best = max(hits.values())
    return best == 0 or hits[language] >= 0.8 * best
