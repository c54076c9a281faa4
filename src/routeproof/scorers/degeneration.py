"""Degenerate text: loops, single-character runs, noise, a switch of script.

The guard that no speed figure survives: loops are easy to draft and quick to decode.
"""

import re
import zlib
from collections import Counter
from dataclasses import dataclass

from routeproof.scorers.answered import option, score
from routeproof.scorers.score import Score, ScoreClass, ScoredAnswer
from routeproof.workloads.case import Case

WINDOW_CHARACTERS = 20_000
"""Longer answers are read at the beginning and at the end, this much of each."""

SHORTEST_PHRASE = 4
MIN_CHARACTERS = 200
"""Shorter answers repeat themselves honestly."""

SCRIPTS = {
    "latin": re.compile(r"[A-Za-z\u00c0-\u024f]"),
    "greek": re.compile(r"[\u0370-\u03ff]"),
    "cyrillic": re.compile(r"[\u0400-\u052f]"),
    "hebrew": re.compile(r"[\u0590-\u05ff]"),
    "arabic": re.compile(r"[\u0600-\u06ff]"),
    "indic": re.compile(r"[\u0900-\u0dff]"),
    "thai": re.compile(r"[\u0e00-\u0e7f]"),
    "hangul": re.compile(r"[\uac00-\ud7af\u1100-\u11ff]"),
    "kana": re.compile(r"[\u3040-\u30ff]"),
    "han": re.compile(r"[\u4e00-\u9fff\u3400-\u4dbf]"),
}
FIFTY = re.compile(r"(.)\1{49}", re.DOTALL)
RUN = re.compile(r"([^\s=\-_*#.~])\1{49,}|([=\-_*#.~])\2{299,}", re.DOTALL)
"""Fifty of one character, or 300 of one that draws lines."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Where text counts as degenerate. A case may set its own by option.

    Attributes:
        repeated_share: Share of the 8-word sequences that occurred before.
        tail_repeats: Times one phrase is repeated in a row at the very end.
        compression_ratio: Bytes before over after zlib level 6, of the last 4,000
            bytes; prose is near 2, a loop above 10.
        broken_share: Share of U+FFFD replacement characters.
    """

    repeated_share: float = 0.5
    tail_repeats: float = 6
    compression_ratio: float = 8.0
    broken_share: float = 0.02


@dataclass(frozen=True, slots=True)
class Signals:
    """What was measured on one text."""

    repeated_share: float
    tail_repeats: int
    compression_ratio: float
    longest_run: int
    broken_share: float
    new_script: str | None

    def problem(self, limits: Limits) -> str | None:
        """The first limit that is passed, in words; ``None`` when none is."""
        if self.longest_run:
            return f"one character {self.longest_run} times in a row"
        if self.broken_share > limits.broken_share:
            return f"{self.broken_share:.3f} of it are replacement characters"
        if self.tail_repeats >= limits.tail_repeats:
            return f"ends in one phrase {self.tail_repeats} times in a row"
        if self.repeated_share > limits.repeated_share:
            return f"{self.repeated_share:.3f} of its 8-word sequences are repeats"
        if self.compression_ratio > limits.compression_ratio:
            return f"compresses {self.compression_ratio:.1f} to 1"
        if self.new_script is not None:
            return f"switches to {self.new_script} script"
        return None


def repeated_share(words: list[str], size: int = 8) -> float:
    """Share of the ``size``-word sequences that had occurred before, in [0, 1]."""
    total = len(words) - size + 1
    if total <= 0:
        return 0.0
    distinct = len(set(zip(*(words[i:] for i in range(size)), strict=False)))
    return 1 - distinct / total


def tail_repeats(text: str, longest: int = 200) -> int:
    """How often the text's last phrase is repeated in a row at its very end.

    Looks for phrases of 4 to ``longest`` characters with a letter or digit in them.
    1 for a text that ends in none.
    """
    tail = text[-longest * 8 :].rstrip()
    best = 1
    end = tail[-SHORTEST_PHRASE:]
    if len(end) < SHORTEST_PHRASE:
        return best
    at = len(tail) - SHORTEST_PHRASE
    while (at := tail.rfind(end, 0, at + SHORTEST_PHRASE - 1)) >= 0:
        size = len(tail) - SHORTEST_PHRASE - at
        phrase = tail[-size:]
        if size > longest:
            break
        if size < SHORTEST_PHRASE or not any(map(str.isalnum, phrase)):
            continue
        count = 1
        while tail[-(count + 1) * size : -count * size] == phrase:
            count += 1
        best = max(best, count)
    return best


def _units(text: str) -> list[str]:
    """Words between white space; characters where a script does not use any."""
    words = text.split()
    return words if len(text) < 20 * len(words) else list(text)


def compression_ratio(text: str) -> float:
    """Bytes before over bytes after DEFLATE, of the last 4,000 bytes; 1.0 when empty.

    A window of 4 KiB is enough for them, and costs no large buffers per answer.
    """
    data = text[-4_000:].encode("utf-8", "replace")[-4_000:]
    if not data:
        return 1.0
    packer = zlib.compressobj(6, zlib.DEFLATED, -12, 4)
    return len(data) / (len(packer.compress(data)) + len(packer.flush()))


def script_counts(text: str) -> Counter[str]:
    """Letters of each script."""
    if text.isascii():
        return Counter(latin=len(SCRIPTS["latin"].findall(text)))
    return Counter({k: len(p.findall(text)) for k, p in SCRIPTS.items()})


def new_script(text: str, context: str) -> str | None:
    """A script that takes over late in a text and was in neither its start nor prompt.

    The script with most letters in the last third, when it has at least 40 there,
    fewer than 5 % of the first two thirds' letters, and is not used in ``context``.
    """
    if text.isascii():
        return None
    cut = 2 * len(text) // 3
    late = script_counts(text[cut:])
    name, count = late.most_common(1)[0]
    if count < 40 or name == "latin" and not late:
        return None
    early = script_counts(text[:cut])
    known = early[name] + (early["han"] if name == "kana" else 0)
    is_known = known >= 0.05 * max(1, early.total()) or script_counts(context)[name]
    return None if is_known else name


def _longest_run(text: str) -> int:
    if FIFTY.search(text) is None:
        return 0
    return max((len(m.group()) for m in RUN.finditer(text)), default=0)


def measure(text: str, context: str = "") -> Signals:
    """Every signal of one text. Linear in its length up to 40,000 characters."""
    parts: tuple[str, ...]
    if len(text) > 2 * WINDOW_CHARACTERS:
        parts = (text[:WINDOW_CHARACTERS], text[-WINDOW_CHARACTERS:])
    else:
        parts = (text,)
    run = max(map(_longest_run, parts))
    return Signals(
        repeated_share=max(repeated_share(_units(part)) for part in parts),
        tail_repeats=tail_repeats(text),
        compression_ratio=max(map(compression_ratio, parts)),
        longest_run=run,
        broken_share=max(p.count("\ufffd") / max(1, len(p)) for p in parts),
        new_script=new_script("".join(parts), context),
    )


def degeneration(case: Case, answer: ScoredAnswer) -> Score:
    """1 when the answer is degenerate, 0 when it is not: a rate of the unwanted.

    Options: any limit of :class:`Limits` by name, to raise or lower it.
    """
    limits = _limits(case)
    text = answer.text
    signals = measure(text, "" if text.isascii() else prompt_text(case))
    problem = signals.problem(limits)
    if len(text) < MIN_CHARACTERS and not signals.longest_run:
        problem = None
    trace = (
        f"repeated {signals.repeated_share:.3f}, tail x{signals.tail_repeats}, "
        f"zlib {signals.compression_ratio:.1f}"
    )
    is_degenerate = problem is not None
    class_: ScoreClass = "wrong" if is_degenerate else "correct"
    return score(class_, float(is_degenerate), problem, trace)


def _limits(case: Case) -> Limits:
    def limit(name: str, default: float) -> float:
        named = option(case, "degeneration", name)
        is_number = isinstance(named, int | float) and not isinstance(named, bool)
        return float(named) if is_number else default

    default = Limits()
    return Limits(
        repeated_share=limit("repeated_share", default.repeated_share),
        tail_repeats=limit("tail_repeats", default.tail_repeats),
        compression_ratio=limit("compression_ratio", default.compression_ratio),
        broken_share=limit("broken_share", default.broken_share),
    )


def prompt_text(case: Case) -> str:
    """All text of a case's prompt, messages joined by line breaks."""
    if case.prompt is not None:
        return case.prompt
    texts: list[str] = []
    for message in case.messages or ():
        content = message.get("content")
        if isinstance(content, str):
            texts.append(content)
        elif isinstance(content, list):
            texts += [
                part["text"]
                for part in content
                if isinstance(part, dict) and isinstance(part.get("text"), str)
            ]
    return "\n".join(texts)
