"""Many records as columns: frozen NumPy arrays, unknown as a mask.

A number column is ``(values, known)``; a ragged column is ``(offsets, values, known)``
in the Arrow layout; a text column is an object array with ``None`` for unknown.
Nothing here is ever filled with 0 or NaN to stand for "unknown".
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Column:
    """A number per record.

    Attributes:
        values: Shape ``(n,)``; what stands where ``known`` is false means nothing.
        known: Shape ``(n,)``.
    """

    values: Floats
    known: Bools

    def where_known(self) -> Floats:
        """The known values only, order kept, shape ``(known.sum(),)``."""
        return self.values[self.known]


@dataclass(frozen=True, slots=True)
class Ragged:
    """A list of numbers per record.

    Attributes:
        offsets: Shape ``(n + 1,)``; record ``i`` owns values offsets[i] to
            offsets[i + 1].
        values: All lists, one after the other.
        known: Shape ``(n,)``; false when the server did not tell.
    """

    offsets: NDArray[np.int64]
    values: Floats
    known: Bools

    def counts(self) -> NDArray[np.int64]:
        """Length of each list, shape ``(n,)``."""
        return np.diff(self.offsets)

    def of(self, index: int) -> Floats:
        """The list of one record."""
        return self.values[self.offsets[index] : self.offsets[index + 1]]


@dataclass(frozen=True, slots=True)
class Records:
    """A set of records as columns. The names are those of the record's fields.

    A column that is absent is unknown for every record (``number`` answers with an
    all-unknown column), so that old runs and thin engines need no special case.
    """

    n: int
    numbers: Mapping[str, Column] = field(default_factory=dict)
    texts: Mapping[str, NDArray[np.object_]] = field(default_factory=dict)
    lists: Mapping[str, Ragged] = field(default_factory=dict)

    def number(self, name: str) -> Column:
        """One number per record, such as ``end_s`` or ``output_tokens``."""
        found = self.numbers.get(name)
        if found is not None:
            return found
        return Column(np.zeros(self.n), np.zeros(self.n, dtype=np.bool_))

    def text(self, name: str) -> NDArray[np.object_]:
        """One string or ``None`` per record, such as ``outcome`` or ``case_id``."""
        found = self.texts.get(name)
        return found if found is not None else np.full(self.n, None, dtype=object)

    def ragged(self, name: str) -> Ragged:
        """One list per record, such as ``chunk_s``."""
        found = self.lists.get(name)
        if found is not None:
            return found
        empty = np.zeros(self.n, dtype=np.bool_)
        return Ragged(np.zeros(self.n + 1, dtype=np.int64), np.zeros(0), empty)

    def is_in(self, name: str, wanted: frozenset[str] | set[str] | str) -> Bools:
        """True where the text column ``name`` is one of ``wanted``, shape ``(n,)``."""
        names = {wanted} if isinstance(wanted, str) else wanted
        column = self.text(name)
        return np.fromiter((v in names for v in column), dtype=np.bool_, count=self.n)

    def where(self, keep: Bools) -> "Records":
        """The records where ``keep`` is true, order kept."""
        index = np.flatnonzero(keep)
        return Records(
            n=len(index),
            numbers={
                k: Column(c.values[index], c.known[index])
                for k, c in self.numbers.items()
            },
            texts={k: v[index] for k, v in self.texts.items()},
            lists={k: _take_ragged(v, index) for k, v in self.lists.items()},
        )

    def with_number(self, name: str, column: Column) -> "Records":
        """A copy with one more (or a replaced) number column."""
        return Records(self.n, {**self.numbers, name: column}, self.texts, self.lists)


def _take_ragged(column: Ragged, index: NDArray[Any]) -> Ragged:
    counts = column.counts()[index]
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    starts = np.repeat(column.offsets[:-1][index] - offsets[:-1], counts)
    values = column.values[starts + np.arange(offsets[-1])]
    return Ragged(offsets, values, column.known[index])
