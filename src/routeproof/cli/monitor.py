"""``routeproof monitor``: watch the speculation of a live engine."""

from pathlib import Path
from typing import Any

import click

from routeproof.errors import ConfigError


@click.command()
@click.argument("url", required=False)
@click.option("--interval", type=float, default=10.0, show_default=True, metavar="S")
@click.option("--duration", type=float, metavar="S", help="Stop after so long.")
@click.option("--once", is_flag=True, help="One window, then stop.")
@click.option("--engine", metavar="NAME", help="When it may be down at first.")
@click.option("--listen", metavar="[HOST:]PORT", help="Expose Prometheus here.")
@click.option("--log", type=click.Path(path_type=Path), help="Append what is said.")
@click.option("--api-key-env", metavar="NAME", help="Variable that holds the key.")
@click.option("--insecure", is_flag=True, help="Accept any TLS certificate.")
@click.option("--dashboard", is_flag=True, help="Print the Grafana dashboard; stop.")
@click.option("--json", "as_json", is_flag=True, help="A document a look, a line each.")
def command(url: str | None, **given: Any) -> None:
    """Watch the engine at URL: acceptance, latency, and what changed when they did.

    Only its pages are read; nothing is generated. Exit code 3 when it never answered.
    """
    if given["dashboard"]:
        import json

        from routeproof.reports.monitor_page import dashboard

        click.echo(json.dumps(dashboard(), indent=2))
        return
    if url is None:
        raise click.UsageError("Missing argument 'URL'.")
    if given["interval"] <= 0:
        raise ConfigError("an interval must be longer than 0", key="--interval")
    from routeproof.cli.monitor_view import Wanted, watch

    looks = None
    if given["once"]:
        looks = 2
    elif given["duration"] is not None:
        looks = max(2, int(given["duration"] / given["interval"]) + 1)
    watch(
        Wanted(
            url=url,
            interval_s=given["interval"],
            looks=looks,
            engine=given["engine"],
            listen=None if given["listen"] is None else address(given["listen"]),
            log=given["log"],
            api_key_env=given["api_key_env"],
            verify_tls=not given["insecure"],
            as_json=given["as_json"],
        )
    )


def address(text: str) -> tuple[str, int]:
    """``9310``, ``:9310`` or ``0.0.0.0:9310`` as host and port.

    Raises:
        ConfigError: It is none of them.
    """
    host, _, port = text.rpartition(":")
    if not port.isdigit() or int(port) > 65535:
        raise ConfigError(
            f"`{text}` is no address", key="--listen", hint="write 9310 or HOST:9310"
        )
    return host.strip("[]") or "127.0.0.1", int(port)
