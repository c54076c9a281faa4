"""``routeproof load``: load one endpoint and measure it."""

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from routeproof.errors import ConfigError

if TYPE_CHECKING:
    from routeproof.jobs.load import Loaded, LoadOptions

INTERRUPTED = 130


@click.command()
@click.argument("url")
@click.option("--model", help="Default: the first the endpoint serves.")
@click.option(
    "--concurrency", multiple=True, type=click.IntRange(1), help="Streams at once."
)
@click.option("--request-rate", multiple=True, type=float, help="Requests a second.")
@click.option(
    "--arrivals",
    type=click.Choice(["constant", "poisson", "gamma"]),
    default="poisson",
    show_default=True,
)
@click.option("--burstiness", type=float, help="Of gamma arrivals. [default: 1]")
@click.option("--trace", help="Replay arrivals, and lengths, of a trace file.")
@click.option(
    "--requests", type=click.IntRange(1), help="Requests per level. [default: 100]"
)
@click.option(
    "--duration", type=float, metavar="SECONDS", help="Instead of --requests."
)
@click.option("--ramp", type=float, default=0.0, help="Seconds to begin all streams.")
@click.option(
    "--think", type=float, metavar="SECONDS", help="Conversations: mean think time."
)
@click.option("--max-tokens", type=click.IntRange(1), default=64, show_default=True)
@click.option("--prompt", help="Sent with every request.")
@click.option("--cases", multiple=True, help="Case files, globs, or `golden`.")
@click.option("--warmup", type=click.IntRange(0), default=4, show_default=True)
@click.option("--slo", multiple=True, metavar="METRIC=SECONDS", help="For goodput.")
@click.option(
    "--shards", type=click.IntRange(1), default=1, show_default=True, help="Processes."
)
@click.option("--on", metavar="ADDRESS", help="A Ray cluster: ray://host:10001.")
@click.option("--max-failure-share", type=float, default=1.0, show_default=True)
@click.option("--timeout", type=float, default=120.0, show_default=True)
@click.option("--seed", type=int, default=20261130, show_default=True)
@click.option("--no-self-test", is_flag=True, help="Trust the client blindly.")
@click.option("--api-key-env", metavar="NAME", help="Variable that holds the key.")
@click.option("--header", multiple=True, metavar="NAME=VALUE", help="Sent with all.")
@click.option("--insecure", is_flag=True, help="Accept any TLS certificate.")
@click.option(
    "--prepare", is_flag=True, help="Write a plan for `worker`, send nothing."
)
@click.option("--resume", is_flag=True, help="Go on with the run in --out.")
@click.option("--out", type=click.Path(path_type=Path), help="The run folder.")
@click.option("--json", "as_json", is_flag=True, help="One document on stdout.")
def command(url: str, **given: Any) -> None:
    """Load the endpoint at URL, closed (--concurrency) or open (--request-rate).

    The run folder gets every request and a page, report.html. Ctrl-C ends the run and
    shows what had finished.
    """
    use_one_thread_for_algebra()
    from routeproof.cli.listening import fresh_run, say, stages_shown
    from routeproof.jobs.load import load, prepare

    options = _options(given)
    if options.resume and given["out"] is None:
        raise ConfigError(
            "say which run to go on with", key="--resume", hint="--out RUN"
        )
    folder = given["out"] or fresh_run("load")
    if given["prepare"]:
        path, n = prepare(url, folder, options), options.shards
        click.echo(f"routeproof worker {path} --shard i/{n}    for i from 0 to {n - 1}")
        click.echo(f"routeproof worker {path} --collect {n}    when all have ended")
        return
    with stages_shown() as progress:
        found = load(url, folder, options, progress=progress, say=say)
    show(found, as_json=given["as_json"])


def use_one_thread_for_algebra() -> None:
    """Keep numpy's helper threads from starting; to be called before numpy is imported.

    They spin for a tenth of a second, on the processors of the streams. Not for
    commands that launch engines, which would inherit it.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def show(found: "Loaded", *, as_json: bool) -> None:
    """Print what was measured; exit with 130 when it was interrupted."""
    from routeproof.cli.load_text import table
    from routeproof.jobs.loading.summary import summary

    if as_json:
        click.echo(json.dumps(summary(found.run), indent=2))
    else:
        click.echo(table(found.run))
        click.echo(f"page    {found.page}")
    if found.is_interrupted:
        click.echo("interrupted: this is what had finished", err=True)
        sys.exit(INTERRUPTED)


def _options(given: dict[str, Any]) -> "LoadOptions":
    from routeproof.jobs.load import LoadOptions

    return LoadOptions(
        arrivals=_arrivals(given),
        model=given["model"],
        prompt=given["prompt"],
        cases=given["cases"],
        max_tokens=given["max_tokens"],
        warmup=given["warmup"],
        seed=given["seed"],
        timeout_s=_positive("--timeout", given["timeout"]),
        max_failure_share=_share(given["max_failure_share"]),
        slo={
            name: _number("--slo", name, value)
            for name, value in _pairs("--slo", given["slo"])
        },
        shards=given["shards"],
        on=_cluster(given["on"]),
        is_tested=not given["no_self_test"],
        api_key_env=given["api_key_env"],
        headers=dict(_pairs("--header", given["header"])),
        verify_tls=not given["insecure"],
        resume=given["resume"],
    )


def _arrivals(given: dict[str, Any]) -> Any:
    from routeproof.proof.workload import ArrivalSpec

    levels = given["concurrency"]
    is_open = bool(given["request_rate"] or given["trace"])
    if levels and given["trace"]:
        raise ConfigError("a trace has its own load", key="--concurrency")
    if given["prompt"] is not None and given["cases"]:
        raise ConfigError("the cases have prompts already", key="--prompt")
    burstiness = given["burstiness"]
    if burstiness is not None and given["arrivals"] != "gamma":
        raise ConfigError(
            f"{given['arrivals']} arrivals have no burstiness to choose",
            key="--burstiness",
            hint="add --arrivals gamma",
        )
    if not levels and not is_open:
        levels = (1,)
    duration_s = given["duration"]
    if duration_s is not None:
        _positive("--duration", duration_s)
    for rate in given["request_rate"]:
        _positive("--request-rate", rate)
    count = given["requests"]
    if count is None and duration_s is None and not given["trace"]:
        count = 100
    return ArrivalSpec(
        concurrency=tuple(levels),
        request_rate=tuple(given["request_rate"]),
        arrivals=given["arrivals"],
        burstiness=1.0 if burstiness is None else burstiness,
        ramp_s=given["ramp"],
        think_s=given["think"],
        trace=given["trace"],
        duration_s=duration_s,
        requests=count,
    )


def _cluster(address: str | None) -> str | None:
    """The address as Ray wants it; ``ray`` and ``auto`` are the cluster of this one."""
    if address is None:
        return None
    if address in ("ray", "auto"):
        return "auto"
    if address.startswith("ray://") or ":" in address:
        return address
    raise ConfigError(
        f"`{address}` is no Ray cluster", key="--on", hint="ray://host:10001, or ray"
    )


def _pairs(option: str, given: tuple[str, ...]) -> list[tuple[str, str]]:
    pairs = []
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            example = (
                "time_to_first_token_s=0.5" if option == "--slo" else "X-Team=eval"
            )
            raise ConfigError(
                f"`{text}` has no value", key=option, hint=f"write {example}"
            )
        pairs.append((name.strip(), value.strip()))
    return pairs


def _number(option: str, name: str, text: str) -> float:
    try:
        return _positive(option, float(text))
    except ValueError:
        raise ConfigError(f"`{text}` of {name} is no number", key=option) from None


def _positive(option: str, value: float) -> float:
    if not 0 < value < float("inf"):
        raise ConfigError(f"must be positive and finite, got {value:g}", key=option)
    return value


def _share(value: float) -> float:
    if not 0 <= value <= 1:
        raise ConfigError(
            f"must lie in 0 to 1, got {value:g}", key="--max-failure-share"
        )
    return value
