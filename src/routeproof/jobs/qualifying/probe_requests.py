"""The probes: which small requests are put to a route, in which order, and read how."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from routeproof.gates.probed import MAX_TOKENS, MIN_TOKENS, Answered
from routeproof.runs.said import Said
from routeproof.runs.sse import events

PROBES = 410
"""About how many requests of all arms that is."""
TOKENS = 12
"""Longest answer of a probe."""
_FACTS = " ".join(
    f"Item {i} of the list is kept in room {i * 7 % 23} and weighs {i * 13 % 41} grams."
    for i in range(10)
)

PROMPTS: dict[str, tuple[dict[str, str], ...]] = {
    "short": ({"role": "user", "content": "Name three rivers of Europe."},),
    "story": ({"role": "user", "content": "Begin a short story about a lighthouse."},),
    "spanish": ({"role": "user", "content": "Explica qué es un eclipse de sol."},),
    "code": ({"role": "user", "content": "Write a function that adds two numbers."},),
    "list": ({"role": "user", "content": "List what a kitchen should have."},),
    "german": ({"role": "user", "content": "Wie entsteht ein Regenbogen?"},),
    "chinese": ({"role": "user", "content": "请介绍一种中国茶。"},),
    "numbers": ({"role": "user", "content": "Count from ninety to one hundred."},),
    "json": ({"role": "user", "content": "Describe a bicycle as a JSON object."},),
    "poem": ({"role": "user", "content": "Write two lines of verse about rain."},),
    "long": ({"role": "user", "content": f"{_FACTS} In which room is item 7 kept?"},),
    "turns": (
        {"role": "user", "content": "My cat is called Biscuit."},
        {"role": "assistant", "content": "What a lovely name."},
        {"role": "user", "content": "What could I call a second cat, and why?"},
    ),
}
"""Prompts of the probes: short and long, other languages, code, several turns."""

SHORT = ("short", "story", "spanish", "code", "list", "turns")
"""Prompts that the parameters are tried with; texts are compared over all of them."""
SAMPLED = ("short", "story", "spanish", "code")

_GREEDY = {"temperature": 0, "max_tokens": TOKENS}
_HOT = {"temperature": 1.0, "max_tokens": TOKENS}
_TOLD = {**_GREEDY, "logprobs": True, "top_logprobs": 5}

_STREAM = {**_GREEDY, "stream": True}

PARAMETERS: dict[str, tuple[dict[str, Any], ...]] = {
    "seed": ({**_HOT, "seed": 11}, {**_HOT, "seed": 11}, {**_HOT, "seed": 12}),
    "top_k": ({**_HOT, "top_k": 1},),
    "top_p": ({**_HOT, "top_p": 1e-6},),
    "min_p": ({**_HOT, "min_p": 1.0},),
    "max_tokens": ({**_GREEDY, "max_tokens": MAX_TOKENS},),
    "min_tokens": ({**_GREEDY, "min_tokens": MIN_TOKENS},),
    "frequency_penalty": ({**_GREEDY, "frequency_penalty": 2.0},),
    "presence_penalty": ({**_GREEDY, "presence_penalty": 2.0},),
    "repetition_penalty": ({**_GREEDY, "repetition_penalty": 1.8},),
}
"""Request fields, each by itself, and the requests that try them."""

CHOICES = ({**_HOT, "n": 2},) * 4
"""Two choices a request: engines take no more than they have slots."""
AT_ONCE = 4

Asking = Callable[[tuple[dict[str, str], ...], Mapping[str, Any]], Awaitable[Answered]]


@dataclass(slots=True)
class ProbedArm:
    """One arm's answers as they come.

    Attributes:
        ask: Puts one request.
        given_up: Probes that are not asked any more, in the order in which they
            failed; first those that are known to end the engine.
        is_told: Log probabilities are asked for.
    """

    ask: Asking
    given_up: dict[str, None] = field(default_factory=dict)
    is_told: bool = True
    answers: dict[str, dict[str, tuple[Answered, ...]]] = field(default_factory=dict)

    async def put(
        self, probe: str, prompt: str, requests: Sequence[Mapping[str, Any]]
    ) -> None:
        """Put the requests of one probe with one prompt."""
        if probe in self.given_up:
            return
        found = [await self.ask(PROMPTS[prompt], fields) for fields in requests]
        if probe in PARAMETERS or probe == "choices":
            # What is refused once, or makes the engine hang, is not asked again.
            if any(one.text is None for one in found):
                self.given_up[probe] = None
        self.answers.setdefault(probe, {})[prompt] = tuple(found)

    async def texts(self) -> None:
        """What a route is held against itself in: serially, then all at once."""
        told = _TOLD if self.is_told else _GREEDY
        for prompt in PROMPTS:
            await self.put("plain", prompt, (told,))
        if all(each[0].text is None for each in self.answers["plain"].values()):
            for prompt in PROMPTS:
                await self.put("plain", prompt, (_GREEDY,))
        for probe, fields in (("again", told), ("stream", _STREAM)):
            for prompt in PROMPTS:
                await self.put(probe, prompt, (fields,))
        await asyncio.gather(
            *(self.put("together", prompt, (_GREEDY,)) for prompt in PROMPTS)
        )

    async def parameters(
        self,
        hints: "Hints",
        *,
        only: frozenset[str] | None = None,
        choices: bool = True,
    ) -> None:
        """Request fields, each by itself, a few requests at a time.

        Args:
            hints: From the baseline's answers.
            only: Probes to put; all when ``None``.
            choices: Several choices are asked for too. A baseline that is asked a
                second time, for its noise, need not give them again.
        """
        gate = asyncio.Semaphore(AT_ONCE)

        async def one(
            probe: str, prompt: str, requests: Sequence[Mapping[str, Any]]
        ) -> None:
            async with gate:
                await self.put(probe, prompt, requests)

        await asyncio.gather(
            *(
                one(*each)
                for each in hints.asked()
                if (only is None or each[0] in only)
                and (choices or each[0] != "choices")
            )
        )

    async def stands(self) -> bool:
        """Whether a plain request is answered."""
        return (await self.ask(PROMPTS["short"], _GREEDY)).text is not None

    def plain_texts(self) -> dict[str, str | None]:
        """By prompt, what the plain request brought."""
        return {p: one[0].text for p, one in self.answers["plain"].items()}


@dataclass(frozen=True, slots=True)
class Hints:
    """What the answers of the baseline are good for in further requests.

    Attributes:
        stop: By prompt, a word from the middle of its answer.
        banned: By prompt, id and text of the token that its answer begins with.
    """

    stop: Mapping[str, str]
    banned: Mapping[str, tuple[int, str]]

    @classmethod
    def of(
        cls, arm: ProbedArm, banned: Mapping[str, tuple[int, str]] | None = None
    ) -> "Hints":
        """From what an arm answered to the plain requests."""
        plain = arm.plain_texts()
        stop = {p: word for p, text in plain.items() if (word := _middle_word(text))}
        return cls(stop, banned or {})

    def asked(self) -> list[tuple[str, str, Sequence[Mapping[str, Any]]]]:
        """Probe, prompt and requests."""
        wanted: list[tuple[str, str, Sequence[Mapping[str, Any]]]] = [
            (probe, prompt, requests)
            for probe, requests in PARAMETERS.items()
            for prompt in SHORT
        ]
        wanted += [("choices", prompt, CHOICES) for prompt in SAMPLED]
        wanted += [
            ("stop", prompt, ({**_GREEDY, "stop": [word]},))
            for prompt, word in self.stop.items()
            if prompt in SHORT
        ]
        return wanted + [
            ("logit_bias", prompt, ({**_GREEDY, "logit_bias": {str(token): -100}},))
            for prompt, (token, _) in self.banned.items()
            if prompt in SHORT
        ]


def answered(status: int, body: bytes, *, is_stream: bool) -> Answered:
    """One response as the answer to a probe."""
    if status != 200:
        words = body[:200].decode("utf-8", "replace")
        return Answered(words=f"HTTP {status}: {words}")
    said = Said()
    try:
        if is_stream:
            for event in events([body]):
                if event.data.strip() != b"[DONE]":
                    said.add_chunk(msgspec.json.decode(event.data), event.read)
        else:
            said.add_whole(json.loads(body))
    except (msgspec.DecodeError, ValueError, AttributeError, TypeError) as error:
        return Answered(words=f"cannot be read: {error}")
    if said.error or not said.choices:
        return Answered(words=said.error or "no choices")
    texts = tuple(
        "".join([*one.reasoning, *one.text]) for _, one in sorted(said.choices.items())
    )
    first = said.choices[min(said.choices)]
    tokens = said.usage.get("completion_tokens")
    return Answered(
        text=texts[0],
        choices=texts,
        finish=first.finish,
        tokens=tokens if isinstance(tokens, int) else None,
        logprobs=_logprobs(first.logprobs),
    )


def _logprobs(rows: Sequence[Any]) -> tuple[Any, ...]:
    def number(value: object) -> float | None:
        return float(value) if isinstance(value, int | float) else None

    return tuple(
        (str(row[0]), number(row[1]), tuple((str(t), number(v)) for t, v in row[2]))
        for row in rows
    )


def _middle_word(text: str | None) -> str | None:
    """A word from the middle of an answer that its beginning does not hold."""
    words = (text or "").split()
    for word in words[2:]:
        if len(word) > 2 and word.isalpha():
            return word
    return None
