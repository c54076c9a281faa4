"""``routeproof judge``: the verdict of a run folder again."""

from pathlib import Path

import click

from routeproof.cli.report_options import REQUIRE


@click.command()
@click.argument("run", type=click.Path(path_type=Path))
@click.option(
    "--require",
    type=REQUIRE,
    default="adopt",
    show_default=True,
    help="Exit with 1 below this verdict.",
)
@click.option("--json", "as_json", is_flag=True, help="One document on stdout.")
def command(run: Path, require: str, as_json: bool) -> None:
    """Judge RUN again from what is stored; the same folder gives the same bytes."""
    from routeproof.cli.run_options import show_verdict
    from routeproof.jobs.judge import judge

    show_verdict(judge(run), run, as_json=as_json, require=require)
