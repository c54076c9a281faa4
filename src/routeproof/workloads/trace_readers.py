"""Readers of traffic traces, one function per kind of file and one visible table."""

import hashlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from routeproof.errors import ConfigError, FormatError
from routeproof.workloads.table_rows import count, csv_rows, json_rows, number, slug
from routeproof.workloads.trace import Trace

MOONCAKE_BLOCK_TOKENS = 512
"""Tokens per hash block in the traces Mooncake published (FAST'25)."""


def read_trace(path: Path, kind: str | None = None) -> Trace:
    """A trace of any known kind, told by its columns unless ``kind`` names it.

    Arrivals are sorted, times counted from the first. Rows that are no requests
    (nothing was generated) are left out and counted in ``Trace.left_out``.

    Raises:
        ConfigError: The file cannot be read, or ``kind`` is unknown.
        FormatError: The file is none of the known kinds, or a row is broken.
    """
    if kind is not None and kind not in TRACES:
        raise ConfigError(
            f"unknown kind of trace `{kind}`",
            hint=f"known kinds: {', '.join(TRACES)}",
        )
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise FormatError(f"not UTF-8 at byte {error.start}", path=path) from error
    except OSError as error:
        raise ConfigError(
            f"cannot read the trace: {error.strerror}", path=path
        ) from error
    if kind is None:
        kind = _kind_of(text, path)
    trace = TRACES[kind](text, path)
    if not len(trace):
        raise FormatError(
            "the trace has no request that was answered", path=path, line=1
        )
    return trace


def trace_digest(path: Path) -> str:
    """SHA-256 of a trace file, for the workload's fingerprint."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _kind_of(text: str, path: Path) -> str:
    first = text.lstrip().split("\n", 1)[0].strip()
    if first.startswith("{"):
        return "shape" if '"offset_s"' in first else "mooncake"
    columns = {name.strip() for name in first.split(",")}
    for kind, needed in COLUMNS.items():
        if set(needed) <= columns:
            return kind
    raise FormatError(
        "not a known kind of trace",
        path=path,
        line=1,
        hint="known: " + "; ".join(f"{k} ({', '.join(c)})" for k, c in COLUMNS.items()),
    )


def _azure(text: str, path: Path) -> Trace:
    """Azure LLM inference traces 2023 and 2024: ISO times, two lengths."""
    rows = list(csv_rows(text, path, COLUMNS["azure"]))
    times = []
    for line, row in rows:
        try:
            stamp = np.datetime64(row["TIMESTAMP"].strip().removesuffix("+00:00"), "ns")
        except ValueError as error:
            raise FormatError(f"TIMESTAMP: {error}", path=path, line=line) from error
        times.append(stamp)
    seconds = (np.array(times) - min(times)).astype(np.int64) / 1e9
    return _trace(
        "azure",
        seconds.tolist(),
        [count(row, "ContextTokens", path, line) for line, row in rows],
        [count(row, "GeneratedTokens", path, line) for line, row in rows],
    )


def _burstgpt(text: str, path: Path) -> Trace:
    """BurstGPT: seconds, model, lengths, kind of log; newer files name sessions."""
    rows = list(csv_rows(text, path, COLUMNS["burstgpt"]))
    has_sessions = "Session ID" in rows[0][1]
    return _trace(
        "burstgpt",
        [number(row, "Timestamp", path, line) for line, row in rows],
        [count(row, "Request tokens", path, line) for line, row in rows],
        [count(row, "Response tokens", path, line) for line, row in rows],
        classes=[slug(row["Log Type"]) for _, row in rows],
        sessions=[row.get("Session ID", "") for _, row in rows]
        if has_sessions
        else None,
    )


def _mooncake_lengths(text: str, path: Path) -> Trace:
    """Mooncake's lengths as CSV, without the hashes."""
    rows = list(csv_rows(text, path, COLUMNS["mooncake_lengths"]))
    return _trace(
        "mooncake_lengths",
        [number(row, "timestamp_ms", path, line) / 1e3 for line, row in rows],
        [count(row, "input_length", path, line) for line, row in rows],
        [count(row, "output_length", path, line) for line, row in rows],
    )


class _MooncakeRow(msgspec.Struct):
    timestamp: float
    input_length: int
    output_length: int
    hash_ids: tuple[int, ...]


def _mooncake(text: str, path: Path) -> Trace:
    """Mooncake JSONL: milliseconds, lengths, block hashes of the prompt."""
    rows = list(json_rows(text, path, _MooncakeRow))
    return _trace(
        "mooncake",
        [row.timestamp / 1e3 for row in rows],
        [row.input_length for row in rows],
        [row.output_length for row in rows],
        prefixes=[row.hash_ids for row in rows],
        block_tokens=MOONCAKE_BLOCK_TOKENS,
    )


class ShapeRow(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """One request in our own trace file, a line of JSON (see ``write_trace``)."""

    offset_s: float
    input_tokens: int
    output_tokens: int
    class_: str | None = msgspec.field(name="class", default=None)
    session: int | None = None
    prefix: tuple[int, ...] = ()
    block_tokens: int | None = None


def _shape(text: str, path: Path) -> Trace:
    """Our own trace file, as ``write_trace`` writes it."""
    rows = list(json_rows(text, path, ShapeRow))
    sessions = [str(r.session) if r.session is not None else "" for r in rows]
    return _trace(
        "shape",
        [row.offset_s for row in rows],
        [row.input_tokens for row in rows],
        [row.output_tokens for row in rows],
        classes=[r.class_ or "" for r in rows] if any(r.class_ for r in rows) else None,
        sessions=sessions if any(sessions) else None,
        prefixes=[r.prefix for r in rows] if any(r.prefix for r in rows) else None,
        block_tokens=rows[0].block_tokens,
    )


def write_trace(trace: Trace, path: Path) -> None:
    """Write a trace as JSONL, one request a line; ``read_trace`` reads it again."""
    encoder = msgspec.json.Encoder()
    with path.open("wb") as file:
        for i in range(len(trace)):
            row = ShapeRow(
                offset_s=round(float(trace.offsets_s[i]), 9),
                input_tokens=int(trace.input_tokens[i]),
                output_tokens=int(trace.output_tokens[i]),
                class_=trace.classes[i] or None if trace.classes else None,
                session=None if trace.sessions is None else int(trace.sessions[i]),
                prefix=trace.prefixes[i] if trace.prefixes else (),
                block_tokens=trace.block_tokens,
            )
            file.write(encoder.encode(row) + b"\n")


TRACES: dict[str, Callable[[str, Path], Trace]] = {
    "azure": _azure,
    "burstgpt": _burstgpt,
    "mooncake": _mooncake,
    "mooncake_lengths": _mooncake_lengths,
    "shape": _shape,
}
"""Kind of trace to its reader."""

COLUMNS: dict[str, tuple[str, ...]] = {
    "azure": ("TIMESTAMP", "ContextTokens", "GeneratedTokens"),
    "burstgpt": ("Timestamp", "Model", "Request tokens", "Response tokens", "Log Type"),
    "mooncake_lengths": ("timestamp_ms", "input_length", "output_length"),
}
"""Columns by which a CSV kind is told."""


def _trace(
    source: str,
    seconds: list[float],
    inputs: list[int],
    outputs: list[int],
    *,
    classes: list[str] | None = None,
    sessions: list[str] | None = None,
    prefixes: list[tuple[int, ...]] | None = None,
    block_tokens: int | None = None,
) -> Trace:
    times = np.asarray(seconds, dtype=np.float64)
    silent = np.asarray(outputs) < 1
    kept = np.flatnonzero(~silent)
    order = kept[np.argsort(times[kept], kind="stable")]
    trace = Trace(
        source=source,
        offsets_s=times,
        input_tokens=np.asarray(inputs, dtype=np.int64),
        output_tokens=np.asarray(outputs, dtype=np.int64),
        classes=tuple(classes or ()),
        sessions=None if sessions is None else _numbered(sessions),
        prefixes=tuple(prefixes or ()),
        block_tokens=block_tokens,
        left_out={"nothing was generated": int(silent.sum())} if silent.any() else {},
    )
    return trace.take(order)


def _numbered(names: Iterable[str]) -> Any:
    """Numbers by first appearance; a request without a session has one of its own."""
    known: dict[str, int] = {}
    numbers = []
    for index, name in enumerate(names):
        key = name.strip() or f"\0{index}"
        numbers.append(known.setdefault(key, len(known)))
    return np.asarray(numbers, dtype=np.int64)
