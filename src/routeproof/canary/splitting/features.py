"""Which features a request uses: some must not go to a speculative route."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from routeproof.canary.splitting.skeleton import EMPTIED, skeleton

LONG_BODY_BYTES = 32 * 1024

_decode = msgspec.json.Decoder().decode


class _Glance(msgspec.Struct):
    """The fields by which a request is routed; the rest is skipped, not built."""

    user: Any = None
    stream: Any = None
    response_format: Any = None
    structured_outputs: Any = None
    json_schema: Any = None
    grammar: Any = None
    regex: Any = None
    ebnf: Any = None
    tools: Any = None
    logprobs: Any = None
    top_logprobs: Any = None
    min_p: Any = None
    logit_bias: Any = None
    presence_penalty: Any = None
    frequency_penalty: Any = None
    n: Any = None
    seed: Any = None
    repetition_penalty: Any = None
    min_tokens: Any = None
    top_k: Any = None
    stop: Any = None
    metadata: Any = None
    functions: Any = None
    tool_choice: Any = None
    function_call: Any = None
    web_search_options: Any = None
    plugins: Any = None
    mcp_servers: Any = None
    background: Any = None
    store: Any = None
    session_id: Any = None
    text: Any = None
    previous_response_id: Any = None
    conversation: Any = None


_glance = msgspec.json.Decoder(_Glance).decode


def _structured(body: Mapping[str, Any]) -> bool:
    form = body.get("response_format")
    kind = form.get("type") if isinstance(form, Mapping) else None
    text = body.get("text")
    if kind is None and isinstance(text, Mapping):
        form = text.get("format")
        kind = form.get("type") if isinstance(form, Mapping) else None
    own = ("structured_outputs", "json_schema", "grammar", "regex", "ebnf")
    return kind not in (None, "text") or any(body.get(k) is not None for k in own)


def _has(name: str) -> Callable[[Mapping[str, Any]], bool]:
    return lambda body: body.get(name) not in (None, 0, 0.0, [], {}, False)


FEATURES: dict[str, Callable[[Mapping[str, Any]], bool]] = {
    "structured_output": _structured,
    "tools": _has("tools"),
    "logprobs": lambda b: _has("logprobs")(b) or _has("top_logprobs")(b),
    "min_p": _has("min_p"),
    "logit_bias": _has("logit_bias"),
    "penalties": lambda b: any(
        _has(name)(b) for name in ("presence_penalty", "frequency_penalty")
    ),
    "several_choices": lambda b: isinstance(b.get("n"), int) and b["n"] > 1,
    "seed": lambda b: b.get("seed") is not None,
    "repetition_penalty": _has("repetition_penalty"),
    "min_tokens": _has("min_tokens"),
    "top_k": _has("top_k"),
    "stop": _has("stop"),
    "streaming": _has("stream"),
    "stored_state": lambda b: any(
        _has(name)(b) for name in ("previous_response_id", "conversation", "background")
    ),
}
"""Feature name to the question whether a request body uses it. The names are those
of the release sheet's fallback rules. ``structured_output`` is asked for by
``response_format``, by ``text.format`` of the Responses API or by an engine's own
field; ``stored_state`` is what an engine keeps between requests, which the other arm's
engine has not."""


def parse_body(body: bytes) -> Mapping[str, Any] | None:
    """The request body as a mapping, or ``None`` when it is no JSON object."""
    try:
        value = _decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return value if isinstance(value, dict) else None


def glance(body: bytes) -> Mapping[str, Any] | None:
    """What the router reads of a request body; ``None`` when it is no JSON object.

    The long strings of a long body are taken out before it is decoded. One of them may
    be what is asked for; then all is decoded.
    """
    try:
        short = skeleton(body) if len(body) >= LONG_BODY_BYTES else None
        if short is not None:
            found = _glance(short)
            if EMPTIED not in msgspec.json.encode(found):
                return msgspec.structs.asdict(found)
        return msgspec.structs.asdict(_glance(body))
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def features_of(body: Mapping[str, Any]) -> frozenset[str]:
    """Names of the features a request uses."""
    return frozenset(name for name, uses in FEATURES.items() if uses(body))
