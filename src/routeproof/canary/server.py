"""Two listeners on one event loop, with the deadlines uvicorn does not have."""

import asyncio
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from routeproof.errors import ConfigError


class DeadlineProtocol(HttpToolsProtocol):
    """Gives up on heads that come too slowly or grow too long.

    Attributes:
        head_s: From the connection, or the first byte of a further request, to the
            end of its head, in seconds.
        header_bytes: Longest head.
    """

    head_s = 60.0
    header_bytes = 32 * 1024
    _head_timer: asyncio.TimerHandle | None = None
    _head_bytes = 0
    _reads_head = True

    def connection_made(self, transport: Any) -> None:
        """Start the clock of the first head."""
        super().connection_made(transport)
        self._await_head()

    def _await_head(self) -> None:
        self._reads_head, self._head_bytes = True, 0
        if self._head_timer is None:
            self._head_timer = self.loop.call_later(self.head_s, self._too_slow)

    def _too_slow(self) -> None:
        self._head_timer = None
        if self._reads_head and not self.transport.is_closing():
            self.transport.abort()

    def _stop_clock(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def data_received(self, data: bytes) -> None:
        """Count the bytes of the head."""
        if self._reads_head:
            self._head_bytes += len(data)
            if self._head_bytes > self.header_bytes and b"\r\n\r\n" not in data:
                self.transport.abort()
                return
        super().data_received(data)

    def on_message_begin(self) -> None:
        """Start the clock of a further head."""
        super().on_message_begin()
        self._await_head()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep a header; trailers after the body are ignored."""
        if self._reads_head:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """The head is whole."""
        self._reads_head = False
        self._stop_clock()
        super().on_headers_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nobody is waited for any more."""
        self._stop_clock()
        super().connection_lost(exc)


class _Server(uvicorn.Server):
    """A server that leaves signals to whoever runs several of them."""

    def install_signal_handlers(self) -> None:
        """Nothing: the caller decides when to stop."""


def server(
    app: Callable[..., Any],
    address: str,
    *,
    head_deadline_s: float = 60.0,
    header_bytes: int = 32 * 1024,
    certificate: Path | None = None,
    private_key: Path | None = None,
    grace_s: int = 30,
) -> uvicorn.Server:
    """A uvicorn server for an ASGI application, not started yet.

    Args:
        app: The application.
        address: ``host:port`` or ``unix:/path``.
        head_deadline_s: See ``DeadlineProtocol``.
        header_bytes: See ``DeadlineProtocol``.
        certificate: PEM file for TLS, with ``private_key``.
        private_key: PEM file.
        grace_s: How long running exchanges may take to end when it stops.

    Raises:
        ConfigError: The address makes no sense.
    """
    where: dict[str, Any] = {}
    if address.startswith("unix:"):
        where["uds"] = address.removeprefix("unix:")
    else:
        host, _, port = address.rpartition(":")
        if not host or not port.isdigit():
            raise ConfigError(
                f"`{address}` is no address", hint="write host:port or unix:/path"
            )
        where |= {"host": host.strip("[]"), "port": int(port)}
    config = uvicorn.Config(
        app,
        **where,
        http=type(
            "Protocol",
            (DeadlineProtocol,),
            {"head_s": head_deadline_s, "header_bytes": header_bytes},
        ),
        ws="none",
        lifespan="off",
        access_log=False,
        log_level="critical",
        server_header=False,
        date_header=False,
        timeout_keep_alive=75,
        timeout_graceful_shutdown=grace_s,
        h11_max_incomplete_event_size=header_bytes,
        ssl_certfile=certificate,
        ssl_keyfile=private_key,
        ssl_version=ssl.PROTOCOL_TLS_SERVER,
    )
    return _Server(config)


def is_loopback(address: str) -> bool:
    """Whether only this machine can reach an address."""
    host = address.rpartition(":")[0].strip("[]")
    return (
        address.startswith("unix:")
        or host in ("localhost", "::1")
        or (host.startswith("127."))
    )
