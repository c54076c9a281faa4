"""``routeproof report``: the reports of a run folder."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import click

from routeproof.cli.report_options import REQUIRE


@click.command()
@click.argument("run", type=click.Path(path_type=Path), required=False)
@click.option(
    "-f",
    "--format",
    "formats",
    multiple=True,
    metavar="NAME",
    help="html, text, markdown, junit, json, csv, sheet or all; may be repeated. "
    "[default: html]",
)
@click.option(
    "-o",
    "--out",
    metavar="FOLDER",
    help="Where to write; - prints one format. [default: the run folder]",
)
@click.option(
    "--inconclusive",
    type=click.Choice(["failure", "skipped"]),
    default="failure",
    show_default=True,
    help="How JUnit shows a question without enough evidence.",
)
@click.option("--require", type=REQUIRE, help="Also exit with 1 below this verdict.")
@click.option("--link", metavar="URL", help="Address of the page, for Markdown.")
@click.option("--no-charts", is_flag=True, help="A page of tables, a tenth as big.")
@click.option("--schema", is_flag=True, help="Print the JSON Schema of the JSON.")
def command(
    run: Path | None,
    formats: tuple[str, ...],
    out: str | None,
    inconclusive: str,
    require: str | None,
    link: str | None,
    no_charts: bool,
    schema: bool,
) -> None:
    """Write the reports of a run folder: a page, Markdown, JUnit, JSON, CSV."""
    from routeproof.cli.report_options import choices_of, finish
    from routeproof.jobs.report import load_judgement, named, report
    from routeproof.reports.formats import FORMATS
    from routeproof.reports.json_report import json_schema

    if schema:
        click.echo(json.dumps(json_schema(), indent=2, sort_keys=True))
        return
    if run is None:
        raise click.UsageError("Missing argument 'RUN'.")
    names = tuple(FORMATS) if "all" in formats else formats or ("html",)
    choices = replace(
        choices_of(inconclusive=inconclusive, require=require, link=link),
        with_charts=not no_charts,
    )
    if out == "-":
        if len(names) != 1:
            raise click.UsageError("-o - prints one format; name it with -f.")
        sys.stdout.write(named(names[0]).of(load_judgement(run), choices))
    else:
        folder = None if out is None else Path(out)
        for path in report(run, formats=names, out=folder, choices=choices):
            click.echo(str(path))
    if require is not None:
        finish(load_judgement(run), require)
