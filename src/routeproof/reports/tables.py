"""Rows of plain values as tables of text."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from routeproof.gates.facts import Cell, Row
from routeproof.reports import figures


@dataclass(frozen=True, slots=True)
class Table:
    """A table ready to be set.

    Attributes:
        head: Column titles.
        rows: Text cells, shape ``(n_rows, n_columns)``.
        numeric: True for each column that holds numbers (set flush right).
    """

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numeric: tuple[bool, ...]


def cell_text(name: str, value: Cell) -> str:
    """A cell for people, its unit taken from the suffix of the column's name."""
    if value is None:
        return figures.UNKNOWN
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return value
    return figures.number(value, _unit_of(name))


def _unit_of(name: str) -> str:
    if name.endswith("_per_s"):
        return "/s"
    if name.endswith("_s"):
        return "s"
    if name.endswith("_bytes"):
        return "bytes"
    return "share" if name.endswith(("_share", "_rate")) else ""


def of_rows(rows: Sequence[Row], columns: Iterable[str] | None = None) -> Table:
    """A table of rows of plain values; a column is numeric if any cell is a number."""
    names = list(columns or dict.fromkeys(name for row in rows for name in row))
    return Table(
        head=tuple(name.replace("_", " ") for name in names),
        rows=tuple(
            tuple(cell_text(name, row.get(name)) for name in names) for row in rows
        ),
        numeric=tuple(
            any(
                isinstance(row.get(name), int | float)
                and not isinstance(row.get(name), bool)
                for row in rows
            )
            for name in names
        ),
    )
