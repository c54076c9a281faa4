"""The forest plot of quality, and the lengths of prompts and answers."""

from collections.abc import Sequence
from typing import Any

import altair as alt

from routeproof.gates.facts import LengthRow, Row
from routeproof.gates.result import Check, Status
from routeproof.reports import figures
from routeproof.reports.charts.figure import Figure, arm_colour, drawn, hover, rows_of
from routeproof.reports.tables import Table

MAX_ROWS = 40

_STATUSES = (
    Status.PASSED,
    Status.FAILED,
    Status.INCONCLUSIVE,
    Status.NOT_MEASURED,
)
_WORST_FIRST = (
    Status.FAILED,
    Status.INCONCLUSIVE,
    Status.NOT_MEASURED,
    Status.PASSED,
)
_HOVER = (
    "question:N",
    "difference:Q",
    "low:Q",
    "high:Q",
    "tolerance:Q",
    "evidence:N",
    "status:N",
)
_SHAPES = ("circle", "cross", "diamond", "square")
_LENGTH_TITLES = {
    "prompt_tokens": "Prompt length",
    "output_tokens": "Answer length",
    "output_characters": "Answer length in characters",
}


def forests(checks: Sequence[Check]) -> list[Figure]:
    """One line per quality question: estimate, interval, tolerance.

    Required questions and screened slices are drawn apart, so that the wide interval
    of a small slice does not squeeze what decides.
    """
    compared = [check for check in checks if _is_comparison(check)]
    halves = (
        ("forest", "Required questions", [c for c in compared if c.required]),
        ("forest-screened", "Screened slices", [c for c in compared if not c.required]),
    )
    return [_forest(key, title, chosen) for key, title, chosen in halves if chosen]


def _forest(key: str, title: str, checks: Sequence[Check]) -> Figure:
    """At most ``MAX_ROWS`` are drawn, failed ones first; the table has all."""
    ranked = sorted(checks, key=lambda c: _WORST_FIRST.index(c.status))
    kept = {check.name for check in ranked[:MAX_ROWS]}
    rows = [_forest_row(check) for check in checks if check.name in kept]
    return Figure(
        key=key,
        title=title,
        says="Difference in points, candidate minus baseline, with its interval. Left "
        "of zero is worse. The upright bar is the tolerance: a question passes when "
        "its whole interval lies to the right of it; with a tolerance of zero, when "
        "there are no more new failures than the control shows.",
        specification=drawn(_forest_chart(rows), height=30 * len(rows)),
        numbers=_forest_table(checks),
    )


def _is_comparison(check: Check) -> bool:
    is_share = check.unit in {"", "1", "share", "rate", "points"}
    return check.kind == "difference" and is_share and check.estimate is not None


def _forest_row(check: Check) -> Row:
    interval = check.interval
    low = None if interval is None else interval.low
    high = None if interval is None else interval.high
    return {
        "question": figures.question(check.name),
        "difference": _points(check.estimate),
        "low": _points(low),
        "high": _points(high),
        "tolerance": None if check.limit is None else -_points(abs(check.limit)),
        "status": figures.STATUS_WORD[check.status].lower(),
        "evidence": figures.amount(check),
    }


def _points(share: float | None) -> Any:
    return None if share is None else round(100 * share, 3)


def _forest_chart(rows: Sequence[Row]) -> Any:
    order = [str(row["question"]) for row in rows]
    words = [figures.STATUS_WORD[status].lower() for status in _STATUSES]
    used = [i for i, word in enumerate(words) if any(r["status"] == word for r in rows)]
    names = [words[i] for i in used]
    colours = [f"var(--{_STATUSES[i].value.replace('_', '-')})" for i in used]
    shapes = [_SHAPES[i] for i in used]
    colour = alt.Color("status:N").scale(domain=names, range=colours)
    base = alt.Chart(rows_of(rows)).encode(
        y=alt.Y("question:N").sort(order).title(None).axis(ticks=False, domain=False),
        tooltip=hover(*_HOVER),
    )
    title = "points (left: worse)"
    zero = alt.Chart(alt.InlineData(values=[{"zero": 0}])).mark_rule(
        color="var(--strong-line)", strokeWidth=1.5
    )
    return (
        zero.encode(x=alt.X("zero:Q").title(title))
        + base.mark_rule(strokeWidth=2.5, opacity=0.75).encode(
            x=alt.X("low:Q"), x2=alt.X2("high:Q"), color=colour
        )
        + base.mark_tick(color="var(--ink)", thickness=2.5, size=20).encode(
            x=alt.X("tolerance:Q")
        )
        + base.mark_point(filled=True, size=110, opacity=1).encode(
            x=alt.X("difference:Q"),
            color=colour,
            shape=alt.Shape("status:N").scale(domain=names, range=shapes),
        )
    )


def _forest_table(checks: Sequence[Check]) -> Table:
    return Table(
        head=("question", "baseline", "candidate", "difference", "interval",
              "limit", "evidence", "status"),
        rows=tuple(
            (
                figures.question(check.name),
                figures.number(check.baseline, "share"),
                figures.number(check.candidate, "share"),
                figures.estimate(check),
                figures.bounds(check.interval, check.kind, check.unit),
                figures.limit(check),
                figures.amount(check),
                figures.STATUS_WORD[check.status].lower(),
            )
            for check in checks
        ),
        numeric=(False, True, True, True, True, True, True, False),
    )  # fmt: skip


def lengths(rows: Sequence[LengthRow]) -> list[Figure]:
    """A histogram of both arms for each kind of length that was counted.

    Characters stand in for tokens only where the server counts none.
    """
    if any(row.what == "output_tokens" and row.counts for row in rows):
        rows = [row for row in rows if row.what != "output_characters"]
    made = []
    for what, title in _LENGTH_TITLES.items():
        chosen = [row for row in rows if row.what == what and row.counts]
        if chosen:
            made.append(_length_figure(what, title, chosen))
    return made


def _length_figure(what: str, title: str, rows: Sequence[LengthRow]) -> Figure:
    bins: list[Row] = [
        {"arm": row.arm, "from": low, "to": high, "requests": count}
        for row in rows
        for low, high, count in zip(row.edges, row.edges[1:], row.counts, strict=False)
    ]
    unit = "characters" if what == "output_characters" else "tokens"
    chart = (
        alt.Chart(rows_of(bins))
        .mark_line(interpolate="step-after", strokeWidth=2)
        .encode(
            x=alt.X("from:Q").title(unit),
            y=alt.Y("requests:Q"),
            color=arm_colour([row.arm for row in rows]),
            tooltip=hover("arm:N", "from:Q", "to:Q", "requests:Q"),
        )
    )
    return Figure(
        key=f"lengths-{what}",
        title=title,
        says=f"{title} of both arms: requests by {unit}. Curves that lie apart mean "
        "that speeds compare unequal work.",
        specification=drawn(chart, height=180),
        numbers=Table(
            head=("arm", "requests", "mean"),
            rows=tuple(
                (row.arm, f"{row.n:,}", figures.number(row.mean, unit)) for row in rows
            ),
            numeric=(False, True, True),
        ),
    )
