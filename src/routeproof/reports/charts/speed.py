"""Latency distributions, percentiles, and where the time goes."""

from collections.abc import Sequence
from typing import Any

import altair as alt

from routeproof.gates.facts import LatencyRow, Row
from routeproof.reports import figures
from routeproof.reports.charts.figure import (
    Figure,
    arm_colour,
    drawn,
    hover,
    rows_of,
    unit_scale,
)
from routeproof.reports.charts.latency import (
    counts_table,
    ecdf_chart,
    percentile_chart,
)
from routeproof.reports.tables import Table

ARMS = ("baseline", "candidate", "control")
"""From top to bottom."""

PHASES = ("latency", "quality", "sweep", "soak")
"""Where a distribution is taken from: the first of these that has one."""

SHOWN = (
    "time_to_first_token",
    "time_per_output_token",
    "request_latency",
)

PARTS = (
    ("queue_time", "queue"),
    ("prefill_time", "prefill"),
    ("decode_time", "decode"),
)


def distributions(rows: Sequence[LatencyRow]) -> list[tuple[Figure, Figure]]:
    """For each headline metric, its distribution and its percentiles."""
    made = []
    for metric in SHOWN:
        chosen = _first_stage([row for row in rows if row.metric == metric])
        if chosen:
            made.append((_ecdf(metric, chosen), _percentiles(metric, chosen)))
    return made


def _first_stage(rows: Sequence[LatencyRow]) -> list[LatencyRow]:
    for phase in PHASES:
        here = [row for row in rows if row.phase == phase and row.ecdf]
        if here:
            return [row for row in here if row.level == here[0].level]
    return []


def _ecdf(metric: str, rows: Sequence[LatencyRow]) -> Figure:
    arms = [row.arm for row in rows]
    chart = ecdf_chart(rows, "arm", arm_colour(arms), strokeDash=_dash(arms))
    name = metric.replace("_", " ")
    return Figure(
        key=f"ecdf-{metric}",
        title=name[0].upper() + name[1:],
        says=f"Share of answered requests whose {name} was at most the value below; "
        f"stage {rows[0].phase}, level {rows[0].level}. Further left is faster.",
        specification=drawn(chart, height=190),
        numbers=counts_table(rows, "arm"),
    )


def _dash(arms: Sequence[str]) -> Any:
    present = [arm for arm in ARMS if arm in arms]
    lines = {"baseline": [1, 0], "candidate": [1, 0], "control": [4, 3]}
    scale = {"domain": present, "range": [lines[arm] for arm in present]}
    return alt.StrokeDash("arm:N").scale(**scale)


def _percentiles(metric: str, rows: Sequence[LatencyRow]) -> Figure:
    colour = arm_colour([row.arm for row in rows])
    chart = percentile_chart(rows, "arm", colour, order=ARMS)
    name = metric.replace("_", " ")
    return Figure(
        key=f"percentiles-{metric}",
        title=f"Percentiles of {name}",
        says=f"Percentiles of {name} with their intervals. Failed requests count as "
        "infinitely slow; a percentile without enough samples is left out.",
        specification=drawn(chart, height=150),
        numbers=_percentile_table(rows),
    )


def _percentile_table(rows: Sequence[LatencyRow]) -> Table:
    return Table(
        head=("arm", "percentile", "value", "interval"),
        rows=tuple(
            (
                row.arm,
                f"p{100 * p.q:g}",
                figures.percentile(p, row.unit),
                figures.percentile_ends(p, row.unit),
            )
            for row in rows
            for p in row.percentiles
        ),
        numeric=(False, False, True, True),
    )


def phases_of_time(rows: Sequence[LatencyRow]) -> Figure | None:
    """Queue, prefill and decode of a mean request, arm by arm.

    Returns:
        ``None`` when the engine tells none of them.
    """
    chosen = [
        (label, row)
        for metric, label in PARTS
        for row in _stage_means([r for r in rows if r.metric == metric])
    ]
    if not chosen:
        return None
    factor, unit = unit_scale("s", max(row.mean or 0 for _, row in chosen))
    order = [label for _, label in PARTS]
    points: list[Row] = [
        {
            "arm": row.arm,
            "part": label,
            "time": None if row.mean is None else round(factor * row.mean, 6),
            "order": order.index(label),
        }
        for label, row in chosen
    ]
    scale = {"domain": order, "range": [f"var(--{part})" for part in order]}
    chart = (
        alt.Chart(rows_of(points))
        .mark_bar(size=22)
        .encode(
            x=alt.X("time:Q").title(f"mean {unit} of a request"),
            y=alt.Y("arm:N").title(None).sort(list(ARMS)),
            color=alt.Color("part:N").scale(**scale).sort(order),
            order=alt.Order("order:Q"),
            tooltip=hover("arm:N", "part:N", "time:Q"),
        )
    )
    return Figure(
        key="parts-of-time",
        title="Where the time goes",
        says="Mean time in the queue, in prefill and in decode, as the engine reports "
        "it for each request.",
        specification=drawn(chart, height=34 * len({row.arm for _, row in chosen})),
        numbers=Table(
            head=("arm", "part", "mean", "requests"),
            rows=tuple(
                (row.arm, label, figures.number(row.mean, "s"), f"{row.n:,}")
                for label, row in chosen
            ),
            numeric=(False, False, True, True),
        ),
    )


def _stage_means(rows: Sequence[LatencyRow]) -> list[LatencyRow]:
    for phase in PHASES:
        here = [r for r in rows if r.phase == phase and r.mean is not None]
        if here:
            return [row for row in here if row.level == here[0].level]
    return []
