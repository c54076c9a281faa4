"""What a response said, put together chunk by chunk.

Reads the shapes that OpenAI-compatible engines really send: chat and completions,
streamed or whole, several choices, reasoning under two names, tool calls in pieces.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from routeproof.runs.words import error_words

ABORTED: frozenset[str] = frozenset({"abort", "aborted", "error", "cancelled"})
"""Finish reasons by which an engine says that it failed."""


@dataclass(slots=True)
class Call:
    """One tool call; arguments come in pieces."""

    name: str = ""
    arguments: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Choice:
    """One of the ``n`` answers."""

    text: list[str] = field(default_factory=list)
    reasoning: list[str] = field(default_factory=list)
    calls: dict[int, Call] = field(default_factory=dict)
    logprobs: list[Any] = field(default_factory=list)
    token_ids: list[int] = field(default_factory=list)
    finish: str | None = None

    def said_something(self) -> bool:
        """Whether text, reasoning or a tool call came."""
        return bool(self.text or self.reasoning or self.calls)


@dataclass(slots=True)
class Said:
    """All of a response.

    Attributes:
        choices: By index.
        usage: Latest known counts, by their names in the API.
        chunk_reads: Socket read that brought each chunk with tokens; empty when the
            answer was not streamed.
        chunk_tokens: Tokens of each; ``None`` where the server did not tell.
        first_visible_read: Socket read of the first text or tool call.
        error: Words of an error inside a response of status 200.
        broken: Words about an event that could not be read.
    """

    choices: dict[int, Choice] = field(default_factory=dict)
    usage: dict[str, Any] = field(default_factory=dict)
    chunk_reads: list[int] = field(default_factory=list)
    chunk_tokens: list[int | None] = field(default_factory=list)
    first_visible_read: int | None = None
    error: str | None = None
    broken: str | None = None
    broken_inside: bool = False
    _counted: int = 0
    _counts_each: bool = False
    _tail: tuple[Mapping[str, Any], ...] = ()

    def add_texts(
        self, texts: Sequence[str], reads: Sequence[int], *, is_visible: bool
    ) -> None:
        """Take chunks that are text, or reasoning, of choice 0 and nothing else."""
        choice = self.choices.get(0)
        if choice is None:
            choice = self.choices[0] = Choice()
        (choice.text if is_visible else choice.reasoning).extend(texts)
        self.chunk_reads.extend(reads)
        self.chunk_tokens.extend([None] * len(texts))
        self._counts_each = False
        if is_visible and self.first_visible_read is None:
            self.first_visible_read = reads[0]

    def add_chunk(self, body: Mapping[str, Any], read: int) -> None:
        """Take one streamed chunk."""
        tokens: int | None = None
        carried = visible = False
        for raw in body.get("choices") or ():
            count, has_tokens, is_visible = self._add_choice(raw)
            carried, visible = carried or has_tokens, visible or is_visible
            if count is not None:
                tokens = (tokens or 0) + count
        fresh = self._from_usage(body)
        if not carried and self._counts_each:
            # A token may decode to nothing; a running count tells that it came.
            carried = bool(fresh)
        if carried:
            self.chunk_reads.append(read)
            self.chunk_tokens.append(fresh if tokens is None else tokens)
        if body.get("choices"):
            self._counts_each = fresh is not None
        if visible and self.first_visible_read is None:
            self.first_visible_read = read
        self._note(body)

    def add_whole(self, body: Mapping[str, Any]) -> None:
        """Take a response that was not streamed; it has no chunk times."""
        for raw in body.get("choices") or ():
            self._add_choice(raw)
        self._from_usage(body)
        self._note(body)

    def finish_reasons(self) -> list[str | None]:
        """Of every choice, by index."""
        return [self.choices[i].finish for i in sorted(self.choices)]

    def said_something(self) -> bool:
        """Whether any choice carries text, reasoning or a tool call."""
        return any(c.said_something() for c in self.choices.values())

    def last_fields(self) -> dict[str, Any]:
        """Top-level fields of the last three chunks, later ones winning.

        Engines put their details beside the finish reason or beside the usage; empty
        ``choices`` of a usage chunk do not hide those of the chunk before it.
        """
        fields: dict[str, Any] = {}
        for body in self._tail:
            fields.update({k: v for k, v in body.items() if v or k != "choices"})
        return fields

    def _note(self, body: Mapping[str, Any]) -> None:
        error = body.get("error")
        if error or body.get("object") == "error":
            self.error = error_words(error or body)
        self._tail = (*self._tail[-2:], body)

    def _from_usage(self, body: Mapping[str, Any]) -> int | None:
        """Keep the counts; tokens since the last count, when it runs along."""
        usage = body.get("usage")
        if not isinstance(usage, Mapping):
            return None
        self.usage.update({k: v for k, v in usage.items() if v is not None})
        total = usage.get("completion_tokens")
        if not isinstance(total, int) or not body.get("choices"):
            return None
        fresh, self._counted = total - self._counted, total
        return fresh if fresh >= 0 else None

    def _add_choice(self, raw: Mapping[str, Any]) -> tuple[int | None, bool, bool]:
        """Take a piece of one choice.

        Returns:
            Tokens in it if told, whether it carried any, whether it can be seen.
        """
        index = raw.get("index") or 0
        choice = self.choices.get(index)
        if choice is None:
            choice = self.choices[index] = Choice()
        delta = raw.get("delta") or raw.get("message") or raw
        text = delta.get("content") or delta.get("text") or delta.get("refusal")
        reasoning = delta.get("reasoning_content") or delta.get("reasoning")
        if text:
            choice.text.append(text if isinstance(text, str) else _parts(text))
        if reasoning:
            choice.reasoning.append(
                reasoning if isinstance(reasoning, str) else _parts(reasoning)
            )
        calls = delta.get("tool_calls") or _legacy_call(delta)
        if calls:
            _add_calls(choice, calls)
        if raw.get("finish_reason"):
            choice.finish = str(raw["finish_reason"])
        count = None
        if len(raw) > 3:
            count = _add_tokens(choice, raw)
        return count, bool(text or reasoning or calls or count), bool(text or calls)


def _parts(content: Any) -> str:
    """Text of a content that came as a list of typed parts."""
    items = content if isinstance(content, list) else [content]
    texts = (p.get("text") if isinstance(p, Mapping) else p for p in items)
    return "".join(str(t) for t in texts if t)


def _legacy_call(delta: Mapping[str, Any]) -> list[dict[str, Any]]:
    call = delta.get("function_call")
    return [{"index": 0, "function": call}] if call else []


def _add_calls(choice: Choice, calls: Sequence[Mapping[str, Any]]) -> None:
    for position, raw in enumerate(calls):
        index = raw.get("index")
        call = choice.calls.setdefault(position if index is None else index, Call())
        function = raw.get("function") or {}
        if function.get("name") and not call.name:
            call.name = function["name"]
        arguments = function.get("arguments")
        if isinstance(arguments, str):
            call.arguments.append(arguments)
        elif arguments is not None:
            call.arguments.append(json.dumps(arguments, ensure_ascii=False))


def _add_tokens(choice: Choice, raw: Mapping[str, Any]) -> int | None:
    count = None
    logprobs = raw.get("logprobs")
    if isinstance(logprobs, Mapping):
        rows = _logprob_rows(logprobs)
        choice.logprobs.extend(rows)
        count = len(rows) or None
    ids = raw.get("token_ids")
    if isinstance(ids, list):
        choice.token_ids.extend(ids)
        count = len(ids)
    return count


def _logprob_rows(logprobs: Mapping[str, Any]) -> list[Any]:
    """``[token, logprob, [[token, logprob], ...]]`` per token, chat or completions."""
    rows: list[Any] = []
    for item in logprobs.get("content") or ():
        top = [
            [t.get("token"), t.get("logprob")] for t in item.get("top_logprobs") or ()
        ]
        rows.append([item.get("token"), item.get("logprob"), top])
    tokens = logprobs.get("tokens") or ()
    values = logprobs.get("token_logprobs") or ()
    tops = logprobs.get("top_logprobs") or [None] * len(tokens)
    for token, value, top in zip(tokens, values, tops, strict=False):
        rows.append([token, value, [[t, v] for t, v in (top or {}).items()]])
    return rows
