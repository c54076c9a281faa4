"""``routeproof probe``: what a route is, as far as its endpoint tells."""

import click
import msgspec


@click.command()
@click.argument("url")
@click.option("--model", help="Refuse unless the endpoint serves this model.")
@click.option("--api-key-env", metavar="NAME", help="Variable that holds the key.")
@click.option("--insecure", is_flag=True, help="Accept any TLS certificate.")
@click.option("--json", "as_json", is_flag=True, help="One document on stdout.")
def command(
    url: str, model: str | None, api_key_env: str | None, insecure: bool, as_json: bool
) -> None:
    """Ask the endpoint at URL what it is; nothing is generated."""
    from routeproof.jobs.probe import probe

    found = probe(url, model=model, api_key_env=api_key_env, verify_tls=not insecure)
    if as_json:
        plain = msgspec.to_builtins(found)
        click.echo(msgspec.json.format(msgspec.json.encode(plain), indent=2))
        return
    click.echo(f"engine    {found.engine}")
    click.echo(f"serves    {', '.join(found.models) or 'does not say'}")
    width = max((len(name) for name in found.fields), default=0)
    for name, value in sorted(found.fields.items()):
        shown = value if len(value) <= 70 else f"{value[:67]}..."
        click.echo(f"  {name:<{width}}  {shown}")
    if found.cannot_tell:
        click.echo("cannot be read back; declare these in the proof file:")
        click.echo(f"  {', '.join(found.cannot_tell)}")
