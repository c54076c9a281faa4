"""``routeproof tune``: search the draft length that serves best."""

import re
from pathlib import Path
from typing import Any

import click
import msgspec

from routeproof.cli.durations import duration
from routeproof.errors import ConfigError


@click.command()
@click.argument("proof", type=click.Path(path_type=Path))
@click.option("--draft-tokens", default="1..8", show_default=True, metavar="A..B|A,B")
@click.option("--concurrency", default="1,4", show_default=True, metavar="A,B")
@click.option("--cases", default=12, show_default=True, help="Cases checked per point.")
@click.option(
    "--seconds", default=20.0, show_default=True, help="Per load beyond one stream."
)
@click.option(
    "--vary",
    multiple=True,
    metavar="OPTION=A,B",
    help="A speculation option to try as well, such as num_steps=2,3.",
)
@click.option(
    "--at",
    "servers",
    multiple=True,
    metavar="K=URL",
    help="A server that runs with K draft tokens already; other lengths are launched.",
)
@click.option(
    "--within",
    type=duration,
    metavar="TIME",
    help="Begin no point that would end later than this, such as 15m.",
)
@click.option(
    "--out", type=click.Path(path_type=Path), help="Goes on where it stopped."
)
@click.option("--json", "as_json", is_flag=True, help="One document on stdout.")
def command(proof: Path, out: Path | None, as_json: bool, **given: Any) -> None:
    """Launch the candidate of PROOF with each draft length and compare."""
    from routeproof.cli.run_options import fresh_run, listening
    from routeproof.jobs.report import report
    from routeproof.jobs.tune import Grid, Size, tune
    from routeproof.jobs.tune_rows import telling

    grid = Grid(
        numbers(given["draft_tokens"], "--draft-tokens"),
        numbers(given["concurrency"], "--concurrency"),
        options=varied(given["vary"]),
        endpoints=endpoints(given["servers"]),
        within_s=given["within"],
    )
    folder = out or fresh_run(f"tune-{proof.stem}")
    click.echo(f"search in {folder}; `--out {folder}` goes on with it", err=True)
    with listening() as listener:
        found = tune(
            proof,
            folder,
            grid,
            size=Size(given["cases"], given["seconds"]),
            listener=listener,
        )
    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode(found), indent=2))
        return
    click.echo("drafts  load    gain                 tokens/pass  equal   correctness")
    for row in found.rows:
        limits = f"[{_text(row['gain_low'])}, {_text(row['gain_high'])}]"
        gain = f"{_text(row['gain'])}x {limits}"
        is_idle = row["acceptance_rate"] is None and row["tokens_per_pass"] == 1.0
        mark = "  never drafts" if is_idle else ""
        mark += "  <- chosen" if row.get("chosen") else ""
        click.echo(
            f"{row['draft_tokens']:>6}  {row['concurrency']:>4}    {gain:<20} "
            f"{_text(row['tokens_per_pass']):>11}  {_text(row['equal_share']):>5}   "
            f"{row['correctness']}{mark}"
        )
    for pick in found.chosen:
        further = f", {pick.options}" if pick.options else ""
        what = (
            "no speculation"
            if pick.draft_tokens is None
            else f"{pick.draft_tokens} drafts{further}"
        )
        click.echo(f"at {pick.concurrency:g} streams: {what} ({pick.why})")
    for name, why in {**found.skipped, **found.failed}.items():
        # An engine's last words stand in its log.
        click.echo(f"not measured: {name}: {why.splitlines()[0]}")
    click.echo(f"search  {folder / 'tune.json'}")
    point = telling(found.rows)
    if point is not None:
        (page,) = report(folder / point.name())
        click.echo(f"page    {page}")


def _text(value: object) -> str:
    return f"{value:.2f}" if isinstance(value, int | float) else "unknown"


def varied(given: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    """``num_steps=2,3`` as an option and its values.

    Raises:
        ConfigError: It is not written like this.
    """
    found = {}
    for text in given:
        name, equals, values = text.partition("=")
        parts = tuple(part.strip() for part in values.split(","))
        if not equals or not name.strip() or not all(parts):
            raise ConfigError(
                f"`{text}` varies nothing", key="--vary", hint="write num_steps=2,3"
            )
        found[name.strip().replace("-", "_")] = parts
    return found


def endpoints(given: tuple[str, ...]) -> dict[int, str]:
    """``4=http://127.0.0.1:8000/v1`` as a draft length and a URL.

    Raises:
        ConfigError: It is not written like this.
    """
    found = {}
    for text in given:
        length, equals, url = text.partition("=")
        if not equals or not length.strip().isdigit() or "://" not in url:
            raise ConfigError(
                f"`{text}` is no server of a draft length",
                key="--at",
                hint="write 4=http://127.0.0.1:8000/v1",
            )
        found[int(length)] = url.strip()
    return found


def numbers(text: str, option: str) -> tuple[int, ...]:
    """``1..4`` or ``1,2,4`` as numbers.

    Raises:
        ConfigError: It is neither, or a number is below 1.
    """
    span = re.fullmatch(r"\s*(\d+)\s*\.\.\s*(\d+)\s*", text)
    try:
        found = (
            tuple(range(int(span[1]), int(span[2]) + 1))
            if span
            else tuple(int(part) for part in text.split(","))
        )
    except ValueError:
        found = ()
    if not found or min(found) < 1:
        raise ConfigError(
            f"`{text}` is no list of numbers", key=option, hint="write 1..8 or 1,2,4"
        )
    return found
