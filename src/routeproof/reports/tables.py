"""Rows of plain values as tables of text."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from routeproof.gates.facts import Cell, Row
from routeproof.reports import figures

ARMS = ("baseline", "candidate", "control")

_LAST = frozenset({"reason"})


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


@dataclass(frozen=True, slots=True)
class Titled:
    """A table with its heading; ``is_folded`` when few readers need it."""

    title: str
    table: Table
    is_folded: bool = False


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
    """A table of rows of plain values.

    Without ``columns`` words come first, then numbers, then the reason; stored rows
    have lost their order.
    """
    names = list(columns or dict.fromkeys(name for row in rows for name in row))
    numeric = {name for name in names if _has_numbers(rows, name)}
    if columns is None:
        names.sort(key=lambda name: (name in _LAST, name in numeric))
    return Table(
        head=tuple(name.replace("_", " ") for name in names),
        rows=tuple(
            tuple(cell_text(name, row.get(name)) for name in names) for row in rows
        ),
        numeric=tuple(name in numeric for name in names),
    )


def by_arm(rows: Sequence[Row], keys: Sequence[str], value: str = "count") -> Table:
    """Rows of (keys..., arm, value) with one column for each arm.

    A cell is empty where an arm has no such row.
    """
    arms = [arm for arm in ARMS if any(row.get("arm") == arm for row in rows)]
    cells: dict[tuple[str, ...], dict[str, str]] = {}
    for row in rows:
        place = tuple(cell_text(key, row.get(key)).replace("_", " ") for key in keys)
        arm = str(row.get("arm"))
        cells.setdefault(place, {})[arm] = cell_text(value, row.get(value))
    return Table(
        head=(*(key.replace("_", " ") for key in keys), *arms),
        rows=tuple(
            (*place, *(found.get(arm, "") for arm in arms))
            for place, found in cells.items()
        ),
        numeric=(*(False for _ in keys), *(True for _ in arms)),
    )


def _has_numbers(rows: Sequence[Row], name: str) -> bool:
    return any(
        isinstance(row.get(name), int | float) and not isinstance(row.get(name), bool)
        for row in rows
    )


def text_table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> Table:
    """A table without numbers."""
    return Table(head=head, rows=tuple(rows), numeric=(False,) * len(head))


def number_table(
    head: tuple[str, ...],
    rows: Sequence[tuple[str, ...]],
    *,
    words: int,
    last_is_words: bool = False,
) -> Table:
    """A table whose first ``words`` columns are text and the others numbers."""
    last = len(head) - 1 if last_is_words else len(head)
    numeric = tuple(words <= index < last for index in range(len(head)))
    return Table(head=head, rows=tuple(rows), numeric=numeric)
