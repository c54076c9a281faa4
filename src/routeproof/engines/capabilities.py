"""What an endpoint accepts, tried with requests of a few tokens.

Engines differ in what they do with a field they do not know: refuse the request, obey,
or look away. Only fields that both arms of a comparison accept are sent to either.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Literal

import msgspec

from routeproof.engines.culprits import Mortal, culprits
from routeproof.engines.dialects import dialect
from routeproof.engines.endpoint import Endpoint
from routeproof.engines.http import Reply, fetch
from routeproof.errors import ConfigError

_SCHEMA = {
    "type": "object",
    "properties": {"answer": {"type": "string"}},
    "required": ["answer"],
    "additionalProperties": False,
}
_TOOL = {
    "type": "function",
    "function": {
        "name": "look_up",
        "description": "Look a word up.",
        "parameters": {
            "type": "object",
            "properties": {"word": {"type": "string"}},
            "required": ["word"],
        },
    },
}

FEATURES: dict[str, dict[str, Any]] = {
    "plain": {},
    "stream_usage": {"stream": True, "stream_options": {"include_usage": True}},
    "seed": {"seed": 7},
    "stop": {"stop": ["\n\n"]},
    "logprobs": {"logprobs": True, "top_logprobs": 2},
    "json_object": {"response_format": {"type": "json_object"}},
    "json_schema": {
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "answer", "strict": True, "schema": _SCHEMA},
        }
    },
    "tools": {"tools": [_TOOL], "tool_choice": "auto"},
    "top_k": {"temperature": 0.7, "top_k": 20},
    "min_p": {"temperature": 0.7, "min_p": 0.1},
    "logit_bias": {"logit_bias": {"100": 5}},
    "penalties": {"presence_penalty": 0.5, "frequency_penalty": 0.5},
    "repetition_penalty": {"repetition_penalty": 1.1},
    "min_tokens": {"min_tokens": 2},
    "ignore_eos": {"ignore_eos": True},
    "several_choices": {"n": 2, "temperature": 0.7},
    "unknown_field": {"routeproof_no_such_field": 1},
}
"""Feature to the request fields that ask for it."""

FALLBACK_FEATURES = (
    "json_object",
    "json_schema",
    "tools",
    "logprobs",
    "min_p",
    "logit_bias",
    "penalties",
    "repetition_penalty",
    "min_tokens",
    "several_choices",
    "top_k",
    "seed",
    "stop",
)
"""Features that real traffic uses: what the candidate refuses of them while the
baseline accepts it needs a way around the candidate."""


HELLO = "Say hello."
DEADLINE_S = 60.0
"""For one request."""


class Capability(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What came of asking for one feature.

    Attributes:
        state: ``accepted``: answered with success (an engine may still look away).
            ``refused``: a 4xx that ``plain`` did not get. ``failed``: a 5xx, no
            answer, or an error in the body. ``empty``: accepted, but what was asked
            for is missing or worthless in the answer. ``ends``: the engine answered
            nothing any more afterwards.
        note: The server's words, or what was wrong with the answer.
    """

    state: Literal["accepted", "refused", "failed", "empty", "ends"]
    note: str | None = None


Revive = Callable[[], Awaitable[Endpoint]]
"""Starts an engine anew, and says where it answers now."""


async def probe_capabilities(
    endpoint: Endpoint,
    model: str,
    *,
    engine: str = "openai",
    features: Mapping[str, Mapping[str, Any]] = FEATURES,
    extra: Mapping[str, Any] | None = None,
    more: Mapping[str, Mapping[str, Any]] | None = None,
    parallel: int = 2,
    revive: Revive | None = None,
) -> dict[str, Capability]:
    """Try every one of ``features``, and each of the adapter's ``extra`` fields.

    About twenty requests of at most four tokens, of which ``plain`` is always the
    first. The names of extra fields are
    ``field:<name>``; ``token_ids`` is asked for in the words of ``engine``, and left
    out where it has none. ``more`` are further features by name, such as the
    combinations that a workload sends (`parameters.parameter_sets`).

    A feature that ends an engine is found out where ``revive`` can start it anew: what
    failed since is then asked again, one at a time.

    Raises:
        ConfigError: Even a plain request fails, or none is answered any more once
            the features were tried, and the engine cannot be started anew.
        EngineError: It does not come up again.
    """
    wanted = {"plain": FEATURES["plain"]}
    wanted |= {name: dict(fields) for name, fields in features.items()}
    wanted |= {f"field:{name}": {name: value} for name, value in (extra or {}).items()}
    wanted |= {name: dict(fields) for name, fields in (more or {}).items()}
    if (token_ids := dialect(engine).token_ids) is not None:
        wanted["token_ids"] = token_ids
    plain = await _try(endpoint, model, wanted.pop("plain"), "plain", DEADLINE_S)
    if plain.state != "accepted":
        raise ConfigError(
            f"{endpoint.url} does not answer a plain request: {plain.note}",
            hint="send it one by hand, and look into the log of the engine",
        )
    gate = asyncio.Semaphore(parallel)
    failed: list[str] = []

    async def one(name: str) -> tuple[str, Capability]:
        async with gate:
            found = await _try(endpoint, model, wanted[name], name, DEADLINE_S)
        if found.state == "failed":
            failed.append(name)
        return name, found

    found = dict(await asyncio.gather(*(one(name) for name in wanted)))
    if failed:
        again = await _try(endpoint, model, {}, "plain", DEADLINE_S)
        if again.state == "failed":
            if revive is None:
                raise _ended_by(endpoint, failed[:parallel], again.note)
            found |= await _one_by_one(
                endpoint, model, wanted, failed, revive, parallel
            )
    return {"plain": plain, **found}


async def _one_by_one(
    endpoint: Endpoint,
    model: str,
    wanted: Mapping[str, Mapping[str, Any]],
    failed: Sequence[str],
    revive: Revive,
    parallel: int,
) -> dict[str, Capability]:
    """The features that failed since an engine was ended, each tried alone."""
    found: dict[str, Capability] = {}
    now = endpoint

    async def ask(name: str) -> None:
        found[name] = await _try(now, model, wanted[name], name, DEADLINE_S)

    async def stands() -> bool:
        return (await _try(now, model, {}, "plain", DEADLINE_S)).state != "failed"

    async def up() -> None:
        nonlocal now
        now = await revive()

    told = await culprits(failed, Mortal(ask, stands, up), at_once=parallel)
    for name in told.end:
        note = f"the engine ends at it: {found[name].note}"
        found[name] = Capability(state="ends", note=note)
    for name in told.together:
        note = f"the engine ended while {' and '.join(told.together)} were under way"
        found[name] = Capability(state="ends", note=note)
    for name in told.untried:
        note = "not tried again: the engine was ended too often"
        found[name] = Capability(state="failed", note=note)
    return found


def _ended_by(
    endpoint: Endpoint, first: Sequence[str], note: str | None
) -> ConfigError:
    """The first requests to fail are named: the last of them may only have waited."""
    return ConfigError(
        f"{endpoint.url} answers no plain request any more since it was asked for "
        f"{' or '.join(f'`{name}`' for name in first)}: {note}",
        hint="one such request ends this engine; look into its log, and do not put it "
        "before traffic that may send one",
    )


async def accepted_fields(
    endpoint: Endpoint,
    model: str,
    fields: Mapping[str, Any],
    *,
    deadline_s: float = 60.0,
) -> dict[str, Any]:
    """Those of the fields that the endpoint does not refuse, each tried on its own.

    A field whose trial failed for another reason than a refusal is kept: what is
    wrong there will show in the run itself.
    """
    kept = {}
    for name, value in fields.items():
        found = await _try(endpoint, model, {name: value}, f"field:{name}", deadline_s)
        if found.state != "refused":
            kept[name] = value
    return kept


def as_flags(found: Mapping[str, Capability]) -> dict[str, bool | None]:
    """The same for ``ReadBack.capabilities``."""
    flags = {
        "accepted": True,
        "empty": False,
        "refused": False,
        "failed": None,
        "ends": False,
    }
    return {name: flags[each.state] for name, each in found.items()}


def sendable(
    fields: Mapping[str, Any], *arms: Mapping[str, Capability]
) -> dict[str, Any]:
    """The adapter's extra fields that every arm accepts.

    A field that was not tried on an arm is not sent to any.
    """
    return {
        name: value
        for name, value in fields.items()
        if all(
            (tried := arm.get(f"field:{name}")) is not None
            and tried.state in ("accepted", "empty")
            for arm in arms
        )
    }


def refused_by_one(
    baseline: Mapping[str, Capability], candidate: Mapping[str, Capability]
) -> dict[str, str]:
    """Features one arm accepts and the other does not, with which and why.

    None of them may be in the requests of a comparison.
    """
    out = {}
    for name in baseline.keys() & candidate.keys():
        states = baseline[name].state, candidate[name].state
        if "accepted" in states and states[0] != states[1]:
            arm, found = (
                ("candidate", candidate[name])
                if states[0] == "accepted"
                else ("baseline", baseline[name])
            )
            out[name] = f"{arm}: {found.state}" + (
                f" ({found.note})" if found.note else ""
            )
    return dict(sorted(out.items()))


def needs_fallback(
    baseline: Mapping[str, Capability], candidate: Mapping[str, Capability]
) -> tuple[str, ...]:
    """Features that must be routed around the candidate.

    No engine lets a client switch speculation off for one request, so such requests
    need an endpoint that does not speculate: the baseline.
    """
    return tuple(
        name
        for name in FALLBACK_FEATURES
        if name in baseline
        and name in candidate
        and baseline[name].state == "accepted"
        and candidate[name].state != "accepted"
    )


async def _try(
    endpoint: Endpoint,
    model: str,
    fields: Mapping[str, Any],
    name: str,
    deadline_s: float,
) -> Capability:
    asked = (
        {} if "prompt" in fields else {"messages": [{"role": "user", "content": HELLO}]}
    )
    body = {"model": model, **asked, "max_tokens": 4, "temperature": 0, **fields}
    try:
        reply = await fetch(
            endpoint,
            endpoint.api("completions" if "prompt" in fields else "chat/completions"),
            body=body,
            deadline_s=deadline_s,
        )
    except ConfigError as error:
        return Capability(state="failed", note=error.message)
    if 400 <= reply.status < 500:
        return Capability(state="refused", note=_words(reply))
    if reply.status != 200:
        return Capability(state="failed", note=f"HTTP {reply.status}: {_words(reply)}")
    return _answer(reply, name)


def _answer(reply: Reply, name: str) -> Capability:
    if name == "stream_usage":
        told = '"usage":{' in reply.text.replace(" ", "")
        return Capability(
            state="accepted" if told else "empty",
            note=None if told else "the stream ends without token counts",
        )
    try:
        body = reply.json()
    except ConfigError as error:
        return Capability(state="failed", note=error.message)
    if not isinstance(body, dict) or "error" in body or not body.get("choices"):
        # trtllm-serve has answered 200 with an error inside.
        return Capability(state="failed", note=_words(reply))
    missing = _worthless(name, body)
    return Capability(state="empty" if missing else "accepted", note=missing)


def _worthless(name: str, body: Mapping[str, Any]) -> str | None:
    choice = body["choices"][0]
    if name == "logprobs":
        content = (choice.get("logprobs") or {}).get("content") or []
        values = [entry.get("logprob") for entry in content if isinstance(entry, dict)]
        if not values:
            return "the answer carries no log-probabilities"
        if len(values) > 1 and not any(values):
            # llama.cpp under speculation, issue 27972.
            return "every log-probability is 0.0"
    if name == "token_ids" and not choice.get("token_ids"):
        return "the answer carries no token ids"
    if name == "several_choices" and len(body["choices"]) != 2:
        return "one answer came instead of two"
    if name == "json_object" and not _starts_as_json(choice):
        return "the answer is not JSON"
    return None


def _starts_as_json(choice: Mapping[str, Any]) -> bool:
    """Whether a cut answer could be the beginning of a JSON value."""
    text = ((choice.get("message") or {}).get("content") or "").lstrip()
    return not text or text[0] in '{["-0123456789tfn'


def _words(reply: Reply) -> str:
    try:
        body = json.loads(reply.body)
    except ValueError:
        body = None
    if isinstance(body, dict):
        inner = body.get("error", body)
        if isinstance(inner, dict) and "message" in inner:
            return " ".join(str(inner["message"]).split())[:200]
        return " ".join(str(inner).split())[:200]
    return " ".join(reply.text[:400].split())[:200]
