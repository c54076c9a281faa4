"""Charts of the history of a route."""

from collections.abc import Sequence
from typing import Any

import altair as alt

from routeproof.gates.facts import Row
from routeproof.reports import figures
from routeproof.reports.charts.figure import Figure, drawn, hover, rows_of
from routeproof.reports.past import SHORT, PastRun
from routeproof.reports.tables import Table


def quality(runs: Sequence[PastRun]) -> list[Figure]:
    """One chart per quality question that more than one run asked."""
    names = list(dict.fromkeys(name for run in runs for name in run.quality))
    made = []
    for index, name in enumerate(names):
        asked = [run for run in runs if name in run.quality]
        rows = [
            _row(run, *(_scaled(value, 100) for value in run.quality[name]))
            for run in asked
        ]
        if len(rows) > 1:
            title = figures.question(name)
            made.append(
                _course(
                    f"past-quality-{index}",
                    title[0].upper() + title[1:],
                    "Difference to the baseline in points, with its interval; below 0 "
                    "is worse. Lines join runs of the same workload.",
                    "points",
                    rows,
                )
            )
    return made


def gain(runs: Sequence[PastRun]) -> Figure | None:
    """Speed beside the baseline, run by run."""
    rows = [
        _row(run, run.gain, *(run.gain_interval or (None, None)))
        for run in runs
        if run.gain is not None
    ]
    if len(rows) < 2:
        return None
    says = (
        "The gain the proof asks for, as a ratio to the baseline of the same run; "
        "above 1 is faster."
    )
    return _course("past-gain", "Gain", says, "ratio to the baseline", rows)


def acceptance(runs: Sequence[PastRun]) -> Figure | None:
    """Acceptance rate, run by run."""
    rows = [
        _row(run, _scaled(run.acceptance_rate, 100), None, None)
        for run in runs
        if run.acceptance_rate is not None
    ]
    if len(rows) < 2:
        return None
    says = (
        "Share of drafted tokens that were accepted. A step at a new engine version "
        "or draft is a change of the pair; a slope is a drift of the traffic."
    )
    return _course("past-acceptance", "Acceptance", says, "percent", rows)


def _scaled(value: float | None, factor: float) -> float | None:
    return None if value is None else round(factor * value, 4)


def _row(
    run: PastRun, value: float | None, low: float | None, high: float | None
) -> Row:
    return {
        "run": run.run_id,
        "started": run.started_at,
        "verdict": run.decision.replace("_", " "),
        "workload": (run.workload or figures.UNKNOWN)[:SHORT],
        "value": value,
        "low": low,
        "high": high,
    }


_VERDICTS = {
    "adopt": "var(--passed)",
    "pilot": "var(--pilot)",
    "wait": "var(--inconclusive)",
    "avoid": "var(--failed)",
    "no verdict": "var(--not-measured)",
}


def _course(key: str, title: str, says: str, unit: str, rows: Sequence[Row]) -> Figure:
    seen = [name for name in _VERDICTS if any(row["verdict"] == name for row in rows)]
    colour = alt.Color("verdict:N").scale(
        domain=seen, range=[_VERDICTS[name] for name in seen]
    )
    base = alt.Chart(rows_of(rows)).encode(
        x=alt.X("started:T").title(None),
        tooltip=hover("run:N", "started:T", "verdict:N", "value:Q", "low:Q", "high:Q"),
    )
    value = alt.Y("value:Q").title(unit).scale(zero=unit == "percent")
    chart: Any = base.mark_line(color="var(--strong-line)", strokeWidth=1.5).encode(
        y=value, detail=alt.Detail("workload:N")
    )
    if any(row["low"] is not None and row["high"] is not None for row in rows):
        chart += base.mark_rule(strokeWidth=2, opacity=0.5).encode(
            y=alt.Y("low:Q"), y2=alt.Y2("high:Q"), color=colour
        )
    chart += base.mark_point(filled=True, size=90, opacity=1).encode(
        y=value, color=colour, shape=alt.Shape("verdict:N").scale(domain=seen)
    )
    return Figure(
        key=key,
        title=title,
        says=says,
        specification=drawn(chart, height=200),
        numbers=Table(
            head=("run", "started", "verdict", unit, "low", "high"),
            rows=tuple(
                (
                    str(row["run"]),
                    str(row["started"]),
                    str(row["verdict"]),
                    *(_number(row[name]) for name in ("value", "low", "high")),
                )
                for row in rows
            ),
            numeric=(False, False, False, True, True, True),
        ),
    )


def _number(value: object) -> str:
    return figures.plain(value) if isinstance(value, float) else ""
