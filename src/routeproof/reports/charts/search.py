"""The search for a draft length: a heat map, and curves with their intervals."""

from collections.abc import Sequence
from typing import Any

import altair as alt

from routeproof.gates.facts import Row
from routeproof.reports.charts.figure import Figure, drawn, hover, rows_of
from routeproof.reports.tables import of_rows

ENDS = ("gain", "gain_low", "gain_high")
COLOURS = (
    "var(--candidate)",
    "var(--violet)",
    "var(--inconclusive)",
    "var(--baseline)",
)


def search(rows: Sequence[Row]) -> tuple[Figure, ...]:
    """The figures of a search, as far as it measured anything."""
    made = (grid(rows), gains(rows), yields(rows))
    return tuple(figure for figure in made if figure is not None)


def gains(rows: Sequence[Row]) -> Figure | None:
    """Gain by draft length, a line a load, with its interval."""
    points = _points(rows, "gain")
    if len({row["draft_tokens"] for row in points}) < MOST_BARE:
        return None
    base = alt.Chart(rows_of(points)).encode(
        x=alt.X("draft_tokens:O").title("drafted tokens").axis(labelAngle=0),
        xOffset=alt.XOffset("load:N").sort(None),
        color=_by_load(points),
    )
    ends = [
        float(value)
        for row in points
        for name in ENDS
        if isinstance(value := row.get(name), int | float)
    ]
    scale = alt.Scale(domain=[min(ends), max(ends)], zero=False, nice=True)
    spread = (
        base.transform_filter("isValid(datum.gain_low)")
        .mark_rule(strokeWidth=2, opacity=0.55)
        .encode(
            y=alt.Y("gain_low:Q", scale=scale).title("times the baseline"),
            y2="gain_high:Q",
        )
    )
    rings = (
        base.transform_filter("datum.chosen")
        .mark_point(size=220, strokeWidth=2, opacity=1)
        .encode(y="gain:Q")
    )
    dots = base.mark_point(size=60, filled=True, opacity=1).encode(
        y=alt.Y("gain:Q"), tooltip=_tooltips(points)
    )
    even = (
        alt.Chart(rows_of([{"even": 1.0}]))
        .mark_rule(color="var(--muted)", strokeDash=[4, 3])
        .encode(y="even:Q")
    )
    return Figure(
        key="tune-gain",
        title="Gain by draft length",
        says="Output tokens a second over the baseline's, with its interval. A draft "
        "length is chosen only where the whole interval lies above 1. "
        f"{chosen(points)}",
        specification=drawn(even + spread + dots + rings, height=230),
        numbers=of_rows(rows),
    )


def chosen(points: Sequence[Row]) -> str:
    """The pick of each load in words."""
    picks = {
        row["load"]: [
            str(each["draft_tokens"])
            for each in points
            if each["load"] == row["load"] and each.get("chosen")
        ]
        for row in points
    }
    words = [
        f"{' or '.join(found)} at {load}" if found else f"none at {load}"
        for load, found in picks.items()
    ]
    return f"Chosen (ringed): {', '.join(words)}."


def yields(rows: Sequence[Row]) -> Figure | None:
    """Tokens per pass by draft length."""
    points = _points(rows, "tokens_per_pass")
    if len({row["draft_tokens"] for row in points}) < MOST_BARE:
        return None
    chart = (
        alt.Chart(rows_of(points))
        .mark_line(strokeWidth=2, point={"size": 55, "filled": True})
        .encode(
            x=alt.X("draft_tokens:O").title("drafted tokens").axis(labelAngle=0),
            y=alt.Y("tokens_per_pass:Q").title("tokens per pass").scale(zero=False),
            color=_by_load(points),
            tooltip=hover(
                "draft_tokens:O",
                "load:N",
                alt.Tooltip("tokens_per_pass:Q").format(".2f"),
            ),
        )
    )
    return Figure(
        key="tune-yield",
        title="Tokens per pass by draft length",
        says="What a pass of the target yields. It may go on rising where the gain "
        "falls: longer drafts cost more to make and to verify.",
        specification=drawn(chart, height=180),
        numbers=of_rows(rows),
    )


MOST_BARE = 2
"""Draft lengths that a curve needs."""


def _points(rows: Sequence[Row], name: str) -> list[Row]:
    known = [
        row
        for row in rows
        if row.get("draft_tokens") is not None and row.get(name) is not None
    ]
    return [{**row, "load": _load(row, _across(known))} for row in known]


def _across(rows: Sequence[Row]) -> str | None:
    return "concurrency" if any("concurrency" in row for row in rows) else None


def _by_load(points: Sequence[Row]) -> alt.Color:
    loads = list(dict.fromkeys(str(row["load"]) for row in points))
    colours = [COLOURS[i % len(COLOURS)] for i in range(len(loads))]
    return (
        alt.Color("load:N")
        .scale(domain=loads, range=colours)
        .title("streams")
        .legend(symbolType="stroke")
    )


def grid(rows: Sequence[Row]) -> Figure | None:
    """The draft-length search as a heat map: gain by draft length and load."""
    points = _points(rows, "gain")
    if not points:
        return None
    base = alt.Chart(rows_of(points)).encode(
        x=alt.X("draft_tokens:O").title("drafted tokens").axis(labelAngle=0),
        y=alt.Y("load:N").title(_across(points)).sort(None),
        tooltip=_tooltips(points),
    )
    colour = (
        alt.Color("gain:Q")
        .scale(range=["#e8a04a", "#f3efe7", "#86b4e8"], domainMid=1, interpolate="rgb")
        .legend(None)
    )
    chart = base.mark_rect(
        cornerRadius=3, stroke="var(--surface)", strokeWidth=2
    ).encode(color=colour) + base.mark_text(color="#111", fontSize=12).encode(
        text=alt.Text("gain:Q").format(".2f")
    )
    return Figure(
        key="tune",
        title="Draft length search",
        says="Gain over the baseline by draft length and load; above 1 the candidate "
        "is faster.",
        specification=drawn(chart, height=38 * len({row["load"] for row in points})),
        numbers=of_rows(rows),
    )


def _load(row: Row, across: str | None) -> str:
    value = None if across is None else row.get(across)
    load = f"{value:g}" if isinstance(value, int | float) else str(value or "")
    return f"{load}, {row['options']}" if row.get("options") else load


def _tooltips(rows: Sequence[Row]) -> list[Any]:
    names = dict.fromkeys(name for row in rows for name in row)
    return [alt.Tooltip(f"{name}:N", title=name.replace("_", " ")) for name in names]
