"""``routeproof compare``: a run against an earlier one of the same proof."""

import sys
from pathlib import Path

import click

EXIT_CODES = {"held": 0, "open": 0, "worse": 1, "not_comparable": 3}


@click.command()
@click.argument("then", type=click.Path(path_type=Path))
@click.argument("now", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="One document on stdout.")
def command(then: Path, now: Path, as_json: bool) -> None:
    """Compare the candidate of run NOW with the candidate of run THEN.

    Exit code 0: no loss is shown; 1: it got worse; 3: the runs do not compare.
    """
    import msgspec

    from routeproof.jobs.compare import compare
    from routeproof.reports.comparison import render

    found = compare(then, now)
    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode(found), indent=2))
    else:
        click.echo(render(found), nl=False)
    sys.exit(EXIT_CODES[found.status])
