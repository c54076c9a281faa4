"""Put the probes of `gates.probed` to two standing routes; keep what they say.

Short requests, none of them timed.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from routeproof.engines.capabilities import Revive
from routeproof.engines.culprits import Mortal, culprits
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
from routeproof.jobs.qualifying.route_checks import RouteChecks
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

FAULT_ALONE = frozenset({"seed", "max_tokens", "min_tokens", "stop", "logit_bias"})
"""Of these the baseline is asked twice: what it breaks itself is no new failure."""

CHOICES = ({**_HOT, "n": 2},) * 4
"""Two choices a request: engines take no more than they have slots."""
AT_ONCE = 4

Asking = Callable[[tuple[dict[str, str], ...], Mapping[str, Any]], Awaitable[Answered]]


PROBES_OF = {
    "penalties": ("frequency_penalty", "presence_penalty"),
    "several_choices": ("choices",),
}
"""Features that are asked for by probes of other names."""


@dataclass(slots=True)
class _Arm:
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

    @classmethod
    def of(cls, routes: Routes, arm: str, ending: Sequence[str]) -> "_Arm":
        """An arm whose engine ends at these features."""
        probes = [p for name in ending for p in PROBES_OF.get(name, (name,))]
        return cls(
            _asking(routes, arm),
            given_up=dict.fromkeys(probes),
            is_told="logprobs" not in ending,
        )

    async def put(
        self, probe: str, prompt: str, requests: Sequence[Mapping[str, Any]]
    ) -> None:
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
        self, hints: "_Hints", *, only: frozenset[str] | None = None
    ) -> None:
        """Request fields, each by itself, a few requests at a time."""
        gate = asyncio.Semaphore(AT_ONCE)

        async def one(
            probe: str, prompt: str, requests: Sequence[Mapping[str, Any]]
        ) -> None:
            async with gate:
                await self.put(probe, prompt, requests)

        await asyncio.gather(
            *(one(*each) for each in hints.asked() if only is None or each[0] in only)
        )

    async def stands(self) -> bool:
        """Whether a plain request is answered."""
        return (await self.ask(PROMPTS["short"], _GREEDY)).text is not None

    async def told_apart(
        self, hints: "_Hints", known: Sequence[str], revive: Revive
    ) -> tuple[str, ...]:
        """Which probes ended the engine; the others that failed are asked once more."""
        suspects = [name for name in self.given_up if name not in known]
        first = {probe: requests for probe, _, requests in reversed(hints.asked())}

        async def ask(probe: str) -> None:
            for fields in first[probe]:
                await self.ask(PROMPTS["short"], fields)

        async def up() -> None:
            await revive()

        told = await culprits(suspects, Mortal(ask, self.stands, up), at_once=AT_ONCE)
        guilty = (*told.end, *told.together)
        again = [name for name in suspects if name not in (*guilty, *told.untried)]
        for name in again:
            del self.given_up[name]
            del self.answers[name]
        await self.parameters(hints, only=frozenset(again))
        return guilty


@dataclass(frozen=True, slots=True)
class _Hints:
    """What the answers of the baseline are good for in further requests.

    Attributes:
        stop: By prompt, a word from the middle of its answer.
        banned: By prompt, id and text of the token that its answer begins with.
    """

    stop: Mapping[str, str]
    banned: Mapping[str, tuple[int, str]]

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


async def probe_routes(
    routes: Routes, folder: RunFolder, checks: RouteChecks | None = None
) -> tuple[str, ...]:
    """Ask baseline, baseline again and candidate; write the answers into the run.

    A run that has them already (it is resumed) is not asked again. A request that is
    refused or fails is an answer without text. What is known to end an engine is not
    put to it; one launched here that ends all the same is started anew.

    Returns:
        Probes that ended the candidate's engine and were not known to.

    Raises:
        EngineError: An engine that was started anew did not come up.
    """
    path = folder.path / "probe" / FILE_NAME
    if path.exists():
        return ()
    known = {
        arm: () if checks is None else checks.ending(arm)
        for arm in ("baseline", "candidate")
    }
    arms = {
        "baseline": _Arm.of(routes, "baseline", known["baseline"]),
        "control": _Arm.of(routes, "baseline", known["baseline"]),
        "candidate": _Arm.of(routes, "candidate", known["candidate"]),
    }
    for arm in arms.values():
        await arm.texts()
    plain = {p: one[0].text for p, one in arms["baseline"].answers["plain"].items()}
    stop = {p: word for p, text in plain.items() if (word := _middle_word(text))}
    hints = _Hints(stop, await _first_tokens(routes.baseline, plain))
    ended: dict[str, tuple[str, ...]] = {}
    for name, arm in arms.items():
        side = "candidate" if name == "candidate" else "baseline"
        only = FAULT_ALONE if name == "control" else None
        before = tuple(arm.given_up)
        await arm.parameters(hints, only=only)
        revive = routes.revive(side)
        if revive is not None and not await arm.stands():
            ended[name] = await arm.told_apart(hints, before, revive)
    found = Probed(
        answers={name: arm.answers for name, arm in arms.items()},
        stop=stop,
        banned={prompt: text for prompt, (_, text) in hints.banned.items()},
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, msgspec.json.encode(found, order="sorted") + b"\n")
    return ended.get("candidate", ())


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


def _asking(routes: Routes, arm: str) -> Asking:
    async def ask(
        messages: tuple[dict[str, str], ...], fields: Mapping[str, Any]
    ) -> Answered:
        standing = routes.standing(arm)
        endpoint, model = standing.endpoint, standing.model
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
