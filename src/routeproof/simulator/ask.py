"""A request as the simulated engine understands it."""

import hashlib
import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal

import msgspec

from routeproof.simulator import tokens

DEFAULT_MAX_TOKENS = 4096

TEMPLATE_TOKENS = 4
"""Tokens a chat template adds to a prompt."""


@dataclass(frozen=True, slots=True)
class BadRequest:
    """A request that is answered with an error.

    Attributes:
        parameter: Which request field is at fault, where one is.
    """

    status: int
    message: str
    kind: str = "BadRequestError"
    parameter: str | None = None


@dataclass(frozen=True, slots=True)
class Ask:
    """A request, understood. ``None`` means the client did not send the field.

    Attributes:
        key: Names the prompt; equal prompts have equal keys.
        prompt_tokens: Length of the rendered prompt, template included.
        blocks: Hash of every whole prefix of the prompt, by prefix-cache block.
        schema: JSON schema the answer must fit, ``{}`` for any JSON object.
        body: The request as sent, for what only one dialect knows.
    """

    path: str
    kind: Literal["chat", "completions"]
    key: str
    prompt_tokens: int
    blocks: tuple[int, ...]
    model: str
    stream: bool
    include_usage: bool
    max_tokens: int
    temperature: float
    top_p: float
    top_k: int
    min_p: float
    seed: int | None
    stop: tuple[str, ...]
    n: int
    logprobs: bool
    top_logprobs: int
    turns: int
    last_text: str
    schema: dict[str, Any] | None
    tools: tuple[dict[str, Any], ...]
    body: dict[str, Any] = field(repr=False)

    @property
    def thinks(self) -> bool:
        """Whether the template is asked to let the model think first."""
        asked = self.body.get("chat_template_kwargs")
        return isinstance(asked, dict) and bool(asked.get("enable_thinking"))

    @property
    def structured(self) -> bool:
        """Whether the answer is constrained to JSON."""
        return self.schema is not None


_NONCE = re.compile(r"\A(?:<\|system\|>\[[0-9a-f]{8}\]\n|(<\|\w+\|>)?\[[0-9a-f]{8}\] )")


def prompt_key(messages: Any, prompt: str | None = None) -> str:
    """A short name of a prompt, from its chat messages or its completion text.

    A mark such as ``[0f3a91c2]`` in front, put there to miss a prefix cache, does not
    make it another prompt.
    """
    text = (prompt or "") if messages is None else rendered(messages)
    text = _NONCE.sub(lambda mark: mark[1] or "", text, count=1)
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def rendered(messages: Any) -> str:
    """The prompt as one text, roles marked."""
    parts = []
    for message in messages:
        parts.append(f"<|{message.get('role', '')}|>{_content(message)}\n")
    return "".join(parts)


def _content(message: dict[str, Any]) -> str:
    content = message.get("content")
    if isinstance(content, list):
        content = "".join(part.get("text", "") for part in content)
    calls = message.get("tool_calls")
    extra = msgspec.json.encode(calls).decode() if calls else ""
    return f"{content or ''}{extra}"


def parse(
    path: str, body: bytes | dict[str, Any], block_tokens: int
) -> Ask | BadRequest:
    """Understand the body of a POST, or say what is wrong with it."""
    if isinstance(body, bytes):
        try:
            body = msgspec.json.decode(body)
        except msgspec.DecodeError as problem:
            return BadRequest(400, f"the body is not JSON: {problem}")
    if not isinstance(body, dict):
        return BadRequest(400, "the body must be a JSON object")
    chat = path.endswith("/chat/completions")
    messages, prompt = body.get("messages"), body.get("prompt")
    if chat and not isinstance(messages, list):
        return BadRequest(400, "messages must be a list", parameter="messages")
    if chat and not messages:
        return BadRequest(400, "messages must not be empty", parameter="messages")
    if not chat and not isinstance(prompt, str):
        return BadRequest(400, "prompt must be a string", parameter="prompt")
    wrong = _wrong_number(body)
    if wrong is not None:
        return wrong
    return _ask(path, body, block_tokens)


_RANGES: tuple[tuple[str, float, float], ...] = (
    ("temperature", 0.0, 2.0),
    ("top_p", 1e-9, 1.0),
    ("min_p", 0.0, 1.0),
    ("max_tokens", 1, 10**9),
    ("max_completion_tokens", 1, 10**9),
    ("n", 1, 128),
    ("top_logprobs", 0, 20),
)


def _wrong_number(body: dict[str, Any]) -> BadRequest | None:
    for name, low, high in _RANGES:
        value = body.get(name)
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, int | float):
            return BadRequest(400, f"{name} must be a number", parameter=name)
        if not low <= value <= high:
            return BadRequest(
                400,
                f"{name} must be in [{low:g}, {high:g}], got {value}",
                parameter=name,
            )
    return None


def _ask(path: str, body: dict[str, Any], block_tokens: int) -> Ask:
    chat = path.endswith("/chat/completions")
    messages = body["messages"] if chat else None
    text = rendered(messages) if chat else body["prompt"]
    options = body.get("stream_options") or {}
    stop = body.get("stop") or ()
    logprobs = body.get("logprobs")
    wanted = body.get("max_completion_tokens") or body.get("max_tokens")
    length, blocks = _measured(text, block_tokens)
    return Ask(
        path=path,
        kind="chat" if chat else "completions",
        key=prompt_key(messages, body.get("prompt")),
        prompt_tokens=length + TEMPLATE_TOKENS,
        blocks=blocks,
        model=str(body.get("model", "")),
        stream=bool(body.get("stream")),
        include_usage=bool(options.get("include_usage")),
        max_tokens=int(wanted) if wanted else DEFAULT_MAX_TOKENS,
        temperature=_number(body, "temperature", 1.0),
        top_p=_number(body, "top_p", 1.0),
        top_k=int(_number(body, "top_k", 0)),
        min_p=_number(body, "min_p", 0.0),
        seed=body.get("seed"),
        stop=(stop,) if isinstance(stop, str) else tuple(stop),
        n=int(_number(body, "n", 1)),
        logprobs=bool(logprobs) if chat else logprobs is not None,
        top_logprobs=int(body.get("top_logprobs") or (0 if chat else logprobs or 0)),
        turns=sum(m.get("role") == "user" for m in messages or ()) or 1,
        last_text=_content(messages[-1]) if messages else body["prompt"],
        schema=_schema(body),
        tools=tuple(body.get("tools") or ())
        if body.get("tool_choice") != "none"
        else (),
        body=body,
    )


def _number(body: dict[str, Any], name: str, default: float) -> float:
    value = body.get(name)
    return default if value is None else float(value)


def _schema(body: dict[str, Any]) -> dict[str, Any] | None:
    wanted = body.get("response_format") or {}
    if wanted.get("type") == "json_schema":
        schema = wanted.get("json_schema") or {}
        return dict(schema.get("schema") or schema)
    if wanted.get("type") == "json_object":
        return {}
    return None


@lru_cache(maxsize=1024)
def _measured(text: str, block_tokens: int) -> tuple[int, tuple[int, ...]]:
    """Tokens of a prompt, and hashes of its prefixes, one per whole block."""
    pieces = tokens.split(text)
    hashes, state = [], 0
    for end in range(block_tokens, len(pieces) + 1, block_tokens):
        state = hash((state, *pieces[end - block_tokens : end]))
        hashes.append(state)
    return len(pieces), tuple(hashes)
