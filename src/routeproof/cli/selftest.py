"""``routeproof selftest``: the smallest faults a proof would notice."""

from pathlib import Path

import click
import msgspec


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
    click.echo(f"{power.cases} cases; a sound candidate gets: {power.sound}")
    for name in power.sound_failures:
        click.echo(f"  fails without any fault: {name}")
    click.echo(f"\n{'fault':<28} {'smallest seen':>14}  {'strength is':<34} seen by")
    for row in power.rows:
        smallest = "not seen" if row.smallest is None else f"{row.smallest:g}"
        unit = row.unit if len(row.unit) <= 34 else f"{row.unit[:31]}..."
        click.echo(f"{row.fault:<28} {smallest:>14}  {unit:<34} {row.seen_by or '-'}")
    blind = [row for row in power.rows if row.smallest is None]
    for row in blind:
        click.echo(f"\nnot seen even when plain: {row.fault}: {row.what}")
