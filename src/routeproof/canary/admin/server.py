"""The admin listener: an ASGI application on uvicorn."""

import asyncio
import ssl
from collections.abc import Callable
from typing import Any

import uvicorn

from routeproof.canary.relay.listener import Address, Tls

HEADER_BYTES_MAX = 32 * 1024


class _Server(uvicorn.Server):
    """A server that leaves signals to whoever runs several of them."""

    _should_exit = False
    _over: asyncio.Event | None = None
    _loop: asyncio.AbstractEventLoop | None = None

    def install_signal_handlers(self) -> None:
        """Nothing: the caller decides when to stop."""

    @property
    def should_exit(self) -> bool:
        """Whether it is to end; may be set from a signal's handler."""
        return self._should_exit

    @should_exit.setter
    def should_exit(self, value: bool) -> None:
        self._should_exit = value
        if value and self._over is not None and self._loop is not None:
            self._loop.call_soon_threadsafe(self._over.set)

    async def main_loop(self) -> None:
        """Wait for the end, without asking for it ten times a second.

        The ticks of the base class set a date and count requests, neither of which is
        wanted here; beside a busy relay each costs a tenth of a millisecond.
        """
        self._loop, self._over = asyncio.get_running_loop(), asyncio.Event()
        if not await self.on_tick(0):
            await self._over.wait()


def server(
    app: Callable[..., Any],
    address: str,
    *,
    tls: Tls | None = None,
    grace_s: int = 30,
) -> uvicorn.Server:
    """A uvicorn server for an ASGI application, not started yet.

    Args:
        app: The application.
        address: ``host:port`` or ``unix:/path``.
        tls: ``None`` speaks plain HTTP.
        grace_s: How long running exchanges may take to end when it stops.

    Raises:
        ConfigError: The address makes no sense.
    """
    found = Address.of(address)
    where: dict[str, Any] = {"host": found.host, "port": found.port}
    if found.unix is not None:
        where = {"uds": found.unix}
    if tls is not None:
        tls.context()  # says what is wrong with the files, in our words
        where |= {"ssl_certfile": tls.certificate, "ssl_keyfile": tls.private_key}
    config = uvicorn.Config(
        app,
        **where,
        http="httptools",
        ws="none",
        lifespan="off",
        access_log=False,
        log_level="critical",
        server_header=False,
        date_header=False,
        timeout_keep_alive=75,
        timeout_graceful_shutdown=grace_s,
        h11_max_incomplete_event_size=HEADER_BYTES_MAX,
        ssl_version=ssl.PROTOCOL_TLS_SERVER,
    )
    return _Server(config)


def is_loopback(address: str) -> bool:
    """Whether only this machine can reach an address."""
    return Address.of(address).is_loopback()
