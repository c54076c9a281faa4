"""What a chart of the report is, and how all of them look."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt

from routeproof.gates.facts import Cell
from routeproof.reports.tables import ARMS, Table

Specification = dict[str, Any]
Rows = Sequence[Mapping[str, Cell]]


@dataclass(frozen=True, slots=True)
class Figure:
    """One chart with its words and its numbers.

    Attributes:
        key: Unique in the page; the id of its element.
        title: What is shown, as a heading.
        says: How to read it; also the text alternative of the drawing.
        specification: Vega-Lite.
        numbers: The same data as a table.
    """

    key: str
    title: str
    says: str
    specification: Specification
    numbers: Table


_FONT = "system-ui, sans-serif"
"""Named outright, not by a CSS variable: labels are measured before they are set."""

_TEXT = {
    "labelColor": "var(--muted)",
    "titleColor": "var(--muted)",
    "labelFont": _FONT,
    "titleFont": _FONT,
    "labelFontSize": 12,
    "titleFontSize": 12,
    "titleFontWeight": "normal",
}

_LOOK: Specification = {
    "background": "transparent",
    "font": _FONT,
    "view": {"stroke": None},
    "axis": {
        **_TEXT,
        "gridColor": "var(--line)",
        "domainColor": "var(--strong-line)",
        "tickColor": "var(--strong-line)",
        "labelLimit": 280,
        "titlePadding": 10,
        "tickCount": 6,
        "labelOverlap": "greedy",
        "labelSeparation": 8,
        "labelFlush": False,
    },
    "legend": {
        **_TEXT,
        "orient": "top",
        "direction": "horizontal",
        "title": None,
        "symbolStrokeWidth": 2.5,
        "columnPadding": 18,
        "offset": 6,
        "labelLimit": 200,
    },
}


def drawn(chart: Any, *, height: int) -> Specification:
    """The Vega-Lite of a chart in the look of the page.

    Colours are CSS variables, so that the page's light, dark and print palettes apply
    without drawing anew.

    Args:
        chart: An Altair chart, layered or not.
        height: Pixels.
    """
    sized = chart.properties(width="container", height=height)
    specification: Specification = sized.properties(
        autosize=alt.AutoSizeParams(type="fit-x", contains="padding")
    ).to_dict()
    specification["config"] = _LOOK
    return specification


def rows_of(rows: Rows) -> Any:
    """Rows as inline data of a chart."""
    return alt.InlineData(values=[dict(row) for row in rows])


def hover(*fields: Any) -> list[Any]:
    """What is told of a mark under the pointer: ``name:T`` or an Altair tooltip."""
    return [alt.Tooltip(f) if isinstance(f, str) else f for f in fields]


def arm_colour(present: Sequence[str]) -> Any:
    """The colour encoding of arms: the same arm has the same colour everywhere."""
    arms = [arm for arm in ARMS if arm in present]
    colours = [f"var(--{arm})" for arm in arms]
    return alt.Color("arm:N").scale(domain=arms, range=colours)


def unit_scale(unit: str, largest: float) -> tuple[float, str]:
    """Factor and unit in which a chart shows a quantity (seconds below 1 as ms)."""
    if unit == "s":
        return (1000.0, "ms") if largest < 1 else (1.0, "s")
    if unit == "bytes":
        return 1e-9, "GB"
    return 1.0, unit
