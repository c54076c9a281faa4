"""The load sweep: throughput and goodput against latency."""

from collections.abc import Sequence

import altair as alt

from routeproof.gates.facts import LatencyRow, LoadRow, Row
from routeproof.reports import figures
from routeproof.reports.charts.figure import Figure, arm_colour, drawn, hover, rows_of
from routeproof.reports.tables import Table

_OUTPUTS = (
    ("output_tokens_per_s", "Throughput", "output tokens/s"),
    ("goodput_per_s", "Goodput", "requests/s in every SLO"),
    ("correct_goodput_per_s", "Correct goodput", "correct requests/s in the SLOs"),
)


def sweep(loads: Sequence[LoadRow], latencies: Sequence[LatencyRow]) -> list[Figure]:
    """Throughput, goodput and correct goodput against latency over the load levels.

    The control would lie on the baseline; it is left to the table.
    """
    levels = [load for load in loads if load.phase == "sweep" and load.arm != "control"]
    if not levels:
        return []
    made = []
    for field, title, words in _OUTPUTS:
        points = [_sweep_row(load, field, latencies) for load in levels]
        known = [row for row in points if row["rate"] is not None]
        if known:
            made.append(_sweep_figure(field, title, words, known))
    return made


def _sweep_row(load: LoadRow, field: str, latencies: Sequence[LatencyRow]) -> Row:
    latency, what = _latency_at(load, latencies)
    return {
        "arm": load.arm,
        "level": load.level,
        "asked": load.asked,
        "rate": getattr(load, field),
        "latency": latency,
        "what": what,
    }


def _latency_at(
    load: LoadRow, latencies: Sequence[LatencyRow]
) -> tuple[float | None, str]:
    """p95 of the request latency at a level, or its mean where there is no p95."""
    for row in latencies:
        at = (row.arm, row.phase, row.level) == (load.arm, load.phase, load.level)
        if at and row.metric == "request_latency":
            p95 = next((p.value for p in row.percentiles if p.q == 0.95), None)
            return (p95, "p95") if p95 is not None else (row.mean, "mean")
    return None, "p95"


def _sweep_figure(field: str, title: str, words: str, rows: Sequence[Row]) -> Figure:
    has_latency = all(row["latency"] is not None for row in rows)
    across = "latency" if has_latency else "asked"
    across_words = "request latency, s (p95)" if has_latency else "load asked"
    base = alt.Chart(rows_of(rows)).encode(
        x=alt.X(f"{across}:Q").title(across_words),
        y=alt.Y("rate:Q").title(words),
        color=arm_colour([str(row["arm"]) for row in rows]),
        tooltip=hover("arm:N", "level:N", "rate:Q", "latency:Q", "what:N"),
    )
    chart = (
        base.mark_line(strokeWidth=2).encode(order=alt.Order("asked:Q"))
        + base.mark_point(filled=True, size=55, opacity=1)
        + base.mark_text(
            dx=7, dy=9, align="left", fontSize=11, color="var(--muted)"
        ).encode(text=alt.Text("level:N"))
    )
    return Figure(
        key=f"sweep-{field}",
        title=title,
        says=f"{title} ({words}) against {across_words}, one point per load level. "
        "Up and to the left is better.",
        specification=drawn(chart, height=230),
        numbers=Table(
            head=("arm", "level", words, "request latency"),
            rows=tuple(
                (
                    str(row["arm"]),
                    str(row["level"]),
                    figures.number(_float(row["rate"])),
                    _latency_words(row),
                )
                for row in rows
            ),
            numeric=(False, False, True, True),
        ),
    )


def _latency_words(row: Row) -> str:
    value = _float(row["latency"])
    return (
        figures.UNKNOWN if value is None else f"{figures.seconds(value)} {row['what']}"
    )


def _float(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None
