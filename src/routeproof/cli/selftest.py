"""``routeproof selftest``: the smallest faults a proof would notice."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

if TYPE_CHECKING:
    from routeproof.jobs.selftest import Power, PowerRow


@click.command()
@click.argument(
    "proof",
    required=False,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
)
@click.option(
    "--fault", "names", multiple=True, metavar="NAME", help="May be repeated."
)
@click.option("--json", "as_json", is_flag=True, help="One document on stdout.")
def command(proof: Path | None, names: tuple[str, ...], as_json: bool) -> None:
    """Run the gates of PROOF against known faults; no engine is asked.

    Without PROOF the golden set is tried with the usual tolerances.
    """
    from routeproof.jobs.selftest import selftest

    power = selftest(
        proof, names=names, listener=lambda words: click.echo(words, err=True)
    )
    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode(power), indent=2))
        return
    for line in told(power):
        click.echo(line)


def told(power: "Power") -> Iterator[str]:
    """The table of power, line by line."""
    yield f"{power.cases} cases; a sound candidate gets: {power.sound}"
    for name in power.sound_failures:
        yield f"  fails without any fault: {name}"
    seen = [row for row in power.rows if row.smallest is not None]
    blind = [row for row in power.rows if row.smallest is None]
    if seen:
        rows = [(_at_least(row), row.fault, row.seen_by or "") for row in seen]
        yield f"\nseen, {len(seen)} of {len(power.rows)} (the smallest strength tried)"
        yield from _columns((("from", "fault", "by"), *rows))
    if blind:
        yield f"\nnot seen even when plain, {len(blind)} of {len(power.rows)}"
        rows = [(row.fault, row.what, "; ".join(row.lacks) or UNKNOWN) for row in blind]
        for name, what, why in rows:
            yield f"  {name}: {what}\n      {why}"


UNKNOWN = "no gate failed: too few cases or requests, or a tolerance that lets it pass"


def _at_least(row: "PowerRow") -> str:
    """The smallest strength seen, with its unit and what is not known below it."""
    if row.unit == "none":
        return "present"
    weaker = [each for each in row.tried if not each.is_seen]
    below = f" (not at {weaker[-1].strength:g})" if weaker else ""
    return f"{row.smallest:g} {row.unit}{below}"


def _columns(rows: Sequence[tuple[str, str, str]]) -> Iterator[str]:
    wide = [max(len(row[i]) for row in rows) for i in range(2)]
    for first, second, third in rows:
        yield f"  {second:<{wide[1]}}  {first:<{wide[0]}}  {third}".rstrip()
