"""Rows of CSV and JSONL files, each with its line number when it is wrong."""

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec
import numpy as np

from routeproof.errors import FormatError

T = TypeVar("T")

Row = tuple[int, Mapping[str, str]]
"""Line number and the cells of one CSV row by column name."""


def csv_rows(text: str, path: Path, columns: Sequence[str]) -> Iterator[Row]:
    """Rows of a CSV text with its columns checked.

    Raises:
        FormatError: A column is missing, a row is short or long, or there is no row.
    """
    reader = csv.DictReader(io.StringIO(text), skipinitialspace=True)
    names = [name.strip() for name in reader.fieldnames or ()]
    missing = [name for name in columns if name not in names]
    if missing:
        raise FormatError(
            f"no column {', '.join(missing)}",
            path=path,
            line=1,
        )
    reader.fieldnames = names
    empty = True
    for row in reader:
        if None in row or None in row.values():
            raise FormatError(
                f"expected {len(names)} cells", path=path, line=reader.line_num
            )
        empty = False
        yield reader.line_num, row
    if empty:
        raise FormatError("the trace has no request", path=path, line=1)


def json_rows(text: str, path: Path, of: type[T]) -> Iterator[T]:
    """Lines of JSON of one shape; blank lines are skipped.

    Raises:
        FormatError: A line is not of that shape, or there is none.
    """
    decoder = msgspec.json.Decoder(of)
    empty = True
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            empty = False
            try:
                yield decoder.decode(line)
            except msgspec.DecodeError as error:
                raise FormatError(str(error), path=path, line=number) from error
    if empty:
        raise FormatError("the trace has no request", path=path, line=1)


def number(row: Mapping[str, str], name: str, path: Path, line: int) -> float:
    """A finite number in a cell.

    Raises:
        FormatError: It is none.
    """
    try:
        value = float(row[name])
    except ValueError:
        value = float("nan")
    if not np.isfinite(value):
        raise FormatError(f"{name}: not a number: {row[name]!r}", path=path, line=line)
    return value


def count(row: Mapping[str, str], name: str, path: Path, line: int) -> int:
    """A whole number of at least 0 in a cell.

    Raises:
        FormatError: It is none.
    """
    value = number(row, name, path, line)
    if value < 0 or value != int(value):
        raise FormatError(f"{name}: not a count: {row[name]!r}", path=path, line=line)
    return int(value)


def slug(text: str) -> str:
    """A name of several words as one: ``API log`` is ``api_log``."""
    return "_".join(text.lower().split())
