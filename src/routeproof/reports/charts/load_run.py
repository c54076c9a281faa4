"""Charts of one load run: a line for each level."""

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

from routeproof.gates.facts import LatencyRow, Row
from routeproof.reports import figures
from routeproof.reports.charts.figure import Figure, drawn, hover, rows_of
from routeproof.reports.charts.latency import (
    counts_table,
    ecdf_chart,
    percentile_chart,
)
from routeproof.reports.tables import Table

SHOWN = (
    "time_to_first_token",
    "time_per_output_token",
    "request_latency",
    "longest_stall",
)

_COLOURS = (
    "var(--candidate)",
    "var(--violet)",
    "var(--inconclusive)",
    "var(--passed)",
    "var(--failed)",
    "var(--baseline)",
)

Course = Sequence[tuple[float, int]]


def distributions(rows: Sequence[LatencyRow]) -> list[Figure]:
    """For each headline metric, its distribution and its percentiles, by level."""
    made = []
    for metric in SHOWN:
        some = [row for row in rows if row.metric == metric and row.ecdf]
        if some:
            made.append(_ecdf(metric, some))
            made.append(_percentiles(metric, some))
    return made


def under_way(
    levels: Sequence[tuple[str, Course]],
    windows: Mapping[str, tuple[float, float] | None],
) -> list[Figure]:
    """Requests under way over time, with the steady window of each level."""
    points: list[Row] = [
        {"level": level, "at": round(at, 4), "requests": count}
        for level, course in levels
        for at, count in course
    ]
    if not points:
        return []
    spans: list[Row] = [
        {"level": level, "from": window[0], "to": window[1]}
        for level, window in windows.items()
        if window is not None
    ]
    names = [level for level, _ in levels]
    line = (
        alt.Chart(rows_of(points))
        .mark_line(interpolate="step-after", strokeWidth=1.5)
        .encode(
            x=alt.X("at:Q").title("seconds since the start"),
            y=alt.Y("requests:Q").title("requests under way"),
            color=_colour(names),
            tooltip=hover("level:N", "at:Q", "requests:Q"),
        )
    )
    chart: Any = line
    if spans:
        steady = (
            alt.Chart(rows_of(spans))
            .mark_rect(opacity=0.35, color="var(--fill)")
            .encode(
                x=alt.X("from:Q").title("seconds since the start"),
                x2=alt.X2("to:Q"),
                tooltip=hover("level:N", "from:Q", "to:Q"),
            )
        )
        chart = steady + line
    return [
        Figure(
            key="under-way",
            title="Requests under way",
            says="How many requests were under way, level by level. The shaded part is "
            "the steady window, found by itself: rates are taken from it, and the "
            "table shows them with the ramps too.",
            specification=drawn(chart, height=150),
            numbers=Table(
                head=("level", "steady from", "to"),
                rows=tuple(
                    (
                        str(row["level"]),
                        f"{row['from']:.2f} s",
                        f"{row['to']:.2f} s",
                    )
                    for row in spans
                ),
                numeric=(False, True, True),
            ),
        )
    ]


def _ecdf(metric: str, rows: Sequence[LatencyRow]) -> Figure:
    chart = ecdf_chart(rows, "level", _colour([row.level for row in rows]))
    name = metric.replace("_", " ")
    return Figure(
        key=f"load-ecdf-{metric}",
        title=name[0].upper() + name[1:],
        says=f"Share of all requests whose {name} was at most the value below. Further "
        "left is faster; a line that ends below 100 % had failures.",
        specification=drawn(chart, height=190),
        numbers=counts_table(rows, "level"),
    )


def _percentiles(metric: str, rows: Sequence[LatencyRow]) -> Figure:
    levels = [row.level for row in rows]
    chart = percentile_chart(rows, "level", _colour(levels), order=levels)
    name = metric.replace("_", " ")
    return Figure(
        key=f"load-percentiles-{metric}",
        title=f"Percentiles of {name}",
        says=f"Percentiles of {name} with their 95 % intervals. Failed requests count "
        "as infinitely slow; a percentile without enough samples is left out.",
        specification=drawn(chart, height=60 + 30 * len(rows)),
        numbers=Table(
            head=("level", "percentile", "value"),
            rows=tuple(
                (row.level, f"p{100 * p.q:g}", figures.number(p.value, row.unit))
                for row in rows
                for p in row.percentiles
                if p.value is not None
            ),
            numeric=(False, False, True),
        ),
    )


def _colour(levels: Sequence[str]) -> Any:
    names = list(dict.fromkeys(levels))
    colours = [_COLOURS[i % len(_COLOURS)] for i in range(len(names))]
    return alt.Color("level:N").scale(domain=names, range=colours)
