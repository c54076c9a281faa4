"""Serving and steering a canary, as commands do it."""

import asyncio
import json
import os
import signal
import urllib.error
import urllib.request
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import uvloop

from routeproof.canary.admin.app import Admin
from routeproof.canary.config import CanaryConfig, in_words, load_canary
from routeproof.canary.config_checks import check_pairing
from routeproof.canary.deciding.stores import open_store
from routeproof.canary.gateway import Gateway
from routeproof.canary.samples.sealing import seal_from
from routeproof.canary.samples.spool import Spool
from routeproof.canary.serve import serving, settle
from routeproof.canary.weekly import page as weekly_page
from routeproof.canary.weekly.indicators import DAY_S
from routeproof.canary.weekly.indicators import weekly as weekly_of
from routeproof.errors import ConfigError


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
    variable = config.spec.traffic.admin_key_env
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

    Raises:
        ConfigError: It is not running, or it refuses; with its own words.
    """
    config = load_canary(path)
    key = key_of(config)
    headers = {"Content-Type": "application/json"}
    if key is not None:
        headers["Authorization"] = f"Bearer {key}"
    request = urllib.request.Request(
        f"http://{config.admin}{what}",
        method=method,
        headers=headers,
        data=json.dumps(body or {}).encode() if method == "POST" else None,
    )
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=10) as reply:
            answer: dict[str, Any] = json.load(reply)
            return answer
    except urllib.error.HTTPError as error:
        raise _refusal(error.read().decode("utf-8", "replace")) from None
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"no gateway answers at {config.admin}: {error}",
            hint=f"start it with `routeproof canary serve {path}`",
        ) from None


def _refusal(body: str) -> ConfigError:
    """The gateway's no, in its own words."""
    try:
        found = json.loads(body)
        return ConfigError(f"the gateway refuses: {found['error']}", hint=found["hint"])
    except (ValueError, LookupError, TypeError):
        return ConfigError(f"the gateway refuses: {body[:300]}")


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
