"""Groundedness without a judge: is what an answer says in its source?

A lexical reading: cheap, the same for both arms, blind to paraphrase. It is calibrated
on people's labels (docs/scorers.md prints the figures); where those do not suffice, a
judge model or people decide.
"""

import re
import unicodedata

from routeproof.scorers.answered import option, reference, score, unscored
from routeproof.scorers.score import Score, ScoreClass, ScoredAnswer
from routeproof.workloads.case import Case

WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")
SENTENCE_END = re.compile(r"(?<=[.!?。！？])\s+|\n+")
SUPPORT_SHARE = 0.8
"""Share of a sentence's content words that must be in the source."""

READ_CHARACTERS = 100_000
"""Answers are read up to here; what follows is left aside, and the trace says so."""

SUFFIXES = "ations ation ings ing edly ies ied ed es s ly".split()

FUNCTION_WORDS = frozenset(
    """a about above after again all also am an and any are as at be because been before
    being below between both but by can could did do does doing down during each few for
    from further had has have having he her here hers him his how i i'm i've if in into
    is it it's its just like me more most my no nor not now of off on once only or other
    our ours out over own really same she should so some such than that that's the their
    theirs them then there these they this those through to too under until up very was
    we were what when where which while who whom why will with would yes yeah you your
    yours oh well ok okay one think know many much lot lots called known name named got
    get even still actually first new""".split()
)


def content_words(text: str) -> list[str]:
    """Words that say something: no function words, stemmed lightly, in order."""
    plain = unicodedata.normalize("NFKC", text).casefold().replace("’", "'")
    words = (word.removesuffix("'s") for word in WORD.findall(plain))
    return [_stem(word) for word in words if word not in FUNCTION_WORDS]


def _stem(word: str) -> str:
    if word.isdigit() or len(word) < 4:
        return word
    for suffix in SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) >= 3:
            return word[: -len(suffix)].rstrip("ei")
    return word.rstrip("e")


def supported_share(sentence: str, source: frozenset[str]) -> float | None:
    """Share of a sentence's content words in the source; ``None`` without any.

    A number the source does not have makes it 0: a wrong figure is wrong however
    much around it is right.
    """
    words = content_words(sentence)
    if not words:
        return None
    if any(word.isdigit() and word not in source for word in words):
        return 0.0
    return sum(word in source for word in words) / len(words)


def grounded(case: Case, answer: ScoredAnswer) -> Score:
    """Share of the answer's sentences that its source supports.

    The source is the option ``source``, else the reference (a text or a list).
    Sentences without content (greetings) are left aside; an answer of only such is
    unscored: there is nothing to support. Options: ``support_share``.
    """
    source = option(case, "grounded", "source") or reference(case, "grounded")
    if isinstance(source, list | tuple) and all(isinstance(s, str) for s in source):
        source = "\n".join(source)
    if not isinstance(source, str) or not source.strip():
        return unscored("no source text to be grounded in")
    least = option(case, "grounded", "support_share", SUPPORT_SHARE)
    if isinstance(least, bool) or not isinstance(least, int | float):
        return unscored("support_share is no number")
    known = frozenset(content_words(source))
    if not known:
        return unscored("the source says nothing")
    text = answer.text[:READ_CHARACTERS].strip()
    sentences = [s for s in SENTENCE_END.split(text) if s]
    shares = [(s, supported_share(s, known)) for s in sentences]
    judged = [(sentence, share) for sentence, share in shares if share is not None]
    if not judged:
        return unscored("no sentence with content")
    broken = [sentence for sentence, share in judged if share < least]
    value = 1 - len(broken) / len(judged)
    class_: ScoreClass = "correct" if value == 1 else "graded" if value else "wrong"
    trace = f"{len(judged) - len(broken)} of {len(judged)} sentences supported"
    if len(answer.text) > READ_CHARACTERS:
        trace += f", of the first {READ_CHARACTERS} characters"
    return score(class_, value, broken[0] if broken else None, trace)
