"""Put the probes of `gates.probed` to two standing routes; keep what they say.

Short requests, none of them timed.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from routeproof.engines.http import Reply, fetch
from routeproof.engines.tokenize import tokenize
from routeproof.errors import ConfigError
from routeproof.gates.probed import (
    MAX_TOKENS,
    MIN_TOKENS,
    Answered,
    Probed,
)
from routeproof.jobs.gathering.stored_probes import FILE_NAME
from routeproof.jobs.qualifying.stand_up import Routes, Standing
from routeproof.records.files import write_atomically
from routeproof.records.store import RunFolder
from routeproof.runs.said import Said
from routeproof.runs.sse import events

PROBES = 300
"""About how many requests of all arms that is."""
TOKENS = 12
"""Longest answer of a probe."""
DEADLINE_S = 60.0

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
    "long": ({"role": "user", "content": f"{_FACTS} In which room is item 7 kept?"},),
    "turns": (
        {"role": "user", "content": "My cat is called Biscuit."},
        {"role": "assistant", "content": "What a lovely name."},
        {"role": "user", "content": "What could I call a second cat, and why?"},
    ),
}
"""Prompts of the probes: short and long, other languages, code, several turns."""

SHORT = tuple(name for name in PROMPTS if name != "long")
SAMPLED = ("short", "story", "spanish", "code")

_GREEDY = {"temperature": 0, "max_tokens": TOKENS}
_HOT = {"temperature": 1.0, "max_tokens": TOKENS}
_TOLD = {**_GREEDY, "logprobs": True, "top_logprobs": 5}

SERIAL: dict[str, tuple[dict[str, Any], ...]] = {
    "again": (_TOLD,),
    "stream": ({**_GREEDY, "stream": True},),
}
"""Asked one after the other, after ``plain``; then all at once, ``together``."""

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

FAULT_ALONE = frozenset({"seed", "max_tokens", "min_tokens", "stop", "logit_bias"})
"""Of these the baseline is asked twice: what it breaks itself is no new failure."""

CHOICES = ({**_HOT, "n": 2},) * 4
"""Two choices a request: engines take no more than they have slots."""
AT_ONCE = 4

Asking = Callable[[tuple[dict[str, str], ...], Mapping[str, Any]], Awaitable[Answered]]


@dataclass(slots=True)
class _Arm:
    """One arm's answers as they come."""

    ask: Asking
    given_up: set[str] = field(default_factory=set)
    answers: dict[str, dict[str, tuple[Answered, ...]]] = field(default_factory=dict)

    async def put(
        self, probe: str, prompt: str, requests: Sequence[Mapping[str, Any]]
    ) -> None:
        if probe in self.given_up:
            return
        found = [await self.ask(PROMPTS[prompt], fields) for fields in requests]
        if probe in PARAMETERS or probe == "choices":
            # What is refused once, or makes the engine hang, is not asked again.
            self.given_up |= {probe for one in found if one.text is None}
        self.answers.setdefault(probe, {})[prompt] = tuple(found)

    async def texts(self) -> None:
        """What a route is held against itself in: serially, then all at once."""
        for prompt in PROMPTS:
            await self.put("plain", prompt, (_TOLD,))
        if all(each[0].text is None for each in self.answers["plain"].values()):
            for prompt in PROMPTS:
                await self.put("plain", prompt, (_GREEDY,))
        for probe, requests in SERIAL.items():
            for prompt in PROMPTS:
                await self.put(probe, prompt, requests)
        await asyncio.gather(
            *(self.put("together", prompt, (_GREEDY,)) for prompt in PROMPTS)
        )

    async def parameters(
        self,
        stop: Mapping[str, str],
        banned: Mapping[str, tuple[int, str]],
        *,
        only: frozenset[str] | None = None,
    ) -> None:
        """Request fields, each by itself, a few requests at a time."""
        wanted: list[tuple[str, str, Sequence[Mapping[str, Any]]]] = [
            (probe, prompt, requests)
            for probe, requests in PARAMETERS.items()
            for prompt in SHORT
        ]
        wanted += [("choices", prompt, CHOICES) for prompt in SAMPLED]
        wanted += [
            ("stop", prompt, ({**_GREEDY, "stop": [word]},))
            for prompt, word in stop.items()
            if prompt in SHORT
        ]
        wanted += [
            ("logit_bias", prompt, ({**_GREEDY, "logit_bias": {str(token): -100}},))
            for prompt, (token, _) in banned.items()
            if prompt in SHORT
        ]
        gate = asyncio.Semaphore(AT_ONCE)

        async def one(
            probe: str, prompt: str, requests: Sequence[Mapping[str, Any]]
        ) -> None:
            async with gate:
                await self.put(probe, prompt, requests)

        await asyncio.gather(
            *(one(*each) for each in wanted if only is None or each[0] in only)
        )


async def probe_routes(routes: Routes, folder: RunFolder) -> None:
    """Ask baseline, baseline again and candidate; write the answers into the run.

    A run that has them already (it is resumed) is not asked again. A request that is
    refused or fails is an answer without text.
    """
    path = folder.path / "probe" / FILE_NAME
    if path.exists():
        return
    arms = {
        "baseline": _Arm(_asking(routes.baseline)),
        "control": _Arm(_asking(routes.baseline)),
        "candidate": _Arm(_asking(routes.candidate)),
    }
    for arm in arms.values():
        await arm.texts()
    plain = {p: one[0].text for p, one in arms["baseline"].answers["plain"].items()}
    stop = {p: word for p, text in plain.items() if (word := _middle_word(text))}
    banned = await _first_tokens(routes.baseline, plain)
    for name, arm in arms.items():
        only = FAULT_ALONE if name == "control" else None
        await arm.parameters(stop, banned, only=only)
    found = Probed(
        answers={name: arm.answers for name, arm in arms.items()},
        stop=stop,
        banned={prompt: text for prompt, (_, text) in banned.items()},
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, msgspec.json.encode(found, order="sorted") + b"\n")


def _middle_word(text: str | None) -> str | None:
    """A word from the middle of an answer that its beginning does not hold."""
    words = (text or "").split()
    for word in words[2:]:
        if len(word) > 2 and word.isalpha():
            return word
    return None


async def _first_tokens(
    standing: Standing, texts: Mapping[str, str | None]
) -> dict[str, tuple[int, str]]:
    """Id and text of the token each answer begins with, where the engine tells ids."""
    found = {}
    for prompt, text in texts.items():
        word = (text or "").split(" ")[0]
        if not word.isalpha():
            continue
        ids = await tokenize(
            standing.endpoint, standing.adapter.name, standing.model, word
        )
        if ids is not None and len(ids) == 1:
            found[prompt] = (ids[0], word)
    return found


def _asking(standing: Standing) -> Asking:
    endpoint, model = standing.endpoint, standing.model

    async def ask(
        messages: tuple[dict[str, str], ...], fields: Mapping[str, Any]
    ) -> Answered:
        body = {"model": model, "messages": messages, **fields}
        try:
            reply = await fetch(
                endpoint,
                endpoint.api("chat/completions"),
                body=body,
                deadline_s=DEADLINE_S,
            )
        except ConfigError as error:
            return Answered(words=error.message)
        return _answered(reply, is_stream=bool(fields.get("stream")))

    return ask


def _answered(reply: Reply, *, is_stream: bool) -> Answered:
    if reply.status != 200:
        return Answered(words=f"HTTP {reply.status}: {reply.text[:200]}")
    said = Said()
    try:
        if is_stream:
            for event in events([reply.body]):
                if event.data.strip() != b"[DONE]":
                    said.add_chunk(msgspec.json.decode(event.data), event.read)
        else:
            said.add_whole(reply.json())
    except (msgspec.DecodeError, ConfigError, AttributeError, TypeError) as error:
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
