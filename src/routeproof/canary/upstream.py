"""The upstream side of the relay: keep-alive pools on asyncio protocols and httptools.

Bodies pass through as the bytes that came, content encoding included; only the
framing (chunked, length) is undone and redone. Nothing is retried once a byte of the
response was seen, and never on another upstream.
"""

import asyncio
import ssl
from collections import deque
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import httptools

from routeproof.errors import ConfigError

HIGH_WATER_BYTES = 256 * 1024
LOW_WATER_BYTES = 64 * 1024
MAX_HEADER_BYTES = 64 * 1024

Headers = list[tuple[bytes, bytes]]


class UpstreamError(Exception):
    """The upstream did not answer properly.

    Attributes:
        status: The status a client should see: 502, or 504 for a deadline.
        is_before_first_byte: True when nothing of the response had come yet.
    """

    def __init__(
        self, message: str, *, status: int = 502, is_before_first_byte: bool
    ) -> None:
        super().__init__(message)
        self.status = status
        self.is_before_first_byte = is_before_first_byte


@dataclass(frozen=True, slots=True)
class Deadlines:
    """How long each part of an exchange may take, in seconds."""

    connect_s: float = 5.0
    first_byte_s: float = 600.0
    idle_s: float = 120.0


class _Connection(asyncio.Protocol):
    """One connection; serves one exchange after the other."""

    def __init__(self) -> None:
        self.transport: asyncio.Transport | None = None
        self.is_closed = False
        self._reset()

    def _reset(self) -> None:
        self.parser = httptools.HttpResponseParser(self)
        self.status: int | None = None
        self.headers: Headers = []
        self.header_bytes = 0
        self.has_head = False
        self.has_bytes = False
        self.is_complete = False
        self.can_reuse = False
        self.error: str | None = None
        self.chunks: deque[bytes] = deque()
        self.buffered = 0
        self.is_paused = False
        self.waiter: asyncio.Future[None] | None = None

    def begin(self, data: list[bytes]) -> None:
        """Send the next request on this connection."""
        self._reset()
        assert self.transport is not None
        self.transport.writelines(data)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        """Feed the parser; what is not HTTP ends the exchange."""
        self.has_bytes = True
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserError as error:
            self.error = f"not HTTP: {error}"
            self.close()
        self._wake()

    def eof_received(self) -> bool:
        """A close ends a body without length, and breaks every other one."""
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """End the exchange that is under way."""
        self.is_closed = True
        if not self.is_complete and self.error is None:
            if self.has_head and not self._is_framed():
                self.is_complete = True
            else:
                self.error = f"connection lost: {exc}" if exc else "connection closed"
        self._wake()

    def _is_framed(self) -> bool:
        names = {name.lower() for name, _ in self.headers}
        return b"content-length" in names or b"transfer-encoding" in names

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep a header; trailers after the body are ignored."""
        if self.has_head:
            return
        self.header_bytes += len(name) + len(value)
        if self.header_bytes > MAX_HEADER_BYTES:
            self.error = "response headers too large"
            self.close()
            return
        self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        """The status is known from here on."""
        status = self.parser.get_status_code()
        if 100 <= status < 200:
            self.headers = []
            return
        self.status = status
        self.has_head = True

    def on_body(self, body: bytes) -> None:
        """Buffer a piece; stop reading when the client side is slow."""
        self.chunks.append(body)
        self.buffered += len(body)
        if self.buffered > HIGH_WATER_BYTES and not self.is_paused and self.transport:
            self.is_paused = True
            self.transport.pause_reading()

    def on_message_complete(self) -> None:
        """The body is whole; the connection may serve again if both sides agree."""
        if not self.has_head:
            return
        self.is_complete = True
        self.can_reuse = bool(self.parser.should_keep_alive())

    def take(self) -> bytes:
        """Everything buffered, as one piece."""
        data = self.chunks[0] if len(self.chunks) == 1 else b"".join(self.chunks)
        self.chunks.clear()
        self.buffered = 0
        if self.is_paused and self.transport is not None:
            self.is_paused = False
            self.transport.resume_reading()
        return data

    async def wait(self, seconds: float, what: str) -> None:
        """Wait until something new came.

        Raises:
            UpstreamError: Nothing came in time.
        """
        loop = asyncio.get_running_loop()
        self.waiter = loop.create_future()
        handle = loop.call_later(seconds, _give_up, self.waiter)
        try:
            await self.waiter
        except TimeoutError:
            self.close()
            raise UpstreamError(
                f"no {what} from upstream within {seconds:g} s",
                status=504,
                is_before_first_byte=not self.has_bytes,
            ) from None
        finally:
            handle.cancel()
            self.waiter = None

    def _wake(self) -> None:
        if self.waiter is not None and not self.waiter.done():
            self.waiter.set_result(None)

    def close(self) -> None:
        """Drop the connection now; upstream sees it at once."""
        self.is_closed = True
        if self.transport is not None:
            self.transport.abort()


def _give_up(waiter: "asyncio.Future[None]") -> None:
    if not waiter.done():
        waiter.set_exception(TimeoutError())


@dataclass(slots=True)
class Exchange:
    """A response under way. Close it when done, whatever happened."""

    status: int
    headers: Headers
    _pool: "Pool"
    _connection: _Connection
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
        max_connections: More exchanges than this wait for nothing: they are refused.
    """

    url: str
    deadlines: Deadlines = field(default_factory=Deadlines)
    max_connections: int = 4096
    in_use: int = field(default=0, init=False)
    _idle: list[_Connection] = field(default_factory=list, init=False)
    _host: str = field(default="", init=False)
    _port: int = field(default=0, init=False)
    _tls: ssl.SSLContext | None = field(default=None, init=False)
    base_path: str = field(default="", init=False)
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
            self._tls = ssl.create_default_context()
        self.base_path = parts.path.rstrip("/")
        self.host_header = parts.netloc.rpartition("@")[2].encode()

    async def send(self, head: bytes, body: bytes) -> Exchange:
        """Send one request and wait for the head of its response.

        A kept connection that turns out to be dead before any byte came is replaced
        by a fresh one, once.

        Raises:
            UpstreamError: No connection, no answer in time, or not HTTP.
        """
        if self.in_use >= self.max_connections:
            raise UpstreamError(
                f"more than {self.max_connections} exchanges with {self.url}",
                status=503,
                is_before_first_byte=True,
            )
        self.in_use += 1
        connection: _Connection | None = None
        try:
            connection, is_kept = await self._connection()
            connection.begin([head, body])
            try:
                return await self._head(connection)
            except UpstreamError as error:
                if not (is_kept and error.status == 502 and not connection.has_bytes):
                    raise
            connection = await self._connect()
            connection.begin([head, body])
            return await self._head(connection)
        except BaseException:
            self.in_use -= 1
            if connection is not None:
                connection.close()
            raise

    async def _head(self, connection: _Connection) -> Exchange:
        while not connection.has_head:
            if connection.error is not None or connection.is_closed:
                raise UpstreamError(
                    connection.error or "connection closed",
                    is_before_first_byte=not connection.has_bytes,
                )
            await connection.wait(self.deadlines.first_byte_s, "answer")
        assert connection.status is not None
        return Exchange(
            connection.status,
            connection.headers,
            self,
            connection,
            self.deadlines.idle_s,
        )

    async def _connection(self) -> tuple[_Connection, bool]:
        while self._idle:
            kept = self._idle.pop()
            if not kept.is_closed:
                return kept, True
        return await self._connect(), False

    async def _connect(self) -> _Connection:
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(self.deadlines.connect_s):
                _, connection = await loop.create_connection(
                    _Connection, self._host, self._port, ssl=self._tls
                )
        except (OSError, TimeoutError) as error:
            raise UpstreamError(
                f"cannot connect to {self.url}: {error or 'timed out'}",
                is_before_first_byte=True,
            ) from error
        return connection

    def give_back(self, connection: _Connection) -> None:
        """End of an exchange."""
        self.in_use -= 1
        if connection.is_complete and connection.can_reuse and not connection.is_closed:
            connection.take()
            self._idle.append(connection)
        else:
            connection.close()

    def close(self) -> None:
        """Drop all kept connections."""
        while self._idle:
            self._idle.pop().close()
