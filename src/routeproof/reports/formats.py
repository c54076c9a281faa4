"""The table of report formats: name, file, how it is made."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from routeproof.reports import (
    csv_report,
    json_report,
    junit,
    markdown,
    release_sheet,
    terminal,
)
from routeproof.reports.judgement import Judgement
from routeproof.reports.junit import Inconclusive
from routeproof.verdict import Decision


@dataclass(frozen=True, slots=True)
class Choices:
    """What a reader may choose about a report.

    Attributes:
        files: Raw files of the run, relative to the report, to link to.
        inconclusive: How JUnit shows a question without enough evidence.
        require: The verdict that JUnit's test case asks for.
        address: Where the HTML report can be seen, for the link in Markdown.
        with_charts: Whether the HTML report draws charts beside its tables.
    """

    files: Sequence[str] = ()
    inconclusive: Inconclusive = "failure"
    require: Decision = Decision.ADOPT
    address: str | None = None
    with_charts: bool = True


@dataclass(frozen=True, slots=True)
class Format:
    """A row of the table.

    Attributes:
        file_name: Where it is written inside the run folder.
        what: One line for ``--help`` and the docs.
    """

    name: str
    file_name: str
    what: str
    of: Callable[[Judgement, Choices], str]


def _html(judgement: Judgement, choices: Choices) -> str:
    from routeproof.reports import html  # Altair takes most of a second to import

    return html.render(judgement, files=choices.files, with_charts=choices.with_charts)


def _markdown(judgement: Judgement, choices: Choices) -> str:
    return markdown.render(judgement, report=choices.address)


def _junit(judgement: Judgement, choices: Choices) -> str:
    return junit.render(
        judgement, inconclusive=choices.inconclusive, require=choices.require
    )


def _json(judgement: Judgement, choices: Choices) -> str:
    return json_report.render(judgement)


def _csv(judgement: Judgement, choices: Choices) -> str:
    return csv_report.render(judgement)


def _sheet(judgement: Judgement, choices: Choices) -> str:
    return release_sheet.render(judgement)


def _text(judgement: Judgement, choices: Choices) -> str:
    return terminal.render(judgement)


FORMATS: dict[str, Format] = {
    each.name: each
    for each in (
        Format("html", "report.html", "one page that opens offline", _html),
        Format("text", "report.txt", "the block of text that ends a run", _text),
        Format("markdown", "report.md", "a comment for a pull request", _markdown),
        Format("junit", "junit.xml", "test results for a CI server", _junit),
        Format("json", "report.json", "everything, with a published schema", _json),
        Format("csv", "questions.csv", "one row per question", _csv),
        Format("sheet", "release_sheet.md", "the record of a release", _sheet),
    )
}
