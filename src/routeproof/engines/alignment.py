"""Two endpoints' tokenizers and templates, compared by asking them."""

from typing import Any

from routeproof.engines.endpoint import Endpoint
from routeproof.engines.http import fetch
from routeproof.engines.tokenize import tokenize, tokenize_all
from routeproof.errors import ConfigError
from routeproof.routes.alignment import (
    PROBES,
    TokenDifference,
    first_difference,
    token_differences,
)

CONVERSATION: tuple[dict[str, str], ...] = (
    {"role": "system", "content": "Answer in one word."},
    {"role": "user", "content": "Which colour is a ripe lemon?"},
    {"role": "assistant", "content": "Yellow."},
    {"role": "user", "content": "And a ripe lime?"},
)
"""A conversation that uses every role a template must render."""

Asked = tuple[Endpoint, str, str]
"""An endpoint, the name of its engine, the served name of its model."""


async def tokenizers_differ(
    one: Asked, other: Asked
) -> tuple[TokenDifference, ...] | None:
    """Probe texts and a rendered conversation that two engines tokenize differently.

    Returns:
        The differences; empty when all agree; ``None`` when an engine cannot be asked.
    """
    first = await tokenize_all(*one, PROBES)
    second = await tokenize_all(*other, PROBES)
    if not first or not second:
        return None
    found = token_differences(first, second)
    rendered = await _rendered_difference(one, other)
    return found if rendered is None else (*found, rendered)


async def rendered_tokens(
    endpoint: Endpoint, engine: str, model: str, messages: tuple[dict[str, str], ...]
) -> tuple[int, ...] | None:
    """Token ids of a conversation after the chat template.

    Returns:
        ``None`` when the engine has no way to tell (SGLang, TensorRT-LLM).
    """
    if engine == "vllm":
        body: dict[str, Any] = {"model": model, "messages": list(messages)}
        found = await _post(endpoint, "/tokenize", body)
        tokens = found.get("tokens")
        return tuple(tokens) if isinstance(tokens, list) else None
    if engine == "llama.cpp":
        body = {"messages": list(messages)}
        text = (await _post(endpoint, "/apply-template", body)).get("prompt")
        if isinstance(text, str):
            return await tokenize(endpoint, engine, model, text, special=True)
    return None


async def _rendered_difference(one: Asked, other: Asked) -> TokenDifference | None:
    first = await rendered_tokens(*one, CONVERSATION)
    second = await rendered_tokens(*other, CONVERSATION)
    if first is None or second is None:
        return None
    at = first_difference(first, second)
    if at is None:
        return None
    return TokenDifference(
        probe="chat_template",
        text="a conversation of four messages",
        at=at,
        one=first[at] if at < len(first) else None,
        other=second[at] if at < len(second) else None,
    )


async def _post(endpoint: Endpoint, path: str, body: object) -> dict[str, Any]:
    try:
        reply = await fetch(endpoint, endpoint.at(path), body=body)
        found = reply.json() if reply.status == 200 else None
    except ConfigError:
        return {}
    return found if isinstance(found, dict) else {}
