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
@click.option(
    "--lock",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write the pairing lock of a target and a draft that passed.",
)
@click.option("--json", "as_json", is_flag=True, help="One document on stdout.")
def command(run: Path, require: str, lock: Path | None, as_json: bool) -> None:
    """Judge RUN again from what is stored; the same folder gives the same bytes."""
    from routeproof.cli.run_options import show_verdict
    from routeproof.jobs.judge import judge
    from routeproof.jobs.qualifying.pairing import lock_pairing

    judgement = judge(run)
    if lock is not None:
        lock_pairing(judgement, lock)
        click.echo(f"the pair is locked in {lock}", err=True)
    show_verdict(judgement, run, as_json=as_json, require=require)
