"""A load run as one HTML file that opens without a network."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from routeproof.gates.evidence import Speed
from routeproof.gates.facts import LatencyRow, LoadRow, TimeBin
from routeproof.records.manifest import ClientHealth, Threshold
from routeproof.reports import figures, plain_page
from routeproof.reports.charts import load_run as charts
from routeproof.reports.charts.course import timeline
from routeproof.reports.charts.figure import Figure
from routeproof.reports.tables import Table, Titled, text_table


@dataclass(frozen=True, slots=True)
class InFlight:
    """Requests under way at one level.

    Attributes:
        course: (seconds on the run's clock, how many from then on).
    """

    phase: str
    level: str
    course: tuple[tuple[float, int], ...]


@dataclass(frozen=True, slots=True)
class LoadRun:
    """All that the page shows.

    Attributes:
        facts: What was sent to whom, for the table at the end.
        outcomes: By level, how many ended in which way.
        health: The client on itself; ``None`` when it was not recorded.
    """

    title: str
    about: str
    facts: Mapping[str, str]
    outcomes: Mapping[str, Mapping[str, int]]
    speed: Speed
    bins: Sequence[TimeBin]
    in_flight: Sequence[InFlight]
    health: ClientHealth | None


def render(run: LoadRun) -> str:
    """One page about a load run.

    Whether it is valid, rates with and without ramps, percentiles with their
    intervals, distributions, the time line with the steady window, the client itself.
    """
    drawn = [
        *charts.distributions(run.speed.latencies),
        *charts.under_way(
            [(each.level, each.course) for each in run.in_flight],
            {row.level: row.window_s for row in run.speed.loads},
        ),
        *_course(run.bins),
    ]
    tables = [
        Titled("The client", _checks(run.health)),
        Titled("Rates", _rates(run.speed.loads)),
        Titled("How requests ended", _outcomes(run.outcomes)),
        Titled("Percentiles", _percentiles(run.speed.latencies)),
        *_notes(run.health),
        Titled("What was run", text_table(("", ""), tuple(run.facts.items()))),
    ]
    return plain_page.render(
        run.title, drawn=drawn, tables=tables, about=run.about, lead=_lead(run.health)
    )


def _course(bins: Sequence[TimeBin]) -> list[Figure]:
    """The time line of a run that has one arm, which needs no name."""
    says = "Requests by the time they ended, and how they ended."
    return [
        replace(figure, title="Requests over time", says=says)
        for figure in timeline(bins)[:1]
    ]


def _lead(health: ClientHealth | None) -> str:
    if health is None:
        return "NOT VALID: the client's health was not recorded."
    if health.valid:
        return "Valid: the load client kept up, these are the engine's numbers."
    return f"NOT VALID: {'; '.join(health.reasons)}."


def _notes(health: ClientHealth | None) -> list[Titled]:
    if health is None or not health.notes:
        return []
    rows = tuple((note,) for note in health.notes)
    return [Titled("Worth knowing", text_table(("note",), rows))]


def _checks(health: ClientHealth | None) -> Table:
    checks = () if health is None else health.checks
    return Table(
        head=("check", "measured", "believed", "state"),
        rows=tuple(
            (
                check.name,
                figures.number(check.value, _unit(check.name)),
                f"{'at least' if check.at_least else 'at most'} "
                + figures.number(check.limit, _unit(check.name)),
                _state(check),
            )
            for check in checks
        ),
        numeric=(False, True, True, False),
    )


def _state(check: Threshold) -> str:
    if check.ok is None:
        return "not judged"
    return "kept" if check.ok else "BROKEN"


def _unit(name: str) -> str:
    return "s" if name.endswith("_s") else "share" if name.endswith("_share") else ""


def _rates(rows: Sequence[LoadRow]) -> Table:
    return Table(
        head=(
            "level",
            "requests/s",
            "with ramps",
            "output tokens/s",
            "goodput/s",
            "inside SLOs",
            "concurrency",
            "steady window",
        ),  # fmt: skip
        rows=tuple(
            (
                row.level,
                figures.number(row.requests_per_s),
                figures.number(row.whole_requests_per_s),
                figures.number(row.output_tokens_per_s),
                figures.number(row.goodput_per_s),
                figures.number(row.slo_share, "share"),
                figures.number(row.achieved_concurrency),
                _window(row.window_s),
            )
            for row in rows
        ),
        numeric=(False, True, True, True, True, True, True, True),
    )


def _window(window_s: tuple[float, float] | None) -> str:
    if window_s is None:
        return figures.UNKNOWN
    return f"{window_s[0]:.2f} to {window_s[1]:.2f} s"


def _outcomes(levels: Mapping[str, Mapping[str, int]]) -> Table:
    return Table(
        head=("level", "outcome", "requests"),
        rows=tuple(
            (level, name.replace("_", " "), f"{count:,}")
            for level, counts in levels.items()
            for name, count in counts.items()
        ),
        numeric=(False, False, True),
    )


def _percentiles(rows: Sequence[LatencyRow]) -> Table:
    return Table(
        head=("level", "metric", "percentile", "value", "interval", "n", "failed"),
        rows=tuple(
            (
                row.level,
                row.metric.replace("_", " "),
                f"p{100 * p.q:g}",
                figures.percentile(p, row.unit),
                figures.percentile_ends(p, row.unit),
                f"{row.n:,}",
                f"{row.failed:,}",
            )
            for row in rows
            for p in row.percentiles
        ),
        numeric=(False, False, False, True, True, True, True),
    )
