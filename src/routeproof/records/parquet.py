"""Columns to Parquet and back, by way of arro3.

Unknown is a Parquet null, so that DuckDB, Polars or pandas read the same files. A
column in which nothing is known is left out: absent means unknown for every row.
"""

import io
import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Literal

import arro3.compute as compute
import arro3.io
import numpy as np
from arro3.core import (
    Array,
    DataType,
    Field,
    Table,
    dictionary_dictionary,
    dictionary_indices,
    list_array,
    list_flatten,
    list_offsets,
)
from numpy.typing import NDArray

from routeproof.errors import StoredRunError
from routeproof.records.columns import Bools, Column, Ragged
from routeproof.records.files import read_bytes, write_atomically

AnyColumn = Column | Ragged | NDArray[np.object_]
"""A number, a list of numbers, or a text (or ``None``) per row."""

Storage = Literal["float64", "int64", "int32"]

_MAGIC = b"PAR1"
_COMPRESSION = "zstd(3)"
_ROWS_PER_BATCH = 1 << 20
_ROWS_PER_GROUP = 1 << 17
_HALF = re.compile("[\ud800-\udfff]")
_TYPE_TEST: Any = DataType
_ARROW_TYPES = {
    "float64": DataType.float64(),
    "int64": DataType.int64(),
    "int32": DataType.int32(),
}


def write_table(
    path: Path,
    columns: Mapping[str, AnyColumn],
    *,
    storage: Mapping[str, Storage] | None = None,
    metadata: Mapping[str, str] | None = None,
) -> None:
    """Write columns of equal length as one Parquet file, atomically.

    Args:
        path: The file; replaced in one step.
        columns: By name; number, list and text columns may be mixed.
        storage: How numbers are stored, ``float64`` where not named. An integer
            storage must be able to hold every known value.
        metadata: Text kept in the footer.

    Raises:
        StoredRunError: The disk is full or the folder is read-only.
    """
    write_atomically(path, encode_table(columns, storage=storage, metadata=metadata))


def encode_table(
    columns: Mapping[str, AnyColumn],
    *,
    storage: Mapping[str, Storage] | None = None,
    metadata: Mapping[str, str] | None = None,
) -> bytes:
    """The bytes ``write_table`` writes."""
    stored = storage or {}
    arrays = {
        name: _to_arrow(column, stored.get(name, "float64"))
        for name, column in columns.items()
    }
    known: dict[str, Any] = {
        name: a for name, a in arrays.items() if len(a) != a.null_count
    }
    rows = len(next(iter(arrays.values()))) if arrays else 0
    notes = {"rows": str(rows), **(metadata or {})}
    if not known:
        known = {"_nothing": Array([None] * rows, type=DataType.bool())}
    sink = io.BytesIO()
    arro3.io.write_parquet(
        Table.from_pydict(known),
        sink,
        compression=_COMPRESSION,
        max_row_group_size=_ROWS_PER_GROUP,
        key_value_metadata=notes,
    )
    return sink.getvalue()


def read_table(
    path: Path, only: Collection[str] | None = None
) -> tuple[int, dict[str, AnyColumn], dict[str, str]]:
    """Read a Parquet file written by ``write_table``, or by another tool.

    Args:
        path: The file.
        only: Names to convert; all when ``None``. Others cost no Python objects.

    Returns:
        Number of rows, columns by name, footer texts.

    Raises:
        StoredRunError: Missing, torn or foreign bytes, or a column type that no
            column here can hold.
    """
    table = _open(path)
    names = [n for n in table.column_names if n != "_nothing"]
    wanted = [n for n in names if only is None or n in only]
    columns = {n: _from_arrow(path, n, table.column(n)) for n in wanted}
    notes = {
        k.decode(): v.decode("utf-8", "replace")
        for k, v in table.schema.metadata.items()
        if k != b"ARROW:schema"
    }
    return table.num_rows, columns, notes


def _open(path: Path) -> Table:
    data = read_bytes(path, what="Parquet file")
    footer_bytes = int.from_bytes(data[-8:-4], "little") if len(data) >= 12 else 0
    whole = data[:4] == data[-4:] == _MAGIC and 0 < footer_bytes <= len(data) - 12
    if whole:
        try:
            return arro3.io.read_parquet(data, batch_size=_ROWS_PER_BATCH).read_all()
        except BaseException as error:
            # The Rust reader panics on some broken files, outside of Exception.
            if isinstance(error, KeyboardInterrupt | SystemExit | MemoryError):
                raise
            reason = str(error).partition("value: ")[2] or str(error)
            raise StoredRunError(f"{path} is damaged: {reason}") from error
    raise StoredRunError(
        f"{path} is not a whole Parquet file ({len(data)} bytes)",
        hint="it was cut short or is something else; move it out of the folder and "
        "run again with --resume, which sends what is missing",
    )


def _to_arrow(column: AnyColumn, storage: Storage) -> Array:
    if isinstance(column, Column):
        return _numbers(column.values, column.known, storage)
    if isinstance(column, Ragged):
        values = Array.from_numpy(column.values.astype(storage))
        kind = DataType.list(Field("item", _ARROW_TYPES[storage], nullable=True))
        offsets = Array.from_numpy(column.offsets.astype(np.int32))
        if column.known.all():
            return list_array(offsets, values, type=kind)
        mask = Array.from_numpy(~column.known)
        return list_array(offsets, values, type=kind, mask=mask)
    texts = column.tolist()
    try:
        return compute.dictionary_encode(Array(texts, type=DataType.string()))
    except UnicodeEncodeError:
        # JSON can carry half a surrogate pair and UTF-8 cannot: U+FFFD stands for it.
        whole = [None if text is None else _HALF.sub("\ufffd", text) for text in texts]
        return compute.dictionary_encode(Array(whole, type=DataType.string()))


def _numbers(values: NDArray[Any], known: Bools, storage: Storage) -> Array:
    if known.all():
        return Array.from_numpy(np.ascontiguousarray(values.astype(storage)))
    cast = int if storage.startswith("int") else float
    pairs = zip(values.tolist(), known.tolist(), strict=True)
    return Array([cast(v) if k else None for v, k in pairs], type=_ARROW_TYPES[storage])


def _from_arrow(path: Path, name: str, chunked: Any) -> AnyColumn:
    array: Array = (
        chunked.chunk(0) if chunked.num_chunks == 1 else chunked.combine_chunks()
    )
    kind, test = array.type, _TYPE_TEST
    if test.is_dictionary(kind):
        return _texts_from(array)
    if test.is_list(kind) or test.is_large_list(kind):
        offsets = np.asarray(list_offsets(array)).astype(np.int64)
        values = np.asarray(list_flatten(array)).astype(np.float64)
        return Ragged(offsets - offsets[0], values, _known(array))
    if test.is_numeric(kind) or test.is_boolean(kind):
        known = _known(array)
        return Column(_filled(array, known), known)
    if test.is_string(kind):
        return _objects(list(array.to_pylist()))
    raise StoredRunError(f"{path}: column {name} has the type {kind}, not one of ours")


def _known(array: Array) -> Bools:
    return np.asarray(compute.is_not_null(array))


def _filled(array: Array, known: Bools) -> NDArray[np.float64]:
    if known.all():
        return np.asarray(array).astype(np.float64)
    values = np.zeros(len(array))
    if known.any():
        kept = compute.filter(array, Array.from_numpy(known))
        values[known] = np.asarray(kept)
    return values


def _texts_from(array: Array) -> NDArray[np.object_]:
    words = _objects([*dictionary_dictionary(array).to_pylist(), None])
    indices = dictionary_indices(array)
    known = _known(indices)
    where = _filled(indices, known).astype(np.int64)
    where[~known] = len(words) - 1
    return words[where]


def _objects(values: list[Any]) -> NDArray[np.object_]:
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column
