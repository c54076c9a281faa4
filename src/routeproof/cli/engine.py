"""``routeproof engine``: fetch the embedded engine and model."""

import click

from routeproof.cli.progress import download_bar


@click.command()
def command() -> None:
    """Fetch llama-server and a 135M model into the cache and say where they are."""
    from routeproof.engines.embedded import fetch_embedded

    with download_bar() as progress:
        found = fetch_embedded(progress)
    click.echo(f"engine  {found.server}  ({found.server_version})")
    click.echo(f"model   {found.model}")
