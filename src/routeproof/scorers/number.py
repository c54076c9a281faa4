"""Numbers as people and models write them, read exactly.

Everything becomes a ``Fraction``: no float is ever made, so 2**53 + 1 is not 2**53 and
0.1 + 0.2 is 0.3.
"""

import re
import unicodedata
from dataclasses import dataclass
from fractions import Fraction

VULGAR = {
    character: f"{numeric.numerator}/{numeric.denominator}"
    for character in "½⅓⅔¼¾⅕⅖⅗⅘⅙⅚⅐⅛⅜⅝⅞⅑⅒"
    for numeric in [Fraction(unicodedata.numeric(character)).limit_denominator(10)]
}
SUPERSCRIPT = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")
MINUS = dict.fromkeys(map(ord, "−﹣－‐‑‒–—⁻"), "-")
THIN_SPACE = re.compile(r"(?<=\d)[\u00a0\u202f\u2009\u2007\u2008](?=\d{3})")
CURRENCY = "$€£¥₹₩₽₺₫฿₴¢"
MAX_DIGITS = 1_000
MAX_EXPONENT = 1_000
"""Longer ones are no numbers here: nobody means them, and they cost memory."""

_DIGITS = r"(?:\d{1,3}(?:,\d{3})+|\d{1,3}(?:['’]\d{3})+(?!\d)|\d+)"
_PLAIN = rf"(?:{_DIGITS}(?:\.\d+)?|\.\d+)"
NUMBER = re.compile(
    rf"(?<![\w.^/])(?<!\d,)(?P<sign>(?:(?<![\w)\]%])[-+])?)\s?[{CURRENCY}]?\s?(?P<inner>-?)"
    rf"(?:(?P<whole>\d+)[ ](?=\d+/\d))?(?P<number>{_PLAIN})"
    r"(?:\s?(?:\^|\*\*)\s?(?P<raised>\(?[-+]?\d{1,3}\)?))?"
    r"(?:/(?P<under>\d+(?:\.\d+)?)(?![/\d]))?"
    r"(?:[eE](?P<exponent>[-+]?\d+)(?!\w)|\s?[x*×·]\s?10\s?(?:\^|\*\*)\s?"
    r"(?P<power>\(?[-+]?\d+\)?))?"
    r"(?P<percent>\s?%)?(?!\d)(?![.,]\d)(?!\s?\^)"
)
"""One whole, signed number. A hyphen after a word, a digit or a bracket is no sign; a
number inside a word (``H2O``) is none; ``1,5`` and ``1.2.3`` are none."""


@dataclass(frozen=True, slots=True)
class Number:
    """A number with what stood around it.

    Attributes:
        value: Exact, percent sign ignored.
        start, end: Where it stands in the cleaned text.
    """

    value: Fraction
    is_percent: bool
    text: str
    start: int
    end: int

    def readings(self, policy: str) -> frozenset[Fraction]:
        """The values it may stand for under a percent policy.

        ``percent_as_number``: 50% is 50; ``percent_as_share``: 50% is 1/2;
        ``percent_either``: it is both.
        """
        if not self.is_percent or policy == "percent_as_number":
            return frozenset({self.value})
        share = self.value / 100
        if policy == "percent_as_share":
            return frozenset({share})
        return frozenset({self.value, share})


def clean(text: str) -> str:
    r"""Text with one way of writing each thing a number is made of.

    Minus signs and digits of any script become ASCII, ½ becomes 1/2 (and 1½ becomes
    1 1/2), 10² becomes 10^2, LaTeX ``\frac{a}{b}``, ``1{,}000``, ``\$``, ``\%`` and
    thin spaces become plain.
    """
    if text.isascii() and "\\" not in text and "{" not in text:
        return text
    out = re.sub(r"[⁰¹²³⁴-⁹⁻]+", lambda m: "^" + m[0].translate(SUPERSCRIPT), text)
    for character, plain in VULGAR.items():
        if character in out:
            out = re.sub(rf"(?<=\d)\s?{character}", f" {plain}", out)
            out = out.replace(character, plain)
    out = unicodedata.normalize("NFKC", THIN_SPACE.sub("'", out)).translate(MINUS)
    out = out.replace("\u2044", "/")
    out = re.sub(r"[^\x00-\x7f]", _ascii_digit, out)
    out = re.sub(r"\\[dt]?frac\s*\{(-?[\d.]+)\}\s*\{([\d.]+)\}", r"\1/\2", out)
    out = out.replace("{,}", ",").replace("\\,", "").replace("\\!", "")
    return out.replace("\\$", "$").replace("\\%", "%").replace("\\times", "×")


def _ascii_digit(match: re.Match[str]) -> str:
    digit = unicodedata.decimal(match[0], None)
    return match[0] if digit is None else str(digit)


def find_numbers(cleaned: str) -> list[Number]:
    """Every whole number in a cleaned text, in order."""
    found = (_read(match) for match in NUMBER.finditer(cleaned))
    return [number for number in found if number is not None]


def first_number(cleaned: str) -> Number | None:
    """The first whole number, or ``None``."""
    return next(
        (n for n in map(_read, NUMBER.finditer(cleaned)) if n is not None), None
    )


def last_number(cleaned: str) -> Number | None:
    """The last whole number, or ``None``."""
    matches = list(NUMBER.finditer(cleaned))
    return next((n for n in map(_read, reversed(matches)) if n is not None), None)


def parse_number(text: str) -> Number | None:
    """The number a text consists of, units and punctuation around it aside.

    Returns:
        ``None`` when there is no number in it, or more than one.
    """
    found = find_numbers(clean(text))
    return found[0] if len(found) == 1 else None


def _read(match: re.Match[str]) -> Number | None:
    if match.end() - match.start() > MAX_DIGITS:
        return None
    plain = match["number"].replace(",", "").replace("'", "").replace("’", "")
    value = Fraction(int(plain)) if plain.isdigit() else Fraction(plain)
    if match["raised"]:
        raised = int(match["raised"].strip("()"))
        if (len(plain) * abs(raised)) > MAX_DIGITS or (not value and raised < 0):
            return None
        value **= raised
    if match["under"]:
        under = Fraction(match["under"])
        if not under:
            return None
        value /= under
    if match["whole"]:
        value += int(match["whole"])
    exponent = match["exponent"] or (match["power"] or "").strip("()")
    if exponent:
        if len(exponent) > 6 or abs(int(exponent)) > MAX_EXPONENT:
            return None
        value *= Fraction(10) ** int(exponent)
    is_negative = (match["sign"] == "-") != (match["inner"] == "-")
    return Number(
        value=-value if is_negative else value,
        is_percent=match["percent"] is not None,
        text=match.group().strip(),
        start=match.start("number"),
        end=match.end(),
    )
