"""The data listener: clients' connections straight to the relay, TLS or not."""

import asyncio
import contextlib
import ssl
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from routeproof.canary.relay.inbound import Inbound, Limits, Serves
from routeproof.errors import ConfigError

BACKLOG = 2_048


@dataclass(frozen=True, slots=True)
class Tls:
    """What a listener shows of itself.

    Attributes:
        certificate: PEM file with the certificate and its chain.
        private_key: PEM file, not encrypted.
    """

    certificate: Path
    private_key: Path

    def context(self) -> ssl.SSLContext:
        """TLS 1.2 or newer, HTTP/1.1 alone.

        Raises:
            ConfigError: A file is missing, or the two do not belong together.
        """
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.set_alpn_protocols(["http/1.1"])
        try:
            context.load_cert_chain(self.certificate, self.private_key)
        except (OSError, ssl.SSLError) as error:
            raise ConfigError(
                f"cannot use {self.certificate} with {self.private_key}: "
                f"{error.strerror or 'not a matching pair'}",
                key="canary.traffic.tls",
                hint="two PEM files, the key without a password",
            ) from None
        return context


@dataclass(frozen=True, slots=True)
class Address:
    """``host:port``, ``[::1]:port`` or ``unix:/path``, taken apart."""

    host: str
    port: int
    unix: str | None = None

    @classmethod
    def of(cls, text: str) -> "Address":
        """Read an address.

        Raises:
            ConfigError: It makes no sense.
        """
        if text.startswith("unix:"):
            return cls("", 0, text.removeprefix("unix:"))
        host, _, port = text.rpartition(":")
        if not host or not port.isdigit() or int(port) > 65_535:
            raise ConfigError(
                f"`{text}` is no address", hint="write host:port or unix:/path"
            )
        return cls(host.strip("[]"), int(port))

    def is_loopback(self) -> bool:
        """Whether only this machine can reach it."""
        return (
            self.unix is not None
            or self.host in ("localhost", "::1")
            or self.host.startswith("127.")
        )


@dataclass(slots=True)
class Listener:
    """Accepts clients until it is stopped.

    Attributes:
        serves: Takes the requests.
        tls: ``None`` speaks plain HTTP.
    """

    serves: Serves
    address: Address
    limits: Limits = field(default_factory=Limits)
    tls: ssl.SSLContext | None = None
    clients: set[Inbound] = field(default_factory=set, init=False)
    _server: asyncio.Server | None = field(default=None, init=False)

    async def start(self) -> None:
        """Listen.

        Raises:
            ConfigError: The address is taken or is not of this machine.
        """
        loop = asyncio.get_running_loop()
        given: dict[str, Any] = {"ssl": self.tls, "backlog": BACKLOG}
        if self.tls is not None:
            given["ssl_handshake_timeout"] = self.limits.receive_s
        where = self.address
        try:
            if where.unix is not None:
                self._server = await loop.create_unix_server(
                    self._inbound, where.unix, **given
                )
            else:
                self._server = await loop.create_server(
                    self._inbound, where.host, where.port, **given
                )
        except OSError as error:
            raise ConfigError(
                f"cannot listen on {where.unix or f'{where.host}:{where.port}'}",
                hint=error.strerror or "the address is not of this machine",
            ) from None

    def _inbound(self) -> Inbound:
        return Inbound(self.serves, self.limits, self.clients)

    @property
    def url(self) -> str | None:
        """Base URL while it listens; ``None`` for a Unix socket."""
        if self._server is None or self.address.unix is not None:
            return None
        scheme = "http" if self.tls is None else "https"
        host, port = self._server.sockets[0].getsockname()[:2]
        return f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}"

    async def stop(self, grace_s: float) -> None:
        """Accept nobody more; let running answers end within ``grace_s``."""
        if self._server is None:
            return
        self._server.close()
        for client in list(self.clients):
            client.end_after_answer()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(grace_s):
                while self.clients:
                    await asyncio.sleep(0.02)
        for client in list(self.clients):
            client.abort()
        await self._server.wait_closed()
        self._server = None
