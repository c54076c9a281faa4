"""The upstream side of the relay: pools of kept connections.

Nothing is retried once a byte of the
response was seen, and never on another upstream.
"""

import asyncio
import ssl
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from routeproof.canary.relay.connection import Connection, Headers, UpstreamError
from routeproof.errors import ConfigError

__all__ = ["Deadlines", "Exchange", "Headers", "Pool", "UpstreamError"]

REST_S = 0.005


@dataclass(frozen=True, slots=True)
class Deadlines:
    """How long each part of an exchange may take, in seconds."""

    connect_s: float = 5.0
    first_byte_s: float = 600.0
    idle_s: float = 120.0


@dataclass(slots=True)
class Exchange:
    """A response under way. Close it when done, whatever happened."""

    status: int
    headers: Headers
    _pool: "Pool"
    _connection: Connection
    _idle_s: float

    async def read(self) -> bytes:
        """The next piece of the body; empty when it is whole.

        Raises:
            UpstreamError: The upstream died or fell silent in the middle.
        """
        connection = self._connection
        while not connection.chunks:
            if connection.is_complete:
                return b""
            if connection.error is not None:
                raise UpstreamError(connection.error, is_before_first_byte=False)
            await connection.wait(self._idle_s, "further bytes")
        return connection.take()

    def abort(self) -> None:
        """Break off in the middle; a reader is told at once."""
        self._connection.error = "cut by the rollback"
        self._connection.close()

    def close(self) -> None:
        """Give the connection back if it can serve again, else drop it."""
        self._pool.give_back(self._connection)


@dataclass(slots=True)
class Pool:
    """Keep-alive connections to one upstream.

    Attributes:
        url: ``http(s)://host:port`` with an optional base path, from configuration.
        deadlines: Limits of each exchange.
        tls: How an ``https`` upstream is verified; the system's authorities by default.
        rest_s: How long a connection rests before it serves again: bytes that an
            upstream sends unasked, after an answer, show up meanwhile and end it.
        max_connections: More exchanges than this wait for nothing: they are refused.
    """

    url: str
    deadlines: Deadlines = field(default_factory=Deadlines)
    tls: ssl.SSLContext | None = None
    max_connections: int = 4096
    rest_s: float = REST_S
    in_use: int = field(default=0, init=False)
    _idle: list[tuple[Connection, float]] = field(default_factory=list, init=False)
    _host: str = field(default="", init=False)
    _port: int = field(default=0, init=False)
    _tls: ssl.SSLContext | None = field(default=None, init=False)
    base: bytes = field(default=b"", init=False)
    host_header: bytes = field(default=b"", init=False)

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConfigError(
                f"upstream {self.url!r} is not an http(s) address",
                hint="write it as http://host:port",
            )
        self._host = parts.hostname
        self._port = parts.port or (443 if parts.scheme == "https" else 80)
        if parts.scheme == "https":
            self._tls = self.tls or ssl.create_default_context()
        self.base = parts.path.rstrip("/").encode()
        self.host_header = parts.netloc.rpartition("@")[2].encode()

    def take(self) -> Connection | None:
        """A kept connection, or ``None`` when one must be made; counts an exchange.

        Whoever takes gives back or drops, once.

        Raises:
            UpstreamError: There are too many exchanges already.
        """
        if self.in_use >= self.max_connections:
            raise UpstreamError(
                f"more than {self.max_connections} exchanges at a time",
                status=503,
                is_before_first_byte=True,
            )
        self.in_use += 1
        rested_s = asyncio.get_running_loop().time() - self.rest_s
        at = len(self._idle)
        while at:
            at -= 1
            kept, since_s = self._idle[at]
            if kept.is_closed:
                del self._idle[at]
            elif since_s <= rested_s:
                del self._idle[at]
                if kept.is_quiet():
                    return kept
                kept.close()
        return None

    async def connect(self) -> Connection:
        """A fresh connection.

        Raises:
            UpstreamError: Nobody answers there, or not in time.
        """
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(self.deadlines.connect_s):
                _, connection = await loop.create_connection(
                    Connection, self._host, self._port, ssl=self._tls
                )
        except (OSError, TimeoutError) as error:
            raise UpstreamError(
                f"cannot connect: {type(error).__name__}",
                is_before_first_byte=True,
            ) from error
        return connection

    def give_back(self, connection: Connection) -> None:
        """End of an exchange: the connection is kept if it can serve again."""
        if connection.is_complete and connection.can_reuse and not connection.is_closed:
            self.in_use -= 1
            connection.take()
            connection.resume()
            connection.is_serving = False
            now_s = asyncio.get_running_loop().time()
            self._idle.append((connection, now_s))
        else:
            self.drop(connection)

    def drop(self, connection: Connection | None) -> None:
        """End of an exchange that leaves nothing worth keeping."""
        self.in_use -= 1
        if connection is not None:
            connection.close()

    def close(self) -> None:
        """Drop all kept connections."""
        while self._idle:
            self._idle.pop()[0].close()

    async def send(
        self, head: bytes, body: bytes, *, is_bodiless: bool = False
    ) -> Exchange:
        """Send one request and wait for the head of its response.

        ``is_bodiless``: the answer has no body whatever its headers say (``HEAD``).

        A kept connection that turns out to be dead before any byte came is replaced
        by a fresh one, once.

        Raises:
            UpstreamError: No connection, no answer in time, or not HTTP.
        """
        connection = self.take()
        is_kept = connection is not None
        try:
            connection = connection or await self.connect()
            connection.begin([head, body], is_bodiless=is_bodiless)
            try:
                return await self._head(connection)
            except UpstreamError as error:
                if not (is_kept and error.status == 502 and not connection.has_bytes):
                    raise
            connection.close()
            connection = await self.connect()
            connection.begin([head, body], is_bodiless=is_bodiless)
            return await self._head(connection)
        except BaseException:
            self.drop(connection)
            raise

    async def _head(self, connection: Connection) -> Exchange:
        loop = asyncio.get_running_loop()
        until = loop.time() + self.deadlines.first_byte_s
        while not connection.has_head:
            if connection.error is not None or connection.is_closed:
                raise UpstreamError(
                    connection.error or "connection closed",
                    is_before_first_byte=not connection.has_bytes,
                )
            await connection.wait(until - loop.time(), "answer")
        assert connection.status is not None
        return Exchange(
            connection.status,
            connection.headers,
            self,
            connection,
            self.deadlines.idle_s,
        )
