"""``routeproof show``: one pair of answers of a run, raw."""

from pathlib import Path

import click


@click.command()
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--case", "case_id", required=True, metavar="ID", help="Which case.")
@click.option("--trial", type=int, help="One trial only.")
@click.option("--json", "as_json", is_flag=True, help="One document on stdout.")
def command(run: Path, case_id: str, trial: int | None, as_json: bool) -> None:
    """Show the prompt of one case and every answer recorded for it."""
    import msgspec

    from routeproof.jobs.show import show
    from routeproof.reports.shown import answer_text, case_text

    found = show(run, case_id, trial=trial)
    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode(found), indent=2))
        return
    if found.case is not None:
        click.echo("\n".join(case_text(found.case)))
    for answer in found.requests:
        click.echo()
        click.echo("\n".join(answer_text(answer)))
    if not found.requests:
        click.echo("\nnothing was recorded for this case")
