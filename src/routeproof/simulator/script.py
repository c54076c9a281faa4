"""Deciding an answer: right or wrong, spoilt or sound, cut by stop and by length."""

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal, NamedTuple

from routeproof.simulator import draws, skills, tokens
from routeproof.simulator.ask import Ask
from routeproof.simulator.book import Book, Entry, Said
from routeproof.simulator.defects import Defects
from routeproof.simulator.moment import Moment, holds
from routeproof.simulator.route import Quality
from routeproof.simulator.spoiling import WAYS

Kind = Literal["reasoning", "text", "name", "arguments"]
Finish = Literal["stop", "length", "tool_calls"]
REPETITIVE = frozenset({"loop", "exclamation"})
"""Spoilt ways in which the drafter always guesses right."""


class Piece(NamedTuple):
    """One token of an answer. ``call`` is the index of its tool call, else -1."""

    kind: Kind
    text: str
    call: int = -1


@dataclass(frozen=True, slots=True)
class Tie:
    """A near tie: at token ``at`` of the text, ``other`` was almost as likely."""

    at: int
    other: str


@dataclass(frozen=True, slots=True)
class Script:
    """An answer, decided.

    Attributes:
        generated: Tokens the engine generates; stop strings and the like may make it
            differ from the number of pieces that are shown.
    """

    pieces: tuple[Piece, ...]
    finish: Finish
    class_: str
    tie: Tie | None = None
    repetitive: bool = False


@dataclass(frozen=True, slots=True)
class Writer:
    """Writes the answers of a scripted route."""

    quality: Quality
    defects: Defects
    book: Book

    def class_of(self, ask: Ask) -> str:
        """The class of the case a prompt belongs to, ``unknown`` off the script."""
        entry = self.book.find(ask.key)
        return entry.class_ if entry else "unknown"

    def write(self, ask: Ask, choice: int, serial: int, moment: Moment) -> Script:
        """The answer to ``ask``; ``serial`` tells unseeded samples apart."""
        entry = self.book.find(ask.key)
        class_ = entry.class_ if entry else "unknown"
        trial = self._trial(ask, choice, serial)
        said = self._say(ask, entry, trial)
        tie = _tie_of(said, entry)
        repetitive = False
        for number, spoil in enumerate(self.defects.spoils):
            if not holds(spoil.when, ask, class_, moment):
                continue
            if (
                draws.unit(
                    "spoil",
                    number,
                    ask.key,
                    trial,
                    serial if spoil.when.running_min else "",
                )
                < spoil.share
            ):
                rng = draws.generator("spoilt", number, ask.key, trial)
                said = WAYS[spoil.how](said, entry, moment.neighbours, rng)
                repetitive = repetitive or spoil.how in REPETITIVE
        if ask.thinks:
            rng = draws.generator("thinking", ask.key, trial)
            said = replace(said, reasoning=skills.filler(24, rng))
            tie = tie and Tie(tie.at + len(tokens.split(said.reasoning)), tie.other)
        pieces, finish = self._cut(ask, said, serial)
        return Script(pieces, finish, class_, tie, repetitive)

    def _trial(self, ask: Ask, choice: int, serial: int) -> str:
        """Names the draw: empty for greedy, the seed, or the request itself."""
        ignored = self.defects.sampling.ignored
        if ask.temperature <= 0.0 or "temperature" in ignored:
            return ""
        if ask.seed is not None and "seed" not in ignored:
            return f"{ask.seed}.{choice}"
        return f"u{serial}.{choice}"

    def _say(self, ask: Ask, entry: Entry | None, trial: str) -> Said:
        quality = self.quality
        if entry is None:
            return skills.improvise(ask, trial, quality.filler_tokens)
        accuracy = quality.accuracy.get(entry.class_, quality.default_accuracy)
        heat = max(ask.temperature + self.defects.sampling.temperature_shift, 0.0)
        key = ask.key
        luck = draws.unit(quality.seed, key)
        if trial and draws.unit("fresh", key, trial) < min(0.3 * heat, 1.0):
            luck = draws.unit(quality.seed, key, trial)
        if draws.unit(quality.salt, "flip", key) < quality.flips:
            luck = draws.unit(quality.salt, "again", key, trial)
        if luck >= accuracy and entry.wrong:
            return entry.wrong[int(draws.unit("which", key) * len(entry.wrong))]
        return self._worded(entry, key, trial)

    def _worded(self, entry: Entry, key: str, trial: str) -> Said:
        if entry.reworded is None:
            return entry.right
        other = draws.unit(self.quality.salt, "tie", key) < self.quality.near_ties
        if trial:
            other = other ^ (draws.unit("wording", key, trial) < 0.5)
        return entry.reworded if other else entry.right

    def _cut(
        self, ask: Ask, said: Said, serial: int
    ) -> tuple[tuple[Piece, ...], Finish]:
        sampling = self.defects.sampling
        text, stopped = said.text, False
        missed = draws.unit("missed", ask.key, serial) < sampling.stop_missed_share
        if "stop" not in sampling.ignored and not missed:
            text, stopped = _stopped(text, ask.stop, sampling.stop_leak_tokens)
        if missed and not said.calls:
            text += skills.filler(
                min(ask.max_tokens, 400), draws.generator("on", ask.key)
            )
        pieces = _pieces("reasoning", said.reasoning) + _pieces("text", text)
        for index, (name, arguments) in enumerate(said.calls):
            pieces += (Piece("name", name, index),)
            pieces += _pieces("arguments", arguments, index)
        limit = ask.max_tokens + sampling.cap_leak_tokens
        if "max_tokens" not in sampling.ignored and len(pieces) > limit:
            return pieces[:limit], "length"
        return pieces, "tool_calls" if said.calls and not stopped else "stop"


@lru_cache(maxsize=4096)
def _pieces(kind: Kind, text: str, call: int = -1) -> tuple[Piece, ...]:
    return tuple(Piece(kind, token, call) for token in tokens.split(text))


def _stopped(text: str, stops: tuple[str, ...], leak_tokens: int) -> tuple[str, bool]:
    found = [at for at in (text.find(stop) for stop in stops) if at >= 0]
    if not found:
        return text, False
    rest = "".join(tokens.split(text[min(found) :])[:leak_tokens])
    return text[: min(found)] + rest, True


def _tie_of(said: Said, entry: Entry | None) -> Tie | None:
    """Where the two wordings of an answer part, seen from the one that was said."""
    if (
        entry is None
        or entry.reworded is None
        or said not in (entry.right, entry.reworded)
    ):
        return None
    other = entry.reworded if said is entry.right else entry.right
    mine, theirs = tokens.split(said.text), tokens.split(other.text)
    for at, (a, b) in enumerate(zip(mine, theirs, strict=False)):
        if a != b:
            return Tie(at, b)
    return None
