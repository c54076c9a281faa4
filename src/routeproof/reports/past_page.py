"""The history of a route as one HTML file that opens without a network."""

from collections.abc import Sequence

from routeproof.reports.charts import past as charts
from routeproof.reports.past import PastRun, table
from routeproof.reports.self_contained import page


def render(runs: Sequence[PastRun], *, title: str) -> str:
    """One page: a chart for each quality question, gain and acceptance; then all runs.

    Args:
        runs: Oldest first.
        title: What the runs have in common, for the heading.
    """
    single = (charts.gain(runs), charts.acceptance(runs))
    drawn = [*charts.quality(runs), *(each for each in single if each is not None)]
    context = {"runs": table(runs), "count": len(runs), "title": title, "drawn": drawn}
    return page("history.html.j2", context, drawn=drawn)
