"""``routeproof qualify``: run a proof and give the verdict."""

from pathlib import Path

import click

from routeproof.cli.report_options import REQUIRE


@click.command()
@click.argument("proof", type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path), help="The run folder.")
@click.option(
    "--resume",
    type=click.Path(path_type=Path),
    metavar="RUN",
    help="Go on with an interrupted run; only what is missing is sent.",
)
@click.option("--keep-going", is_flag=True, help="Measure speed though quality failed.")
@click.option("--no-control", is_flag=True, help="Leave out the baseline's own A/A.")
@click.option(
    "--require",
    type=REQUIRE,
    default="adopt",
    show_default=True,
    help="Exit with 1 below this verdict.",
)
@click.option("--json", "as_json", is_flag=True, help="One document on stdout.")
def command(
    proof: Path,
    out: Path | None,
    resume: Path | None,
    keep_going: bool,
    no_control: bool,
    require: str,
    as_json: bool,
) -> None:
    """Run PROOF: golden set, single stream, load; then judge it."""
    from routeproof.cli.run_options import fresh_run, listening, show_verdict
    from routeproof.jobs.qualify import Options, qualify

    folder = resume or out or fresh_run(proof.stem)
    options = Options(
        keep_going=keep_going,
        has_control=not no_control,
        resume=resume is not None,
    )
    with listening() as listener:
        judgement = qualify(proof, folder, options=options, listener=listener)
    show_verdict(judgement, folder, as_json=as_json, require=require)
