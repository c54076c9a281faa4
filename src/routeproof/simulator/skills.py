"""Answers to prompts that no script knows: a few simple skills, otherwise filler."""

import json
import random
import re

from routeproof.simulator import draws
from routeproof.simulator.ask import Ask
from routeproof.simulator.book import Said
from routeproof.simulator.instances import instance

_COUNT = re.compile(r"count (?:up )?(?:slowly )?from (\d+) to (\d+)", re.IGNORECASE)
_REPEAT = re.compile(
    r"(?:repeat|say|echo)(?: exactly| back)?:? ?[\"“](.+?)[\"”]",
    re.IGNORECASE | re.DOTALL,
)

_SUBJECTS = (
    "The harbor", "A quiet river", "The old bridge", "Each lantern", "The valley",
    "One small boat", "The schoolhouse", "A tall pine", "The ferry", "Her garden",
    "The railway", "Their workshop", "A winter storm", "The museum", "The baker",
    "An early frost", "The north wall", "Our neighbour", "The old clock", "A letter",
)  # fmt: skip
_VERBS = (
    "follows", "crosses", "mirrors", "outlasts", "explains", "carries", "measures",
    "surrounds", "remembers", "interrupts", "welcomes", "repairs", "describes",
    "protects", "divides", "borrows", "replaces", "announces", "resembles", "shelters",
)  # fmt: skip
_OBJECTS = (
    "the northern light", "a longer winter", "every second stone", "the market road",
    "what came before", "its own map", "the first snow of the year", "a row of tents",
    "the lower fields", "an unfinished drawing", "most of the morning", "that new law",
    "a basket of apples", "the sound of hammers", "two kinds of weather", "the island",
    "a promise made in spring", "the edge of town", "several older songs", "the tide",
)  # fmt: skip
_LINKS = (
    "", "", "", " because nobody asked", " in the evening", ", or so it seems",
    " without much noise", " since last autumn", ", as the records show", " once more",
)  # fmt: skip


def knows(text: str) -> bool:
    """Whether a prompt is answered by a skill rather than by filler."""
    return bool(_COUNT.search(text) or _REPEAT.search(text))


def improvise(ask: Ask, trial: str, length: int) -> Said:
    """Something sensible to say; the same prompt and trial always get the same."""
    rng = draws.generator("improvise", ask.key, trial)
    if ask.schema is not None:
        return Said(text=json.dumps(instance(ask.schema, rng)))
    if ask.tools:
        function = ask.tools[0].get("function", {})
        arguments = instance(function.get("parameters", {}), rng)
        return Said(calls=((str(function.get("name", "")), json.dumps(arguments)),))
    counting = _COUNT.search(ask.last_text)
    if counting:
        first, last = int(counting[1]), min(int(counting[2]), int(counting[1]) + 5000)
        return Said(text=", ".join(map(str, range(first, last + 1))))
    repeating = _REPEAT.search(ask.last_text)
    if repeating:
        return Said(text=repeating[1])
    return Said(text=filler(length, rng))


def filler(length: int, rng: random.Random) -> str:
    """Sentences of about ``length`` tokens."""
    sentences = []
    for _ in range(max(1, length // 9)):
        words = (rng.choice(_SUBJECTS), rng.choice(_VERBS), rng.choice(_OBJECTS))
        sentences.append(" ".join(words) + rng.choice(_LINKS) + ".")
    return " ".join(sentences)
