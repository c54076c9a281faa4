"""Records of one run put into another, under the names they have there."""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from routeproof.records.columns import Column, Ragged, Records
from routeproof.records.parquet import AnyColumn, Storage, read_table
from routeproof.records.schema import FIELDS

_INT32_MAX = 2**31 - 1


class NewName(NamedTuple):
    """The request id and the block of a record in the run it is put into."""

    request_id: str
    block: int


class Stored(NamedTuple):
    """Columns ready for ``parquet.write_table``."""

    n: int
    columns: dict[str, AnyColumn]
    storage: dict[str, Storage]


def taken_over(part: Path, names: Mapping[str, NewName], *, shift_s: float) -> Stored:
    """The records of a part that have a new name, all stamps moved by ``shift_s``.

    Wall-clock times stay what they were.

    Raises:
        StoredRunError: The part cannot be read.
    """
    n, columns, _ = read_table(part)
    whole = Records(
        n,
        {k: v for k, v in columns.items() if isinstance(v, Column)},
        {k: v for k, v in columns.items() if isinstance(v, np.ndarray)},
        {k: v for k, v in columns.items() if isinstance(v, Ragged)},
    )
    kept = whole.where(whole.is_in("request_id", set(names)))
    new = [names[old] for old in kept.text("request_id").tolist()]
    shift_us = np.rint(shift_s * 1e6)
    found: dict[str, AnyColumn] = {**kept.texts, **kept.lists}
    storage: dict[str, Storage] = {}
    for name, column in kept.numbers.items():
        kind = FIELDS[name][0]
        storage[name] = "float64" if kind == "number" else "int64"
        moved = column.values + shift_us if kind == "stamp" else column.values
        found[name] = Column(moved, column.known)
    for name, ragged in kept.lists.items():
        top = ragged.values.max(initial=0.0)
        is_narrow = FIELDS[name][0] == "chunk_times" and top <= _INT32_MAX
        storage[name] = "int32" if is_narrow else "int64"
    blocks = np.array([each.block for each in new], dtype=np.float64)
    found["block"] = Column(blocks, np.ones(blocks.size, dtype=np.bool_))
    ids = np.empty(len(new), dtype=object)
    ids[:] = [each.request_id for each in new]
    found["request_id"] = ids
    return Stored(kept.n, found, storage)
