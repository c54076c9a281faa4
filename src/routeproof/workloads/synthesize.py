"""A workload with the shape of a trace and none of its text.

Kept: lengths, classes, arrivals, which prompts begin alike, conversations. The text
is filler (``filler.prompt_of``), so a trace of private traffic can be turned into
cases that may be shown to anybody.
"""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from routeproof.errors import ConfigError, FormatError
from routeproof.workloads.case import Case
from routeproof.workloads.filler import CountTokens, fitted, prompt_of
from routeproof.workloads.trace import Trace

CHARACTERS_PER_TOKEN = 4
"""Rule of thumb for English text, used where a log has no token counts."""

BLOCK_TOKENS = 64
"""Shared beginnings of logged prompts are kept to blocks of this size."""

TIME_KEYS = ("timestamp", "created", "time", "start_time")
SESSION_KEYS = ("session", "session_id", "conversation_id", "conversation")


def synthesize(
    trace: Trace,
    *,
    seed: int,
    overhead_tokens: int = 0,
    exact_output: bool = False,
    count: CountTokens | None = None,
) -> tuple[Case, ...]:
    """One case per request of a trace, in order; due times are ``trace.offsets_s``.

    Args:
        trace: The shape to keep.
        seed: Decides the words.
        overhead_tokens: What chat template and system prompt add to every prompt.
        exact_output: Ask engines to go on to the very output length (``ignore_eos``
            and ``min_tokens``, which vLLM, SGLang and llama.cpp know and the OpenAI
            API refuses). Such answers are for speed only and carry no scorer.
        count: Counts tokens exactly; without it a word counts as one.
    """
    cases = []
    for i in range(len(trace)):
        wanted = max(1, int(trace.input_tokens[i]) - overhead_tokens)
        text = prompt_of(
            wanted,
            key=(seed, i),
            prefix=trace.prefixes[i] if trace.prefixes else (),
            block_tokens=trace.block_tokens or BLOCK_TOKENS,
        )
        if count is not None:
            text = fitted(text, wanted, count)
        output = int(trace.output_tokens[i])
        forced = {"ignore_eos": True, "min_tokens": output} if exact_output else {}
        session = None if trace.sessions is None else int(trace.sessions[i])
        cases.append(
            Case(
                id=f"trace-{i:06d}",
                class_=(trace.classes[i] if trace.classes else "") or trace.source,
                messages=({"role": "user", "content": text},),
                parameters={"max_tokens": output, **forced},
                scorers=() if exact_output else ("degeneration",),
                cluster=None if session is None else f"session-{session}",
            )
        )
    return tuple(cases)


def read_chat_log(path: Path) -> Trace:
    """The shape of a log of chat requests; no text of it is kept.

    One JSON object a line: ``messages`` or ``prompt``; a time (``timestamp``,
    ``created``, ``time`` or ``start_time``: Unix seconds or ISO 8601); ``usage`` with
    ``prompt_tokens`` and ``completion_tokens``, else lengths are estimated from the
    characters (4 a token) of the prompt and of ``response``; optionally ``class`` and
    a session. Which prompts begin alike is kept in blocks of about 64 tokens, as
    running numbers that say nothing of the text.

    Raises:
        ConfigError: The file cannot be read.
        FormatError: A line is not such an object.
    """
    try:
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read the log: {error}", path=path) from error
    shapes = _Shapes(path)
    for number, line in enumerate(lines, 1):
        if line.strip():
            shapes.add(line, number)
    return shapes.trace()


class _Shapes:
    """Collects shapes line by line; holds hashes of beginnings, never a text."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._blocks: dict[bytes, int] = {}
        self._sessions: dict[str, int] = {}
        self._seconds: list[float] = []
        self._inputs: list[int] = []
        self._outputs: list[int] = []
        self._classes: list[str] = []
        self._session_of: list[int] = []
        self._prefixes: list[tuple[int, ...]] = []
        self._silent = 0

    def add(self, line: str, number: int) -> None:
        try:
            row = msgspec.json.decode(line)
        except msgspec.DecodeError as error:
            raise FormatError(
                f"not JSON: {error}", path=self._path, line=number
            ) from error
        if not isinstance(row, dict):
            raise FormatError("not a JSON object", path=self._path, line=number)
        text = _prompt_text(row)
        if text is None:
            raise FormatError(
                "neither `messages` nor `prompt`", path=self._path, line=number
            )
        inputs, outputs = _lengths(row, text)
        if outputs < 1:
            self._silent += 1
            return
        self._seconds.append(self._time(row, number))
        self._inputs.append(inputs)
        self._outputs.append(outputs)
        self._classes.append(str(row.get("class") or ""))
        self._session_of.append(self._session(row))
        self._prefixes.append(self._prefix(text, inputs))

    def _time(self, row: Mapping[str, Any], number: int) -> float:
        for key in TIME_KEYS:
            value = row.get(key)
            if isinstance(value, int | float) and not isinstance(value, bool):
                return float(value)
            if isinstance(value, str):
                try:
                    stamp = np.datetime64(value.replace("Z", "").split("+")[0], "ns")
                except ValueError:
                    continue
                return float(stamp.astype(np.int64)) / 1e9
        raise FormatError(
            f"no time: one of {', '.join(TIME_KEYS)}", path=self._path, line=number
        )

    def _session(self, row: Mapping[str, Any]) -> int:
        named = next((str(row[k]) for k in SESSION_KEYS if row.get(k)), None)
        key = named if named is not None else f"\0{len(self._sessions)}"
        return self._sessions.setdefault(key, len(self._sessions))

    def _prefix(self, text: str, n_tokens: int) -> tuple[int, ...]:
        """Numbers of the blocks; a block's number stands for all text up to its end."""
        size = BLOCK_TOKENS * CHARACTERS_PER_TOKEN
        running = hashlib.blake2b(digest_size=16)
        ids = []
        for start in range(0, len(text), size):
            piece = text[start : start + size]
            running.update(piece.encode("utf-8", "surrogatepass"))
            ids.append(self._blocks.setdefault(running.digest(), len(self._blocks)))
        wanted = -(-n_tokens // BLOCK_TOKENS)
        while len(ids) < wanted:
            own = f"{len(self._prefixes)}/{len(ids)}".encode()
            ids.append(self._blocks.setdefault(own, len(self._blocks)))
        return tuple(ids[:wanted])

    def trace(self) -> Trace:
        if not self._seconds:
            raise FormatError("the log has no answered request", path=self._path)
        order = np.argsort(np.asarray(self._seconds), kind="stable")
        has_classes = any(self._classes)
        return Trace(
            source="chat_log",
            offsets_s=np.asarray(self._seconds),
            input_tokens=np.asarray(self._inputs, dtype=np.int64),
            output_tokens=np.asarray(self._outputs, dtype=np.int64),
            classes=tuple(self._classes) if has_classes else (),
            sessions=np.asarray(self._session_of, dtype=np.int64),
            prefixes=tuple(self._prefixes),
            block_tokens=BLOCK_TOKENS,
            left_out={"nothing was generated": self._silent} if self._silent else {},
        ).take(order)


def _prompt_text(row: Mapping[str, Any]) -> str | None:
    messages = row.get("messages")
    if isinstance(messages, list):
        # Roles are part of what a prefix cache sees, so they are part of the text.
        return msgspec.json.encode(messages).decode()
    prompt = row.get("prompt")
    return prompt if isinstance(prompt, str) else None


def _lengths(row: Mapping[str, Any], text: str) -> tuple[int, int]:
    usage = row.get("usage")
    counts = usage if isinstance(usage, dict) else {}
    inputs = counts.get("prompt_tokens")
    outputs = counts.get("completion_tokens")
    if not isinstance(inputs, int):
        inputs = max(1, len(text) // CHARACTERS_PER_TOKEN)
    if not isinstance(outputs, int):
        said = row.get("response")
        outputs = -(-len(said) // CHARACTERS_PER_TOKEN) if isinstance(said, str) else 0
    return inputs, outputs
