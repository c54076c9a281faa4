"""What tells one engine's way of writing from another's."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from routeproof.simulator.ask import Ask, BadRequest
from routeproof.simulator.engine import Engine
from routeproof.simulator.sequence import Sequence as Answering

Page = Callable[[Engine, float], tuple[str, bytes]]
"""Engine and its current time to (content type, body)."""

JSON = "application/json"
TEXT = "text/plain; version=0.0.4; charset=utf-8"


def as_json(value: Any) -> tuple[str, bytes]:
    """A page of JSON."""
    return JSON, msgspec.json.encode(value)


def version_of(engine: Engine, default: str) -> str:
    """The version the engine claims."""
    declared = engine.defects.report.declared_version
    return declared or engine.route.identity.version or default


def model_of(engine: Engine) -> str:
    """The model the engine claims to serve."""
    return engine.defects.report.declared_model or engine.route.identity.model


def kv_cache_of(engine: Engine) -> str:
    """The KV-cache type the engine claims."""
    return engine.defects.report.declared_kv_cache or engine.route.identity.kv_cache


def reported(engine: Engine, count: int) -> int:
    """An accepted count as it is reported, biased where the route is defective."""
    return round(count * engine.defects.report.accepted_factor)


def drafted_as_reported(engine: Engine, count: int) -> int:
    """A drafted count as it is reported."""
    return round(count / engine.defects.report.drafted_under_counted)


def simple_usage(engine: Engine, sequences: Sequence[Answering]) -> dict[str, Any]:
    """Prompt, completion and total tokens; cached ones where a cache is on."""
    factor = engine.defects.stream.usage_factor
    prompt = sequences[0].ask.prompt_tokens + engine.defects.report.extra_bos_tokens
    completion = round(sum(s.produced for s in sequences) * factor)
    usage: dict[str, Any] = {
        "prompt_tokens": prompt,
        "total_tokens": prompt + completion,
        "completion_tokens": completion,
        "prompt_tokens_details": {"cached_tokens": sequences[0].cached},
    }
    thought = sum(
        sum(p.kind == "reasoning" for p in s.source.pieces)
        for s in sequences
        if s.source
    )
    if thought:
        usage["completion_tokens_details"] = {"reasoning_tokens": thought}
    return usage


def openai_error(problem: BadRequest) -> dict[str, Any]:
    """The usual error object."""
    return {"error": _facts(problem)}


def flat_error(problem: BadRequest) -> dict[str, Any]:
    """The error object of engines that do not put it in a field of its own."""
    return {"object": "error"} | _facts(problem)


def _facts(problem: BadRequest) -> dict[str, Any]:
    return {
        "message": problem.message,
        "type": problem.kind,
        "param": problem.parameter,
        "code": problem.status,
    }


def model_list(engine: Engine, owner: str, **more: Any) -> dict[str, Any]:
    """The body of ``/v1/models``."""
    entry = {
        "id": model_of(engine),
        "object": "model",
        "created": 1_790_000_000,
        "owned_by": owner,
    }
    return {"object": "list", "data": [entry | more]}


def unknown(engine: Engine) -> None:
    """No fingerprint."""


def nothing(engine: Engine, ask: Ask, sequences: Any) -> dict[str, Any]:
    """No further fields."""
    return {}


@dataclass(frozen=True, slots=True)
class Dialect:
    """One engine's way of writing.

    Attributes:
        chunk_per_token: A pass that brings several tokens sends a chunk for each.
        finish_apart: The finish reason comes in a chunk of its own.
        reasoning_field: Where reasoning text goes.
        details: Fields added to the body or the last chunk of a response.
        choice_details: Fields added to a choice of a whole body.
        usage: The usage object.
        error: Body of an error response.
        pages: Information pages by path (GET).
    """

    name: str
    version: str
    pages: Mapping[str, Page]
    chunk_per_token: bool = False
    finish_apart: bool = False
    reasoning_field: str = "reasoning_content"
    fingerprint: Callable[[Engine], str | None] = unknown
    details: Callable[[Engine, Ask, Sequence[Answering]], dict[str, Any]] = nothing
    choice_details: Callable[[Engine, Ask, Answering], dict[str, Any]] = nothing
    usage: Callable[[Engine, Sequence[Answering]], dict[str, Any]] = simple_usage
    error: Callable[[BadRequest], dict[str, Any]] = openai_error
