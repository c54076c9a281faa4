"""Token ids of a text, asked of an engine."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from routeproof.engines.endpoint import Endpoint
from routeproof.engines.http import fetch
from routeproof.errors import ConfigError


class _Call(msgspec.Struct, frozen=True):
    """How one engine is asked to tokenize."""

    path: str
    body: Callable[[str, str, bool], dict[str, Any]]


CALLS: Mapping[str, _Call] = {
    "vllm": _Call(
        "/tokenize",
        lambda model, text, special: {
            "model": model,
            "prompt": text,
            "add_special_tokens": special,
        },
    ),
    "sglang": _Call(
        "/tokenize",
        lambda model, text, special: {
            "model": model,
            "prompt": text,
            "add_special_tokens": special,
        },
    ),
    "llama.cpp": _Call(
        "/tokenize",
        lambda model, text, special: {
            "content": text,
            "add_special": special,
            "parse_special": True,
        },
    ),
}
"""Engines with a tokenize endpoint. TensorRT-LLM keeps its own internal."""


async def tokenize(
    endpoint: Endpoint,
    engine: str,
    model: str,
    text: str,
    *,
    special: bool = False,
) -> tuple[int, ...] | None:
    """Token ids of ``text``; ``None`` when the engine cannot be asked.

    Args:
        endpoint: Where the engine is.
        engine: Its name.
        model: Served name of the model.
        text: Any text.
        special: Whether the tokens a prompt begins with (BOS) are added.
    """
    call = CALLS.get(engine)
    if call is None:
        return None
    try:
        reply = await fetch(
            endpoint, endpoint.at(call.path), body=call.body(model, text, special)
        )
        found = reply.json() if reply.status == 200 else None
    except ConfigError:
        return None
    tokens = found.get("tokens") if isinstance(found, dict) else None
    if not isinstance(tokens, list) or not all(isinstance(t, int) for t in tokens):
        return None
    return tuple(tokens)


async def tokenize_all(
    endpoint: Endpoint, engine: str, model: str, texts: Mapping[str, str]
) -> dict[str, tuple[int, ...]]:
    """Token ids of every text that the engine tokenizes, by the text's name."""
    found = {}
    for name, text in texts.items():
        tokens = await tokenize(endpoint, engine, model, text)
        if tokens is not None:
            found[name] = tokens
    return found
