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
    "The harbor",
    "A quiet river",
    "The old bridge",
    "Each lantern",
    "The valley",
    "One small boat",
)
_VERBS = ("follows", "crosses", "mirrors", "outlasts", "explains", "carries")
_OBJECTS = (
    "the northern light",
    "a longer winter",
    "every second stone",
    "the market road",
    "what came before",
    "its own map",
)


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
    for _ in range(max(1, length // 8)):
        words = (rng.choice(_SUBJECTS), rng.choice(_VERBS), rng.choice(_OBJECTS))
        sentences.append(" ".join(words) + ".")
    return " ".join(sentences)
