"""A page of charts and tables that is not the report of one run."""

from collections.abc import Sequence

from routeproof.reports.charts.figure import Figure
from routeproof.reports.self_contained import page
from routeproof.reports.tables import Titled


def render(
    title: str,
    *,
    drawn: Sequence[Figure],
    tables: Sequence[Titled],
    about: str = "",
    lead: str = "",
) -> str:
    """One self-contained page: a heading, charts, tables.

    Args:
        title: The heading.
        drawn: Figures, each with its numbers.
        tables: Tables below them.
        about: A few words for the corner of the page.
        lead: A sentence under the heading.
    """
    context = {
        "title": title,
        "about": about,
        "lead": lead,
        "drawn": drawn,
        "tables": tables,
    }
    return page("plain.html.j2", context, drawn=drawn)
