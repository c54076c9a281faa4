"""The record as columns: one table that names every column and how it is stored.

Times are stored as whole microseconds: stamps since the start of the run (int64),
chunk times since ``intended_s`` of their request (int32 while they fit, which is
35 minutes). A microsecond is far below what a client can resolve.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from operator import attrgetter
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from routeproof.records.columns import Column, Ragged, Records
from routeproof.records.parquet import AnyColumn, Storage
from routeproof.records.record import Record

Kind = Literal["text", "number", "whole", "stamp", "chunk_times", "whole_list"]

FIELDS: dict[str, tuple[Kind, str]] = {
    "request_id": ("text", "key.request_id"),
    "arm": ("text", "key.arm"),
    "phase": ("text", "key.phase"),
    "level": ("text", "key.level"),
    "block": ("whole", "key.block"),
    "case_id": ("text", "key.case_id"),
    "trial": ("whole", "key.trial"),
    "shard": ("whole", "key.shard"),
    "asked": ("text", "key.asked"),
    "wall_s": ("number", "clock.wall_s"),
    "intended_s": ("stamp", "clock.intended_s"),
    "dispatched_s": ("stamp", "clock.dispatched_s"),
    "sent_s": ("stamp", "clock.sent_s"),
    "first_byte_s": ("stamp", "clock.first_byte_s"),
    "end_s": ("stamp", "clock.end_s"),
    "chunk_s": ("chunk_times", "stream.chunk_s"),
    "chunk_tokens": ("whole_list", "stream.chunk_tokens"),
    "first_visible_s": ("stamp", "stream.first_visible_s"),
    "coalesced_reads": ("whole", "stream.coalesced_reads"),
    "outcome": ("text", "answer.outcome"),
    "http_status": ("whole", "answer.http_status"),
    "finish_reason": ("text", "answer.finish_reason"),
    "error": ("text", "answer.error"),
    "text": ("text", "answer.text"),
    "reasoning": ("text", "answer.reasoning"),
    "tool_calls": ("text", "answer.tool_calls"),
    "choices": ("text", "answer.choices"),
    "logprobs": ("text", "answer.logprobs"),
    "token_ids": ("whole_list", "answer.token_ids"),
    "prompt_tokens": ("whole", "usage.prompt_tokens"),
    "output_tokens": ("whole", "usage.output_tokens"),
    "cached_tokens": ("whole", "usage.cached_tokens"),
    "reasoning_tokens": ("whole", "usage.reasoning_tokens"),
    "queue_s": ("number", "engine.queue_s"),
    "prefill_s": ("number", "engine.prefill_s"),
    "decode_s": ("number", "engine.decode_s"),
    "drafted": ("whole", "engine.drafted"),
    "accepted": ("whole", "engine.accepted"),
    "spec_passes": ("whole", "engine.spec_passes"),
    "plain_passes": ("whole", "engine.plain_passes"),
    "passes": ("whole", "engine.passes"),
    "accepted_hist": ("whole_list", "engine.accepted_hist"),
    "drafted_per_position": ("whole_list", "engine.drafted_per_position"),
    "fingerprint": ("text", "engine.fingerprint"),
}
"""Column name: (kind, place in the record)."""

TEXT_HEAVY: frozenset[str] = frozenset(
    {"text", "reasoning", "tool_calls", "choices", "logprobs", "token_ids"}
)
"""Columns of the answer itself; leave them out where only numbers are judged."""

NUMERIC_COLUMNS: frozenset[str] = frozenset(FIELDS) - TEXT_HEAVY

_MICRO = 1e6
_INT32_MAX = 2**31 - 1


def columns_of(
    records: Sequence[Record],
) -> tuple[dict[str, AnyColumn], dict[str, Storage]]:
    """Records as storable columns, times already in microseconds.

    Returns:
        The columns and the storage of each number column.
    """
    columns: dict[str, AnyColumn] = {}
    storage: dict[str, Storage] = {}
    intended_us = np.rint(
        np.array([r.clock.intended_s for r in records], dtype=np.float64) * _MICRO
    )
    for name, (kind, place) in FIELDS.items():
        values = list(map(attrgetter(place), records))
        if kind == "chunk_times":
            column = _chunk_times(values, intended_us)
            top = column.values.max(initial=0.0)
            storage[name] = "int32" if top <= _INT32_MAX else "int64"
            columns[name] = column
        else:
            columns[name] = _BUILDERS[kind](values)
            storage[name] = "float64" if kind == "number" else "int64"
    return columns, storage


def records_of(n: int, columns: Mapping[str, AnyColumn]) -> Records:
    """Stored columns as ``Records``, times back in seconds."""
    numbers: dict[str, Column] = {}
    texts: dict[str, NDArray[np.object_]] = {}
    lists: dict[str, Ragged] = {}
    for name, column in columns.items():
        kind = FIELDS[name][0] if name in FIELDS else None
        if isinstance(column, Column):
            scaled = column.values / _MICRO if kind == "stamp" else column.values
            numbers[name] = Column(scaled, column.known)
        elif isinstance(column, Ragged):
            lists[name] = column
        else:
            texts[name] = column
    if "chunk_s" in lists and "intended_s" in columns:
        lists["chunk_s"] = _since_start(lists["chunk_s"], columns["intended_s"])
    return Records(n, numbers, texts, lists)


def _since_start(chunks: Ragged, intended: AnyColumn) -> Ragged:
    assert isinstance(intended, Column)
    base_us = np.repeat(intended.values, chunks.counts())
    return Ragged(chunks.offsets, (base_us + chunks.values) / _MICRO, chunks.known)


def _text(values: list[Any]) -> NDArray[np.object_]:
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column


def _number(values: list[Any]) -> Column:
    known = np.array([v is not None for v in values], dtype=np.bool_)
    filled = [0 if v is None else v for v in values]
    return Column(np.array(filled, dtype=np.float64), known)


def _stamp(values: list[Any]) -> Column:
    column = _number(values)
    return Column(np.rint(column.values * _MICRO), column.known)


def _ragged(values: list[Any]) -> Ragged:
    known = np.array([v is not None for v in values], dtype=np.bool_)
    lists = [v or () for v in values]
    counts = np.array([len(v) for v in lists], dtype=np.int64)
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    flat = np.fromiter(chain.from_iterable(lists), np.float64, count=int(offsets[-1]))
    return Ragged(offsets, flat, known)


def _chunk_times(values: list[Any], intended_us: NDArray[np.float64]) -> Ragged:
    column = _ragged(values)
    base_us = np.repeat(intended_us, column.counts())
    since_us = np.rint(column.values * _MICRO) - base_us
    return Ragged(column.offsets, since_us, column.known)


_BUILDERS: dict[str, Callable[[list[Any]], AnyColumn]] = {
    "text": _text,
    "number": _number,
    "whole": _number,
    "stamp": _stamp,
    "whole_list": _ragged,
}
