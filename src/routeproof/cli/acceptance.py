"""``routeproof acceptance``: the accepted-token profile of a run, and its drift."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

if TYPE_CHECKING:
    from routeproof.metrics.acceptance_drift import Drift, Reference


@click.command()
@click.argument("run", type=click.Path(path_type=Path))
@click.option(
    "--against",
    type=click.Path(path_type=Path),
    metavar="FILE|RUN",
    help="A reference, or an earlier run, of the same workload.",
)
@click.option(
    "--save",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Keep it as a reference.",
)
@click.option(
    "--fall",
    type=click.FloatRange(0, 1),
    default=0.05,
    show_default=True,
    help="Relative fall that is let pass.",
)
@click.option("--json", "as_json", is_flag=True, help="One document on stdout.")
def command(
    run: Path, against: Path | None, save: Path | None, fall: float, as_json: bool
) -> None:
    """Show what the drafts of RUN were worth, and whether that fell.

    Exit code 1 when acceptance fell below --against.
    """
    from routeproof.jobs.acceptance import acceptance

    found = acceptance(run, against=against, save=save, fall_max_share=fall)
    if as_json:
        document = msgspec.json.encode({"now": found.reference, "moved": found.moved})
        click.echo(msgspec.json.format(document, indent=2))
    else:
        _show(found.reference, found.moved)
    sys.exit(1 if any(each.fell for each in found.moved) else 0)


def _show(now: "Reference", moved: "tuple[Drift, ...]") -> None:
    from routeproof.metrics.acceptance import derive

    rows = {"overall": now.overall, **now.slices}
    width = max(len(name) for name in rows)
    click.echo(f"{'':<{width}}  requests  tokens/pass  accepted")
    for name, counts in rows.items():
        d = derive(counts)
        click.echo(
            f"{name:<{width}}  {counts.requests:>8}  {_text(d.tokens_per_pass):>11}  "
            f"{_text(d.acceptance_rate):>8}"
        )
    for reason in now.overall.reasons:
        click.echo(f"note: {reason}")
    for each in moved:
        sure = "" if each.z is None else f", {each.z:+.1f} standard errors"
        click.echo(
            f"{'FELL ' if each.fell else '     '}{each.where}: "
            f"{each.metric.replace('_', ' ')} {each.then:.3g} -> {each.now:.3g} "
            f"({each.change:+.1%}{sure})"
        )


def _text(value: float | None) -> str:
    return "?" if value is None else f"{value:.3f}"
