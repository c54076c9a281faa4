"""Serving and steering a canary, as commands do it."""

import asyncio
import os
import signal
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import uvloop

from routeproof.canary.admin.app import Admin
from routeproof.canary.admin.ask import ask_admin
from routeproof.canary.config import ADMIN, CanaryConfig, in_words, load_canary
from routeproof.canary.config_checks import check_pairing
from routeproof.canary.deciding.stores import open_store
from routeproof.canary.gateway import Gateway
from routeproof.canary.relay.listener import Address
from routeproof.canary.samples.sealing import seal_from
from routeproof.canary.samples.spool import Spool
from routeproof.canary.serve import serving, settle
from routeproof.canary.weekly import page as weekly_page
from routeproof.canary.weekly.indicators import DAY_S
from routeproof.canary.weekly.indicators import weekly as weekly_of
from routeproof.errors import ConfigError
from routeproof.proof.yaml_text import parse, read_text


def check(path: Path) -> list[str]:
    """What the gateway will do, in sentences.

    Raises:
        ConfigError: The file is wrong.
    """
    return [*in_words(load_canary(path)), *check_pairing(path)]


def serve(path: Path, *, say: Callable[[str], None], engine: str = "openai") -> None:
    """Serve until SIGINT or SIGTERM.

    Raises:
        ConfigError: The file, an address or a key is wrong.
    """
    config = load_canary(path)
    for note in check_pairing(path):
        say(note)
    gateway = Gateway(config, engine=engine)
    admin = Admin(gateway, key_of(config))
    settle()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(gateway, admin, say))


async def _serve(gateway: Gateway, admin: Admin, say: Callable[[str], None]) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    async with serving(gateway, admin) as running:
        say(f"clients  {running.data_url or gateway.config.listen}")
        say(f"admin    {running.admin_url or gateway.config.admin}")
        await stop.wait()


def key_of(config: CanaryConfig) -> str | None:
    """The admin key, from the variable the file names.

    Raises:
        ConfigError: The variable is not set.
    """
    return _key(config.spec.traffic.admin_key_env)


def _key(variable: str | None) -> str | None:
    if variable is None:
        return None
    key = os.environ.get(variable)
    if not key:
        raise ConfigError(
            f"the environment variable {variable} is not set",
            key="canary.traffic.admin_key_env",
            hint=f"export {variable}=...",
        )
    return key


def ask(
    path: Path, method: str, what: str, body: dict[str, Any] | None = None
) -> dict[str, Any]:
    """One request to the admin listener of a running gateway.

    Of the file only the admin listener is needed: one that was spoilt while the gateway
    runs must not stand between a person and the way back.

    Raises:
        ConfigError: It is not running, or it refuses; with its own words.
    """
    admin, variable, certificate = _admin_of(path)
    try:
        return ask_admin(
            Address.of(admin),
            method,
            what,
            body=body or {},
            key=_key(variable),
            certificate=certificate,
        )
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"no gateway answers at {admin}: {error}",
            hint=f"start it with `routeproof canary serve {path}`",
        ) from None


def _admin_of(path: Path) -> tuple[str, str | None, Path | None]:
    """Address of the admin listener, variable with its key, and its certificate."""
    try:
        config = load_canary(path)
    except ConfigError:
        block = parse(read_text(path), path).values.get("canary")
        if not isinstance(block, dict):
            raise
        found = block.get("traffic")
        traffic = found if isinstance(found, dict) else {}
        variable, shown = traffic.get("admin_key_env"), traffic.get("tls_certificate")
        return (
            str(block.get("admin") or ADMIN),
            None if variable is None else str(variable),
            None if shown is None else path.parent / str(shown),
        )
    shown = None if config.tls is None else config.tls.certificate
    return config.admin, config.spec.traffic.admin_key_env, shown


def weekly(path: Path, *, since: str | None, now_s: float) -> tuple[str, str]:
    """The report of the last days as Markdown and as HTML.

    Args:
        path: The canary file; its store and its spool are read, not the gateway.
        since: First UTC day, ``2026-01-31``; seven days back when ``None``.
        now_s: Unix seconds.

    Raises:
        ConfigError: The day is none, or the canary never ran.
        StoredRunError: The store cannot be read, or not with the key at hand.
    """
    config = load_canary(path)
    if not (config.folder / "samples.db").exists():
        raise ConfigError(
            f"no canary ever ran in {config.folder}",
            hint=f"start it with `routeproof canary serve {path}`",
        )
    seal = seal_from(config.spec.privacy.seal_key_env, os.environ)
    spool = Spool(config.folder / "samples.db", seal=seal)
    since_s = _day_s(since) if since else (now_s // DAY_S - 6) * DAY_S
    found = weekly_of(
        config.name,
        spool.between(since_s, now_s),
        open_store(config.spec.store, config.folder).since(0),
        since_s=since_s,
        until_s=now_s,
    )
    spool.close()
    return weekly_page.markdown(found), weekly_page.html(found)


def _day_s(day: str) -> float:
    try:
        return datetime.fromisoformat(day).replace(tzinfo=UTC).timestamp()
    except ValueError:
        raise ConfigError(
            f"`{day}` is no day", key="--since", hint="write 2026-01-31"
        ) from None
