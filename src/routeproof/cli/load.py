"""``routeproof load``: load one endpoint and measure it."""

import json
from pathlib import Path
from typing import Any

import click

from routeproof.errors import ConfigError


@click.command()
@click.argument("url")
@click.option("--model", help="Default: the first the endpoint serves.")
@click.option("--concurrency", multiple=True, type=int, help="Streams at once.")
@click.option("--request-rate", multiple=True, type=float, help="Requests a second.")
@click.option(
    "--arrivals",
    type=click.Choice(["constant", "poisson", "gamma"]),
    default="poisson",
    show_default=True,
)
@click.option("--burstiness", type=float, default=1.0, help="Of gamma arrivals.")
@click.option("--trace", help="Replay the arrivals of a trace file.")
@click.option("--requests", type=int, help="Requests per level. [default: 100]")
@click.option(
    "--duration", type=float, metavar="SECONDS", help="Instead of --requests."
)
@click.option("--max-tokens", type=int, default=64, show_default=True)
@click.option("--prompt", help="Sent with every request.")
@click.option("--cases", multiple=True, help="Case files, globs, or `golden`.")
@click.option("--warmup", type=int, default=4, show_default=True)
@click.option("--slo", multiple=True, metavar="METRIC=SECONDS", help="For goodput.")
@click.option("--shards", type=int, default=1, show_default=True, help="Processes.")
@click.option("--max-failure-share", type=float, default=1.0, show_default=True)
@click.option("--timeout", type=float, default=120.0, show_default=True)
@click.option("--no-self-test", is_flag=True, help="Trust the client blindly.")
@click.option("--api-key-env", metavar="NAME", help="Variable that holds the key.")
@click.option("--out", type=click.Path(path_type=Path), help="The run folder.")
@click.option("--json", "as_json", is_flag=True, help="One document on stdout.")
def command(url: str, **given: Any) -> None:
    """Load the endpoint at URL, closed (--concurrency) or open (--request-rate)."""
    from routeproof.cli.load_text import table
    from routeproof.cli.run_options import fresh_run, listening
    from routeproof.jobs.load import PROMPT, LoadOptions, load
    from routeproof.proof.workload import ArrivalSpec

    levels = given["concurrency"]
    if not levels and not given["request_rate"] and not given["trace"]:
        levels = (1,)
    count = None if given["duration"] else given["requests"] or 100
    arrivals = ArrivalSpec(
        concurrency=tuple(levels),
        request_rate=tuple(given["request_rate"]),
        arrivals=given["arrivals"],
        burstiness=given["burstiness"],
        trace=given["trace"],
        duration_s=given["duration"],
        requests=count,
    )
    options = LoadOptions(
        arrivals=arrivals,
        model=given["model"],
        prompt=given["prompt"] or PROMPT,
        cases=given["cases"],
        max_tokens=given["max_tokens"],
        warmup=given["warmup"],
        timeout_s=given["timeout"],
        max_failure_share=given["max_failure_share"],
        slo=_slo(given["slo"]),
        shards=given["shards"],
        is_tested=not given["no_self_test"],
        api_key_env=given["api_key_env"],
    )
    folder = given["out"] or fresh_run("load")
    with listening() as listener:
        found = load(url, folder, options, progress=listener.requests)
    if given["as_json"]:
        click.echo(json.dumps(found, indent=2))
        return
    click.echo(table(found))
    click.echo(f"run  {folder}")


def _slo(given: tuple[str, ...]) -> dict[str, float]:
    limits = {}
    for text in given:
        name, equals, value = text.partition("=")
        try:
            limits[name.strip()] = float(value)
        except ValueError:
            equals = ""
        if not equals:
            raise ConfigError(
                f"`{text}` is no limit",
                key="--slo",
                hint="write time_to_first_token_s=0.5",
            )
    return limits
