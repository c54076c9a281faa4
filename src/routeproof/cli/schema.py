"""``routeproof schema``: the JSON Schema of the proof file."""

import json

import click


@click.command()
def command() -> None:
    """Print the JSON Schema of the proof file, for editors and checks."""
    from routeproof.proof.schema import json_schema

    click.echo(json.dumps(json_schema(), indent=2))
