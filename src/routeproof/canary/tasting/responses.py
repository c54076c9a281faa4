"""Answers and requests of ``/v1/responses`` in the shapes of chat completions.

Everything that tastes knows one shape. A captured answer is rewritten event by event,
each staying in the socket read that brought it, so that times hold; a request is
rewritten field by field. What is no Responses event passes as it came, and the reader
says what is wrong with it.

Shapes: https://platform.openai.com/docs/api-reference/responses-streaming
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from routeproof.runs.capture import Capture
from routeproof.runs.parse import unpacked
from routeproof.runs.said import Said
from routeproof.runs.sse import Event, events

PATH = "/v1/responses"
CHAT_PATH = "/v1/chat/completions"

Chunk = dict[str, Any]

_NOT_PASSED = frozenset(
    {"output", "error", "object", "usage", "tools", "instructions", "text", "input"}
)
"""Fields of a response that are translated or only repeat the request."""

_ENDS = {
    "response.completed",
    "response.incomplete",
    "response.failed",
    "response.cancelled",
}
_REASONING = ("response.reasoning_text.delta", "response.reasoning_summary_text.delta")


def as_chat(capture: Capture) -> Capture:
    """The same exchange as if it had been a chat completion.

    Errors (status 300 and above) and bodies that cannot be unpacked stay as they are.
    """
    said = Said()
    if not 200 <= capture.status < 300:
        return capture
    pieces = unpacked(capture, said)
    if said.broken is not None:
        return capture
    headers = [h for h in capture.headers if h[0] != "content-encoding"]
    start = next((p.lstrip()[:1] for p in pieces if p.strip()), b"")
    if start in (b"{", b"[", b"<"):
        body = _whole(b"".join(pieces))
        stamps = capture.stamps[-1:]
        return replace(capture, headers=headers, pieces=[body], stamps=stamps)
    by_read: dict[int, list[bytes]] = {}
    translate = _Stream()
    for event in events(pieces):
        by_read.setdefault(event.read, []).extend(translate.event(event))
    reads = [read for read in sorted(by_read) if by_read[read]]
    return replace(
        capture,
        headers=headers,
        pieces=[b"".join(by_read[read]) for read in reads],
        stamps=[capture.stamps[read] for read in reads],
    )


def _whole(body: bytes) -> bytes:
    try:
        response = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return body
    if not isinstance(response, dict) or not isinstance(response.get("output"), list):
        return body
    message: Chunk = {}
    for each in _said(response["output"]):
        _join(message, each)
    return msgspec.json.encode(_last(response, message, "message"))


def _join(message: Chunk, delta: Chunk) -> None:
    for name, value in delta.items():
        message[name] = message[name] + value if name in message else value


@dataclass(slots=True)
class _Stream:
    """Translates the events of one stream.

    Attributes:
        told: What came in pieces: ``(kind, output_index, content_index)``. Engines
            repeat it whole at its end, and some send only that.
    """

    told: set[tuple[str, Any, Any]] = field(default_factory=set)

    def event(self, event: Event) -> Iterator[bytes]:
        """One event as none, one or several chunks."""
        try:
            body = msgspec.json.decode(event.data)
        except (msgspec.DecodeError, UnicodeDecodeError):
            body = None
        if not isinstance(body, dict):
            name = b"event: " + event.name + b"\n" if event.name else b""
            yield name + b"data: " + event.data + b"\n\n"
            return
        kind = str(body.get("type") or event.name.decode("latin-1"))
        for chunk in self._chunks(kind, body):
            yield b"data: " + msgspec.json.encode(chunk) + b"\n\n"

    def _chunks(self, kind: str, body: Mapping[str, Any]) -> Iterator[Chunk]:
        if kind == "error" or "error" in body and "type" not in body:
            yield {"error": body.get("error") or dict(body)}
        elif kind in _ENDS:
            yield self._end(body)
        elif kind == "response.created":
            yield _chunk({})
        else:
            delta = self._delta(kind, body)
            if delta is not None:
                yield _chunk(delta)

    def _delta(self, kind: str, body: Mapping[str, Any]) -> Chunk | None:
        at = (body.get("output_index"), body.get("content_index"))
        if kind == "response.output_text.delta":
            return self._tell("text", at, {"content": body.get("delta")})
        if kind == "response.refusal.delta":
            return self._tell("text", at, {"refusal": body.get("delta")})
        if kind in _REASONING:
            return self._tell("think", at, {"reasoning_content": body.get("delta")})
        if kind == "response.function_call_arguments.delta":
            return self._tell("arguments", at, _call(at[0], body.get("delta")))
        if kind == "response.function_call_arguments.done":
            return self._once("arguments", at, _call(at[0], body.get("arguments")))
        if kind == "response.output_text.done":
            return self._once("text", at, {"content": body.get("text")})
        if kind == "response.refusal.done":
            return self._once("text", at, {"refusal": body.get("refusal")})
        item = body.get("item")
        if kind.startswith("response.output_item.") and isinstance(item, Mapping):
            return self._item(kind, at[0], item)
        return None

    def _item(self, kind: str, at: Any, item: Mapping[str, Any]) -> Chunk | None:
        if item.get("type") == "function_call":
            return self._function_call(at, item)
        if kind == "response.output_item.done" and not self._has("text", at):
            for number, delta in enumerate(_said([item])):
                found = self._once(
                    "think" if "reasoning_content" in delta else "text",
                    (at, number),
                    delta,
                )
                if found is not None:
                    return found
        return None

    def _function_call(self, at: Any, item: Mapping[str, Any]) -> Chunk | None:
        """The name once; the arguments too, unless they came or come in pieces."""
        named = self._once("name", (at, None), {"name": item.get("name")})
        arguments = item.get("arguments") or None
        given = None
        if arguments is not None:
            given = self._once("arguments", (at, None), {"arguments": arguments})
        if named is None and given is None:
            return None
        function = {**(named or {}), **(given or {})}
        return {"tool_calls": [{"index": at or 0, "function": function}]}

    def _has(self, kind: str, output: Any) -> bool:
        return any(k == kind and at == output for k, at, _ in self.told)

    def _tell(self, kind: str, at: tuple[Any, Any], delta: Chunk) -> Chunk:
        self.told.add((kind, *at))
        return delta

    def _once(self, kind: str, at: tuple[Any, Any], delta: Chunk) -> Chunk | None:
        return None if (kind, *at) in self.told else self._tell(kind, at, delta)

    def _end(self, body: Mapping[str, Any]) -> Chunk:
        response = body.get("response")
        if not isinstance(response, Mapping):
            return _chunk({})
        missing: Chunk = {}
        if not self.told:
            for each in _said(response.get("output")):
                _join(missing, each)
        return _last(response, missing, "delta")


def _chunk(delta: Chunk) -> Chunk:
    return {"choices": [{"index": 0, "delta": delta}]}


def _call(index: Any, arguments: Any) -> Chunk:
    return {"tool_calls": [{"index": index or 0, "function": {"arguments": arguments}}]}


def _said(output: Any) -> Iterator[Chunk]:
    """What the items of an output say, in order."""
    for index, item in enumerate(output if isinstance(output, list) else ()):
        if not isinstance(item, Mapping):
            continue
        kind = item.get("type")
        if kind == "function_call":
            function = {"name": item.get("name"), "arguments": item.get("arguments")}
            yield {"tool_calls": [{"index": index, "function": function}]}
        elif kind in ("message", "reasoning"):
            for part in [*(item.get("summary") or ()), *(item.get("content") or ())]:
                yield from _part(part)
        else:
            # A tool the engine runs itself, or one without a schema to hold it to.
            yield {"reasoning_content": f"[{kind}]"}


def _part(part: Any) -> Iterator[Chunk]:
    if not isinstance(part, Mapping):
        return
    kind, text = part.get("type"), part.get("text")
    if kind == "output_text" and text:
        yield {"content": text}
    elif kind == "refusal" and part.get("refusal"):
        yield {"refusal": part["refusal"]}
    elif kind in ("reasoning_text", "summary_text") and text:
        yield {"reasoning_content": text}


def _last(response: Mapping[str, Any], said: Chunk, name: str) -> Chunk:
    """The chunk (or whole answer) that ends it: finish reason, usage, details."""
    passed = {k: v for k, v in response.items() if k not in _NOT_PASSED}
    if response.get("status") == "failed" or response.get("error"):
        error = response.get("error") or {"message": "the engine says `failed`"}
        return {**passed, "error": error}
    choice = {"index": 0, name: said, "finish_reason": _finish(response)}
    return {**passed, "choices": [choice], "usage": _usage(response.get("usage"))}


def _finish(response: Mapping[str, Any]) -> str | None:
    """The finish reason; ``None`` for a response that is not over."""
    status = response.get("status", "completed")
    if status == "incomplete":
        details = response.get("incomplete_details")
        why = details.get("reason") if isinstance(details, Mapping) else None
        known = {"content_filter": "content_filter", "steered": "stop"}
        return known.get(str(why), "length")
    if status == "completed":
        output = response.get("output")
        items = output if isinstance(output, list) else ()
        kinds = {item.get("type") for item in items if isinstance(item, Mapping)}
        return "tool_calls" if "function_call" in kinds else "stop"
    return "cancelled" if status == "cancelled" else None


def _usage(usage: Any) -> Chunk | None:
    if not isinstance(usage, Mapping):
        return None
    names = {
        "input_tokens": "prompt_tokens",
        "output_tokens": "completion_tokens",
        "input_tokens_details": "prompt_tokens_details",
        "output_tokens_details": "completion_tokens_details",
    }
    return {names.get(str(name), str(name)): value for name, value in usage.items()}


def as_chat_request(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The request as if it had been for chat: messages, response format, tools."""
    found = {k: v for k, v in fields.items() if k not in ("input", "instructions")}
    found["messages"] = _messages(fields)
    translations: dict[str, Callable[[Mapping[str, Any]], Any]] = {
        "response_format": _response_format,
        "tools": _tools,
        "tool_choice": _tool_choice,
        "max_tokens": lambda fields: fields.get("max_output_tokens"),
    }
    for name, of in translations.items():
        found.pop(name, None)
        value = of(fields)
        if value is not None:
            found[name] = value
    return found


def _messages(fields: Mapping[str, Any]) -> list[dict[str, Any]]:
    given, first = fields.get("input"), fields.get("instructions")
    messages: list[dict[str, Any]] = []
    if isinstance(first, str):
        messages.append({"role": "system", "content": first})
    if isinstance(given, str):
        return [*messages, {"role": "user", "content": given}]
    for item in given if isinstance(given, list) else ():
        if not isinstance(item, Mapping):
            continue
        if item.get("type") == "function_call_output":
            messages.append({"role": "tool", "content": item.get("output")})
        elif "content" in item and "role" in item:
            messages.append({"role": item["role"], "content": item["content"]})
    return messages


def _response_format(fields: Mapping[str, Any]) -> Any:
    text = fields.get("text")
    form = text.get("format") if isinstance(text, Mapping) else None
    if not isinstance(form, Mapping):
        return None
    if form.get("type") != "json_schema":
        return dict(form)
    inside = {k: form[k] for k in ("name", "schema", "strict") if k in form}
    return {"type": "json_schema", "json_schema": inside}


def _tools(fields: Mapping[str, Any]) -> list[dict[str, Any]] | None:
    """The functions among the tools: only they say what a call must look like."""
    tools = fields.get("tools")
    functions = [
        {"type": "function", "function": {k: v for k, v in t.items() if k != "type"}}
        for t in (tools if isinstance(tools, list) else ())
        if isinstance(t, Mapping) and t.get("type") == "function"
    ]
    return functions or None


def _tool_choice(fields: Mapping[str, Any]) -> Any:
    choice = fields.get("tool_choice")
    if isinstance(choice, Mapping) and choice.get("type") == "function":
        return {"type": "function", "function": {"name": choice.get("name")}}
    return choice if isinstance(choice, str) else None
