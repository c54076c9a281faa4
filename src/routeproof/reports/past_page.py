"""The history of a route as one HTML file that opens without a network."""

from collections.abc import Sequence

from routeproof.reports import plain_page
from routeproof.reports.charts import past as charts
from routeproof.reports.past import PastRun, table
from routeproof.reports.tables import Titled


def render(runs: Sequence[PastRun], *, title: str) -> str:
    """One page: a chart for each quality question, gain and acceptance; then all runs.

    Args:
        runs: Oldest first.
        title: What the runs have in common, for the heading.
    """
    single = (charts.gain(runs), charts.acceptance(runs))
    drawn = [*charts.quality(runs), *(each for each in single if each is not None)]
    return plain_page.render(
        title,
        drawn=drawn,
        tables=[Titled("All runs", table(runs))],
        about=f"{len(runs)} runs",
        lead="" if drawn else "Charts need two runs that measured the same thing.",
    )
