"""Scores as columns: one row per (request, scorer), and their file."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from routeproof.errors import StoredRunError
from routeproof.records.columns import Bools, Column
from routeproof.records.parquet import AnyColumn, Storage, read_table, write_table

Texts = NDArray[np.object_]

_KIND = "routeproof scores"
SCHEMA = 1


@dataclass(frozen=True, slots=True)
class Scores:
    """One row per (request, scorer); all columns have shape ``(n,)``.

    Attributes:
        request_id, arm, phase, level, case_id: Texts of the record's key.
        cluster: Cases of one document share it; the case's id when it has none.
        task_class: The case's class.
        tags: The case's further slice tags as JSON with sorted keys.
        scorer: Name in the table of scorers.
        class_: ``ScoreClass``.
        trial, version: Whole numbers.
        value: In [0, 1]; unknown where the answer could not be scored.
        extracted, trace: As the scorer says; ``extracted`` may be ``None``.
    """

    request_id: Texts
    arm: Texts
    phase: Texts
    level: Texts
    case_id: Texts
    cluster: Texts
    task_class: Texts
    tags: Texts
    scorer: Texts
    class_: Texts
    extracted: Texts
    trace: Texts
    trial: NDArray[np.int64]
    version: NDArray[np.int64]
    value: Column

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.request_id)

    def where(self, keep: Bools) -> "Scores":
        """The rows where ``keep`` is true, order kept."""
        picked: dict[str, Any] = {}
        for one in fields(self):
            column = getattr(self, one.name)
            picked[one.name] = (
                Column(column.values[keep], column.known[keep])
                if isinstance(column, Column)
                else column[keep]
            )
        return Scores(**picked)

    def of(self, scorer: str, *, arm: str | None = None) -> "Scores":
        """The rows of one scorer (and one arm)."""
        keep = self.scorer == scorer
        if arm is not None:
            keep &= self.arm == arm
        return self.where(keep)

    def in_slice(self, wanted: Mapping[str, str]) -> Bools:
        """True where the case's class and tags are those of ``wanted``.

        Args:
            wanted: Such as ``{"class": "tool_call", "language": "fr"}``; also
                ``phase`` and ``level``. Empty means every row.
        """
        keep = np.ones(self.n, dtype=np.bool_)
        for name, value in wanted.items():
            if name in ("class", "phase", "level"):
                keep &= (
                    getattr(self, "task_class" if name == "class" else name) == value
                )
            else:
                keep &= self._has_tag(name, value)
        return keep

    def _has_tag(self, name: str, value: str) -> Bools:
        wanted = {
            tags: msgspec.json.decode(tags).get(name) == value
            for tags in set(self.tags.tolist())
        }
        return np.array([wanted[tags] for tags in self.tags], dtype=np.bool_)

    def class_counts(self) -> dict[str, int]:
        """Rows of each score class, most frequent first."""
        names, counts = np.unique(self.class_.astype(str), return_counts=True)
        order = np.argsort(-counts, kind="stable")
        return {str(names[i]): int(counts[i]) for i in order}

    def completeness_share(self) -> float | None:
        """Share of the rows with a value; ``None`` when there is no row."""
        return float(self.value.known.mean()) if self.n else None


_TEXT_COLUMNS = tuple(f.name for f in fields(Scores) if f.type is Texts)


def concatenate(parts: Iterable[Scores]) -> Scores:
    """Scores of several parts as one."""
    listed = list(parts)
    if not listed:
        nothing = {name: as_texts_column(()) for name in _TEXT_COLUMNS}
        none = np.zeros(0, dtype=np.int64)
        empty = Column(np.zeros(0), np.zeros(0, dtype=np.bool_))
        return Scores(value=empty, trial=none, version=none, **nothing)
    joined: dict[str, Any] = {}
    for one in fields(Scores):
        columns = [getattr(part, one.name) for part in listed]
        if one.name == "value":
            joined[one.name] = Column(
                np.concatenate([c.values for c in columns]),
                np.concatenate([c.known for c in columns]),
            )
        else:
            joined[one.name] = np.concatenate(columns)
    return Scores(**joined)


def as_texts_column(values: Iterable[str | None]) -> Texts:
    """Texts as a column, shape ``(n,)``."""
    listed = list(values)
    column = np.empty(len(listed), dtype=object)
    column[:] = listed
    return column


def write_scores(path: Path, scores: Scores) -> None:
    """Write scores as one Parquet file, atomically.

    Raises:
        StoredRunError: The disk is full or the folder is read-only.
    """
    columns: dict[str, AnyColumn] = {
        name: getattr(scores, name) for name in _TEXT_COLUMNS
    }
    columns["value"] = scores.value
    known = np.ones(scores.n, dtype=np.bool_)
    for name in ("trial", "version"):
        columns[name] = Column(getattr(scores, name).astype(np.float64), known)
    notes = {"kind": _KIND, "schema": str(SCHEMA)}
    storage: dict[str, Storage] = {"trial": "int64", "version": "int64"}
    write_table(path, columns, storage=storage, metadata=notes)


def read_scores(path: Path) -> Scores:
    """Scores as ``write_scores`` wrote them.

    Raises:
        StoredRunError: Missing, torn, foreign, or of another schema.
    """
    n, columns, notes = read_table(path)
    if notes.get("kind") != _KIND or notes.get("schema") != str(SCHEMA):
        raise StoredRunError(
            f"{path} holds no scores of schema {SCHEMA}",
            hint="delete it and run `routeproof judge` again, which scores anew",
        )
    picked: dict[str, Any] = {
        name: columns.get(name, np.full(n, None, dtype=object))
        for name in _TEXT_COLUMNS
    }
    unknown = Column(np.zeros(n), np.zeros(n, dtype=np.bool_))
    for name in ("trial", "version"):
        column = columns.get(name, unknown)
        assert isinstance(column, Column)
        picked[name] = column.values.astype(np.int64)
    value = columns.get("value", unknown)
    assert isinstance(value, Column)
    return Scores(value=value, **picked)
