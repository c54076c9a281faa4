"""Tables about acceptance: the whole run, then slice by slice."""

from collections.abc import Iterator, Mapping, Sequence

from routeproof.gates.evidence import Acceptance
from routeproof.gates.facts import Cell, Row
from routeproof.reports import figures
from routeproof.reports.tables import Table, Titled, cell_text, number_table, text_table

_DRAWN = frozenset({"by_position", "by_class"})
"""Tables the page draws; their numbers stand under the drawing."""

_FIRST = ("requests", "tokens_per_pass", "acceptance_rate", "acceptance_length")
_SHARES = ("_rate", "_rate_macro", "_share", "coverage", "waste")


def acceptance_tables(acceptance: Acceptance) -> list[Titled]:
    """What is known of a draft; what an engine does not tell is named once."""
    found = []
    if acceptance.overall:
        source = acceptance.source.replace("_", " ")
        known, unknown = _measures(acceptance.overall)
        if unknown:
            known.append(("not told by this engine", ", ".join(unknown)))
        table = number_table(("measure", "value"), known, words=1)
        found.append(Titled(f"Over the whole run (source: {source})", table))
    for name, rows in sorted(acceptance.tables.items()):
        if rows and name not in _DRAWN:
            title = name.replace("_", " ").capitalize()
            found.append(Titled(title, sliced(rows, name.removeprefix("by_"))))
    if acceptance.identities:
        held = [
            (name.replace("_", " "), "holds" if holds else "does not hold")
            for name, holds in sorted(acceptance.identities.items())
        ]
        table = text_table(("identity of the counts", ""), held)
        found.append(Titled("Do the counts agree among themselves", table))
    return found


def _measures(
    overall: Mapping[str, float | None],
) -> tuple[list[tuple[str, str]], list[str]]:
    """Each known measure with its interval, and the names of those nobody tells."""
    known, unknown = [], []
    for name in _ordered(name for name in overall if not _is_end(name)):
        if overall[name] is None:
            unknown.append(name.replace("_", " "))
        else:
            text = _with_ends(name, overall)
            known.append((name.replace("_", " "), text))
    return known, unknown


def _ordered(names: Iterator[str]) -> list[str]:
    place = {name: index for index, name in enumerate(_FIRST)}
    return sorted(names, key=lambda name: (place.get(name, len(place)), name))


def _is_end(name: str) -> bool:
    return name.endswith(("_low", "_high"))


def _with_ends(name: str, values: Mapping[str, Cell]) -> str:
    unit = "share" if name.endswith(_SHARES) else ""
    value = values.get(name)
    if isinstance(value, str | bool) or value is None:
        return cell_text(name, value)
    low, high = values.get(f"{name}_low"), values.get(f"{name}_high")
    text = figures.number(value, unit)
    if isinstance(low, int | float) and isinstance(high, int | float):
        text += f" [{figures.number(low, unit)}, {figures.number(high, unit)}]"
    return text


def sliced(rows: Sequence[Row], key: str) -> Table:
    """One row per slice: the slice first, then what is known of any of them.

    Args:
        rows: One per slice.
        key: Column that names the slice; put first where the rows have it.
    """
    names = dict.fromkeys(name for row in rows for name in row)
    told = {n for n in names if any(row.get(n) is not None for row in rows)}
    shown = _ordered(name for name in names if name in told and not _is_end(name))
    words = [
        n for n in shown if any(isinstance(row.get(n), str | bool) for row in rows)
    ]
    words.sort(key=lambda name: name != key)
    columns = [*words, *(name for name in shown if name not in words)]
    return number_table(
        tuple(name.replace("_", " ") for name in columns),
        [tuple(_with_ends(name, row) for name in columns) for row in rows],
        words=len(words),
    )
