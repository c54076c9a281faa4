"""Distributions and percentiles of a metric, a line for each arm or each level."""

from collections.abc import Sequence
from typing import Any, Literal

import altair as alt

from routeproof.gates.facts import LatencyRow, Row
from routeproof.reports import figures
from routeproof.reports.charts.figure import hover, rows_of, unit_scale
from routeproof.reports.tables import Table

By = Literal["arm", "level"]
"""What the lines of a chart differ in."""


def ecdf_chart(
    rows: Sequence[LatencyRow], by: By, colour: Any, **encodings: Any
) -> alt.Chart:
    """The share of all requests that took at most so long.

    Args:
        rows: Of one metric, each with its ``ecdf``.
        by: What tells the lines apart.
        colour: The colour channel.
        encodings: Further channels, such as the dash of a line.
    """
    factor, unit = unit_scale(rows[0].unit, max(row.ecdf[-1][0] for row in rows))
    points: list[Row] = [
        {by: _name(row, by), "value": round(factor * value, 6), "share": round(at, 4)}
        for row in rows
        for value, at in row.ecdf
    ]
    return (
        alt.Chart(rows_of(points))
        .mark_line(interpolate="step-after", strokeWidth=2)
        .encode(
            x=alt.X("value:Q").title(unit),
            y=alt.Y("share:Q").title(None).axis(format="%", tickCount=5),
            color=colour,
            tooltip=hover(f"{by}:N", "value:Q", alt.Tooltip("share:Q").format(".0%")),
            **encodings,
        )
    )


def percentile_chart(
    rows: Sequence[LatencyRow], by: By, colour: Any, *, order: Sequence[str]
) -> alt.LayerChart:
    """Percentiles with their intervals; those without enough samples are left out.

    Args:
        rows: Of one metric.
        by: What tells the marks apart.
        colour: The colour channel.
        order: From top to bottom within a percentile.
    """
    known = [(row, p) for row in rows for p in row.percentiles if p.value is not None]
    largest = max((p.high or p.value or 0.0 for _, p in known), default=0.0)
    factor, unit = unit_scale(rows[0].unit, largest)
    points: list[Row] = [
        {
            by: _name(row, by),
            "percentile": f"p{100 * p.q:g}",
            "value": _times(factor, p.value),
            "low": _times(factor, p.low),
            "high": _times(factor, p.high),
        }
        for row, p in known
    ]
    base = alt.Chart(rows_of(points)).encode(
        y=alt.Y("percentile:N").title(None).sort(None),
        yOffset=alt.YOffset(f"{by}:N").sort(list(order)),
        color=colour,
        tooltip=hover(f"{by}:N", "percentile:N", "value:Q", "low:Q", "high:Q"),
    )
    return base.mark_rule(strokeWidth=2.5, opacity=0.6).encode(
        x=alt.X("low:Q").title(unit).scale(zero=False), x2=alt.X2("high:Q")
    ) + base.mark_point(filled=True, size=60, opacity=1).encode(x=alt.X("value:Q"))


def counts_table(rows: Sequence[LatencyRow], by: By) -> Table:
    """How many requests stand behind each line."""
    return Table(
        head=(by, "requests", "failed", "not told", "mean of served"),
        rows=tuple(
            (
                _name(row, by),
                f"{row.n:,}",
                f"{row.failed:,}",
                f"{row.unknown:,}",
                figures.number(row.mean, row.unit),
            )
            for row in rows
        ),
        numeric=(False, True, True, True, True),
    )


def _name(row: LatencyRow, by: By) -> str:
    return row.arm if by == "arm" else row.level


def _times(factor: float, value: float | None) -> float | None:
    return None if value is None else round(factor * value, 6)
