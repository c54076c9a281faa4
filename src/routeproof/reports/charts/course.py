"""Acceptance by position and class, and the course of the run."""

from collections.abc import Mapping, Sequence

import altair as alt

from routeproof.gates.facts import Row, TimeBin
from routeproof.reports import figures
from routeproof.reports.charts.figure import Figure, arm_colour, drawn, hover, rows_of
from routeproof.reports.tables import ARMS, Table, of_rows

_KINDS = ("marginal", "conditional")
_OUTCOME_GROUPS = {"completed": "completed", "truncated": "truncated"}
_GROUPS = {
    "completed": "var(--fill)",
    "truncated": "var(--inconclusive)",
    "refused or empty": "var(--violet)",
    "failed": "var(--failed)",
}


def by_position(tables: Mapping[str, Sequence[Row]]) -> Figure | None:
    """Acceptance at each drafted position, marginal and conditional."""
    rows = tables.get("by_position", ())
    kinds = [kind for kind in _KINDS if any(row.get(kind) is not None for row in rows)]
    if not kinds:
        return None
    points: list[Row] = [
        {"position": row.get("position"), "kind": kind, "rate": row.get(kind)}
        for row in rows
        for kind in kinds
    ]
    chart = (
        alt.Chart(rows_of(points))
        .mark_line(strokeWidth=2, point={"size": 55, "filled": True})
        .encode(
            x=alt.X("position:O").title("drafted position").axis(labelAngle=0),
            y=alt.Y("rate:Q").title(None).axis(format="%").scale(domain=[0, 1]),
            color=alt.Color("kind:N")
            .scale(
                domain=kinds, range=["var(--candidate)", "var(--violet)"][: len(kinds)]
            )
            .legend(symbolType="stroke"),
            strokeDash=alt.StrokeDash("kind:N")
            .scale(domain=kinds, range=[[1, 0], [5, 3]][: len(kinds)])
            .legend(symbolType="stroke"),
            tooltip=hover("kind:N", "position:O", alt.Tooltip("rate:Q").format(".1%")),
        )
    )
    return Figure(
        key="acceptance-by-position",
        title="Acceptance by position",
        says="Marginal: share of verify passes that accepted the token at this place. "
        "Conditional: the same among passes that accepted all before it.",
        specification=drawn(chart, height=210),
        numbers=of_rows(rows),
    )


def by_class(tables: Mapping[str, Sequence[Row]]) -> Figure | None:
    """Acceptance rate of each class of cases."""
    rows = tables.get("by_class", ())
    known: list[Row] = [
        {**row, "class": str(row.get("class")).replace("_", " ")}
        for row in rows
        if row.get("acceptance_rate") is not None
    ]
    if not known:
        return None
    chart = (
        alt.Chart(rows_of(known))
        .mark_bar(size=16, color="var(--candidate)")
        .encode(
            x=alt.X("acceptance_rate:Q")
            .title("acceptance rate")
            .axis(format="%")
            .scale(domain=[0, 1]),
            y=alt.Y("class:N").title(None).sort("-x").axis(ticks=False, domain=False),
            tooltip=hover("class:N", alt.Tooltip("acceptance_rate:Q").format(".1%")),
        )
    )
    return Figure(
        key="acceptance-by-class",
        title="Acceptance by class",
        says="Share of drafted tokens that were accepted, by class of case. One odd "
        "class points at the tokenizer or the draft length first.",
        specification=drawn(chart, height=28 * len(known)),
        numbers=of_rows(rows),
    )


def timeline(bins: Sequence[TimeBin]) -> list[Figure]:
    """Requests over the run by how they ended, arm by arm, and the median latency."""
    end = max((each.end_s for each in bins), default=0.0)
    made = [
        _outcome_figure(arm, [each for each in bins if each.arm == arm], end)
        for arm in ARMS
        if any(each.arm == arm for each in bins)
    ]
    latency = _latency_course([each for each in bins if each.median_latency_s], end)
    return [*made, latency] if latency else made


def _group(outcome: str) -> str:
    if outcome in {"empty", "refused"}:
        return "refused or empty"
    return _OUTCOME_GROUPS.get(outcome, "failed")


def _outcome_figure(arm: str, bins: Sequence[TimeBin], end: float) -> Figure:
    rows: list[Row] = [
        {
            "from": each.start_s,
            "to": each.end_s,
            "outcome": outcome,
            "ended": _group(outcome),
            "requests": count,
            "order": list(_GROUPS).index(_group(outcome)),
            "stage": each.phase,
        }
        for each in bins
        for outcome, count in sorted(each.outcomes.items())
    ]
    seen = [group for group in _GROUPS if any(row["ended"] == group for row in rows)]
    chart = (
        alt.Chart(rows_of(rows))
        .transform_stack(
            stack="requests",
            as_=["floor", "top"],
            groupby=["from"],
            sort=[alt.SortField("order")],
        )
        .mark_rect()
        .encode(
            x=alt.X("from:Q").title("seconds since the start").scale(domain=[0, end]),
            x2=alt.X2("to:Q"),
            y=alt.Y("floor:Q").title("requests").axis(tickCount=3),
            y2=alt.Y2("top:Q"),
            color=alt.Color("ended:N").scale(
                domain=seen, range=[_GROUPS[group] for group in seen]
            ),
            tooltip=hover("from:Q", "to:Q", "stage:N", "outcome:N", "requests:Q"),
        )
    )
    totals: dict[str, int] = {}
    for each in bins:
        for outcome, count in each.outcomes.items():
            totals[outcome] = totals.get(outcome, 0) + count
    return Figure(
        key=f"timeline-{arm}",
        title=f"Requests over time, {arm}",
        says=f"Requests of the {arm} by the time they ended and how they ended.",
        specification=drawn(chart, height=110),
        numbers=Table(
            head=("outcome", "requests"),
            rows=tuple((name, f"{count:,}") for name, count in sorted(totals.items())),
            numeric=(False, True),
        ),
    )


def _latency_course(bins: Sequence[TimeBin], end: float) -> Figure | None:
    if not bins:
        return None
    rows: list[Row] = [
        {
            "arm": each.arm,
            "at": (each.start_s + each.end_s) / 2,
            "latency": each.median_latency_s,
            "stage": each.phase,
        }
        for each in bins
    ]
    chart = (
        alt.Chart(rows_of(rows))
        .mark_point(filled=True, size=22, opacity=0.9)
        .encode(
            x=alt.X("at:Q").title("seconds since the start").scale(domain=[0, end]),
            y=alt.Y("latency:Q").title("median latency, s"),
            color=arm_colour([each.arm for each in bins]),
            tooltip=hover("arm:N", "stage:N", "at:Q", "latency:Q"),
        )
    )
    return Figure(
        key="timeline-latency",
        title="Latency over time",
        says="Median request latency of each slice of time. A slope inside one stage "
        "is a drift of the engine or of the machine.",
        specification=drawn(chart, height=150),
        numbers=Table(
            head=("arm", "stage", "from", "to", "median latency"),
            rows=tuple(
                (
                    each.arm,
                    each.phase,
                    figures.seconds(each.start_s),
                    figures.seconds(each.end_s),
                    figures.number(each.median_latency_s, "s"),
                )
                for each in bins
            ),
            numeric=(False, False, True, True, True),
        ),
    )
