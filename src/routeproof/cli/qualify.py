"""``routeproof qualify``: run a proof and give the verdict."""

from pathlib import Path
from typing import Any

import click

from routeproof.cli.durations import duration
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
@click.option(
    "--until-decided",
    is_flag=True,
    help="Draw cases at random and stop as soon as every required question is settled.",
)
@click.option(
    "--soak",
    type=duration,
    metavar="30m",
    help="Stay at the top load for so long on each arm.",
)
@click.option(
    "--reuse-baseline",
    type=click.Path(path_type=Path),
    metavar="RUN",
    help="Take over the baseline's answers (never its times) of an earlier run.",
)
@click.option("--keep-going", is_flag=True, help="Measure speed though quality failed.")
@click.option("--no-control", is_flag=True, help="Leave out the baseline's own A/A.")
@click.option(
    "--no-probes",
    is_flag=True,
    help="Ask both routes only what the workload asks: no small questions (some 400), "
    "no feature it does not use.",
)
@click.option(
    "--lock",
    is_flag=True,
    help="Write routeproof.lock beside PROOF if its target and draft pass.",
)
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
    lock: bool,
    require: str,
    as_json: bool,
    **given: Any,
) -> None:
    """Run PROOF: golden set, single stream, load, soak; then judge it."""
    from routeproof.cli.run_options import (
        fresh_run,
        listening,
        lock_pair,
        show_verdict,
    )
    from routeproof.jobs.qualify import Options, qualify

    if resume is not None and out is not None:
        raise click.UsageError("--resume names the run folder; leave --out out")
    folder = resume or out or fresh_run(proof.stem)
    options = Options(
        keep_going=given["keep_going"],
        has_control=not given["no_control"],
        resume=resume is not None,
        until_decided=given["until_decided"],
        soak_s=given["soak"],
        reuse_baseline=given["reuse_baseline"],
        is_relocked=lock,
        has_probes=not given["no_probes"],
        has_features=not given["no_probes"],
    )
    with listening() as listener:
        judgement = qualify(proof, folder, options=options, listener=listener)
    lock_pair(judgement, folder, proof.parent if lock else None)
    show_verdict(judgement, folder, as_json=as_json, require=require)
