"""``routeproof plan``: what the tolerances of a proof need and cost."""

from pathlib import Path

import click
import msgspec

from routeproof.cli.durations import duration
from routeproof.cli.plan_text import plan_lines


@click.command()
@click.argument("proof", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--like",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Take the cost of a request from this run folder.",
)
@click.option("--answer-tokens", type=click.FloatRange(min=1), help="Per answer.")
@click.option("--tokens-per-s", type=click.FloatRange(min=0.1), help="Of one stream.")
@click.option("--until-decided", is_flag=True, help="As `qualify` with this option.")
@click.option("--soak", type=duration, metavar="30m", help="As `qualify` does.")
@click.option("--json", "as_json", is_flag=True, help="One document on stdout.")
def command(
    proof: Path,
    like: Path | None,
    answer_tokens: float | None,
    tokens_per_s: float | None,
    until_decided: bool,
    soak: float | None,
    as_json: bool,
) -> None:
    """Say how many cases the tolerances of PROOF need, and what they cost.

    Nothing is sent. Without --like, the length and speed of answers are assumed.
    """
    from routeproof.jobs.plan import plan
    from routeproof.jobs.qualifying.run_options import Options

    planned = plan(
        proof,
        like=like,
        answer_tokens=answer_tokens,
        tokens_per_s=tokens_per_s,
        options=Options(until_decided=until_decided, soak_s=soak),
    )
    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode(planned), indent=2))
        return
    for line in plan_lines(planned):
        click.echo(line)
