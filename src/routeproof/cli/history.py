"""``routeproof history``: all runs of a route over time."""

from pathlib import Path

import click


@click.command()
@click.argument("runs", type=click.Path(path_type=Path), default="runs")
@click.option("--route", metavar="DIGEST|MODEL", help="Only runs of this candidate.")
@click.option("--workload", metavar="DIGEST", help="Only runs of this workload.")
@click.option("--html", type=click.Path(path_type=Path), help="Also write a page.")
@click.option("--json", "as_json", is_flag=True, help="One document on stdout.")
def command(
    runs: Path,
    route: str | None,
    workload: str | None,
    html: Path | None,
    as_json: bool,
) -> None:
    """Show the judged runs below the folder RUNS, oldest first."""
    import msgspec

    from routeproof.jobs.history import history
    from routeproof.reports.past import render

    found, unread = history(runs, route=route, workload=workload)
    for sentence in unread:
        click.echo(f"left out: {sentence}", err=True)
    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode(found), indent=2))
    else:
        click.echo(render(found), nl=False)
    if html is not None:
        from routeproof.reports import past_page

        title = f"History of {route}" if route else "History of all routes"
        html.write_text(past_page.render(found, title=title), encoding="utf-8")
        click.echo(str(html), err=True)
