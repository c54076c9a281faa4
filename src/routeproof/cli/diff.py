"""``routeproof diff``: what differs between the routes of a proof file."""

import sys
from pathlib import Path

import click
import msgspec

from routeproof.cli.progress import download_bar


@click.command()
@click.argument("proof", type=click.Path(path_type=Path))
@click.option("--offline", is_flag=True, help="Compare what is declared only.")
@click.option("--json", "as_json", is_flag=True, help="One document on stdout.")
def command(proof: Path, offline: bool, as_json: bool) -> None:
    """Show what differs, of which class, and whether it may be compared.

    Nothing is sent to a model. Exit code 0: comparable; 1: a parity problem.
    """
    from routeproof.jobs.diff import diff
    from routeproof.routes.parity import parity_problems

    with download_bar() as progress:
        found = diff(proof, offline=offline, progress=progress)
    problems = parity_problems(found)
    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode(found), indent=2))
        sys.exit(1 if problems else 0)
    if not found.changes:
        click.echo("no difference between the routes")
    for change in found.changes:
        mark = "" if change.intended else "   NOT DECLARED"
        old, new = change.baseline or "not set", change.candidate or "not set"
        click.echo(f"{change.field:<28} {old} -> {new}   {change.change_class}{mark}")
        click.echo(f"{'':<28} {change.why}")
    click.echo(f"change class: {found.change_class}")
    for name, side in (("baseline", found.baseline), ("candidate", found.candidate)):
        if missing := side.unverified():
            click.echo(f"unverified on the {name}: {', '.join(missing)}")
    for problem in problems:
        click.echo(f"parity: {problem.why}")
    sys.exit(1 if problems else 0)
