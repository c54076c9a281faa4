"""The streaming client: stamp first, parse later.

One HTTP/1.1 connection per stream on a raw asyncio protocol. While a response runs,
each socket read costs one clock reading and one pass of the HTTP framing; the body is
kept as bytes beside its stamps and interpreted after the end (``runs.parse``).

There are no retries and no redirects, proxies of the environment are not used, and
TLS is verified unless the endpoint says otherwise: what goes wrong is an outcome.
"""

import asyncio
import ssl
from dataclasses import dataclass
from time import monotonic_ns
from typing import cast
from urllib.parse import urlsplit

import httptools

from routeproof.engines.endpoint import Endpoint
from routeproof.runs.capture import Capture, FailureKind

_DEFAULT_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Limits:
    """Deadlines and bounds of one request.

    Attributes:
        connect_s: For the TCP connection and the TLS handshake.
        first_byte_s: From dispatch to the first byte; ``None`` = no own deadline.
        total_s: From dispatch to the end.
        response_bytes: A longer response, head included, is given up.
        keep_idle_s: A connection that was idle for longer is not used again: servers
            close theirs after 5 s (uvicorn, llama-server), and a race with that would
            look like a failure of the engine.
    """

    connect_s: float = 10.0
    first_byte_s: float | None = None
    total_s: float = 120.0
    response_bytes: int = 64 << 20
    keep_idle_s: float = 3.0


@dataclass(frozen=True, slots=True)
class _Address:
    """Where to connect, taken from an endpoint."""

    host: str
    port: int
    tls: ssl.SSLContext | None
    unix_socket: str | None

    @classmethod
    def of(cls, endpoint: Endpoint) -> "_Address":
        parts = urlsplit(endpoint.url)
        context = None
        if parts.scheme == "https":
            context = ssl.create_default_context()
            if not endpoint.verify_tls:
                context.check_hostname = False
                context.verify_mode = ssl.CERT_NONE
        port = parts.port or _DEFAULT_PORTS[parts.scheme]
        return cls(parts.hostname or "", port, context, endpoint.unix_socket)


class Client:
    """A pool of kept-alive connections to one endpoint.

    As many connections are opened as requests are in flight; there is no hidden cap.

    A kept connection that the server closed in silence, before a byte of the answer,
    is replaced by a fresh one, once: llama-server does so after every stream, though
    it promised to keep it. From then on no connection is used twice. This is no retry
    of a failed request: on a fresh connection the same close is a failure.

    Attributes:
        opened: Connections opened so far.
        replaced: Kept connections that turned out to be dead.
        keeps_alive: False once a kept connection turned out to be dead.
    """

    def __init__(self, endpoint: Endpoint, limits: Limits | None = None) -> None:
        self.endpoint = endpoint
        self.limits = limits or Limits()
        self.opened = 0
        self.replaced = 0
        self.keeps_alive = True
        self._address = _Address.of(endpoint)
        self._idle: list[_Connection] = []
        self._all: set[_Connection] = set()

    async def open(self, n: int) -> None:
        """Have ``n`` idle connections ready, so that none is opened on the clock.

        A connection that cannot be opened is left to the request that needs it.
        """
        self._drop_stale()
        missing = n - len(self._idle)
        if missing > 0:
            made = [self._connect() for _ in range(missing)]
            for result in await asyncio.gather(*made, return_exceptions=True):
                if isinstance(result, _Connection):
                    self._idle.append(result)
                elif not isinstance(result, OSError | TimeoutError):
                    raise result

    async def send(self, request: bytes, intended_ns: int | None = None) -> Capture:
        """Send one request and keep what comes back.

        Args:
            request: Head and body, ready for the socket.
            intended_ns: When it was due; now when ``None``.

        Returns:
            The capture; failures are in it and are never raised.
        """
        now = monotonic_ns()
        capture = Capture(now if intended_ns is None else intended_ns, now)
        connection = self._take_idle()
        if connection is not None:
            was_kept = connection.answers > 0
            await self._exchange(connection, request, capture)
            if not (was_kept and _died_in_silence(capture)):
                return capture
            self.replaced += 1
            self.keeps_alive = False
            capture = Capture(capture.intended_ns, capture.dispatched_ns)
        capture.new_connection = True
        try:
            connection = await self._connect()
        except (OSError, TimeoutError) as error:
            capture.end_ns = monotonic_ns()
            capture.failure = self._cannot_connect(error)
            return capture
        await self._exchange(connection, request, capture)
        return capture

    @staticmethod
    async def _exchange(
        connection: "_Connection", request: bytes, capture: Capture
    ) -> None:
        try:
            await connection.exchange(request, capture)
        except asyncio.CancelledError:
            connection.give_up("cancelled", "stopped by routeproof")
            raise

    async def close(self) -> None:
        """Close every connection; what is in flight ends as ``cancelled``."""
        for connection in list(self._all):
            connection.give_up("cancelled", "stopped by routeproof")
        self._idle.clear()
        while self._all:
            await asyncio.sleep(0)

    def _take_idle(self) -> "_Connection | None":
        oldest_ns = monotonic_ns() - int(self.limits.keep_idle_s * 1e9)
        while self._idle:
            connection = self._idle.pop()
            if connection.idle_since_ns >= oldest_ns and not connection.closed:
                return connection
            connection.drop()
        return None

    def _drop_stale(self) -> None:
        oldest_ns = monotonic_ns() - int(self.limits.keep_idle_s * 1e9)
        for connection in self._idle:
            if connection.idle_since_ns < oldest_ns:
                connection.drop()
        self._idle = [c for c in self._idle if not c.closed]

    async def _connect(self) -> "_Connection":
        loop = asyncio.get_running_loop()
        address = self._address
        name = address.host if address.tls else None
        async with asyncio.timeout(self.limits.connect_s):
            if address.unix_socket:
                _, connection = await loop.create_unix_connection(
                    lambda: _Connection(self),
                    address.unix_socket,
                    ssl=address.tls,
                    server_hostname=name,
                )
            else:
                _, connection = await loop.create_connection(
                    lambda: _Connection(self),
                    address.host,
                    address.port,
                    ssl=address.tls,
                    server_hostname=name,
                )
        self.opened += 1
        return connection

    def _cannot_connect(self, error: Exception) -> tuple[FailureKind, str]:
        where = (
            self._address.unix_socket or f"{self._address.host}:{self._address.port}"
        )
        if isinstance(error, TimeoutError) and not str(error):
            return "timeout", f"no connection to {where} in {self.limits.connect_s:g} s"
        return "connection_error", f"cannot connect to {where}: {error}"

    def _came_back(self, connection: "_Connection") -> None:
        connection.answers += 1
        if self.keeps_alive:
            self._idle.append(connection)
        else:
            connection.drop()


class _Connection(asyncio.Protocol):
    """One connection; at most one request at a time."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.closed = False
        self.answers = 0
        self.idle_since_ns = monotonic_ns()
        self._limit_bytes = client.limits.response_bytes
        self._capture: Capture | None = None
        self._done: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._now_ns = 0

    # -- the request ---------------------------------------------------------------

    async def exchange(self, request: bytes, capture: Capture) -> None:
        loop = asyncio.get_running_loop()
        self._parser = httptools.HttpResponseParser(self)
        self._until_close = False
        self._done = loop.create_future()
        self._capture = capture
        self._arm(loop, capture)
        if self.closed:
            self._finish(("connection_error", "the connection was closed"))
        else:
            self._transport.write(request)
            capture.sent_ns = monotonic_ns()
        await self._done

    def _arm(self, loop: asyncio.AbstractEventLoop, capture: Capture) -> None:
        limits = self.client.limits
        spent_s = (monotonic_ns() - capture.dispatched_ns) / 1e9
        first_s = limits.first_byte_s
        if first_s is not None and first_s < limits.total_s:
            self._timer = loop.call_later(first_s - spent_s, self._first_is_due)
        else:
            self._timer = loop.call_later(limits.total_s - spent_s, self._all_is_due)

    def _first_is_due(self) -> None:
        capture, limits = self._capture, self.client.limits
        if capture is None or limits.first_byte_s is None:
            return
        if capture.first_byte_ns:
            left_s = limits.total_s - (monotonic_ns() - capture.dispatched_ns) / 1e9
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(left_s, self._all_is_due)
        else:
            words = f"no answer within {limits.first_byte_s:g} s"
            self.give_up("timeout", words)

    def _all_is_due(self) -> None:
        self.give_up("timeout", f"not finished within {self.client.limits.total_s:g} s")

    def give_up(self, kind: FailureKind, words: str) -> None:
        self._finish((kind, words))
        self.drop()

    def drop(self) -> None:
        self.closed = True
        self._transport.abort()

    def _finish(self, failure: tuple[FailureKind, str] | None) -> None:
        capture, done = self._capture, self._done
        if capture is None or done is None:
            return
        self._capture = None
        capture.end_ns = monotonic_ns() if failure else self._now_ns
        capture.failure = failure
        if self._timer is not None:
            self._timer.cancel()
        if not done.done():
            done.set_result(None)

    # -- the socket ----------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are no subclasses of asyncio.Transport.
        self._transport = cast(asyncio.Transport, transport)
        self.client._all.add(self)

    def data_received(self, data: bytes) -> None:
        now = monotonic_ns()
        capture = self._capture
        if capture is None:
            self.drop()
            return
        self._now_ns = now
        if not capture.first_byte_ns:
            capture.first_byte_ns = now
        capture.size_bytes += len(data)
        if capture.size_bytes > self._limit_bytes:
            words = f"the response is longer than {self._limit_bytes} bytes"
            self.give_up("invalid_response", words)
            return
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self.give_up("invalid_response", f"not HTTP: {error}")

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self.closed = True
        self.client._all.discard(self)
        capture = self._capture
        if capture is None:
            return
        if self._until_close and exc is None:
            self._now_ns = monotonic_ns()
            self._finish(None)
        elif capture.status:
            words = str(exc or "the server closed the connection mid-response")
            self._finish(("cut_short", words))
        else:
            words = str(exc or "the server closed the connection without an answer")
            self._finish(("connection_error", words))

    def resume_writing(self) -> None:
        if self._capture is not None:
            self._capture.sent_ns = monotonic_ns()

    # -- the response, called by httptools ------------------------------------------

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._capture is not None:
            text = value.decode("latin-1")
            self._capture.headers.append((name.decode("latin-1").lower(), text))

    def on_headers_complete(self) -> None:
        capture = self._capture
        if capture is None:
            return
        status = self._parser.get_status_code()
        if 100 <= status < 200:
            capture.headers.clear()
            return
        capture.status = status
        framed = capture.header("transfer-encoding") or capture.header("content-length")
        self._until_close = framed is None

    def on_body(self, body: bytes) -> None:
        capture = self._capture
        if capture is None:
            return
        stamps = capture.stamps
        if stamps and stamps[-1] == self._now_ns:
            capture.pieces[-1] += body
        else:
            stamps.append(self._now_ns)
            capture.pieces.append(body)

    def on_message_complete(self) -> None:
        capture = self._capture
        if capture is None or not capture.status:
            return
        keep = self._parser.should_keep_alive()
        self._finish(None)
        self.idle_since_ns = self._now_ns
        if keep and not self.closed:
            self.client._came_back(self)
        else:
            self.closed = True
            self._transport.close()


def _died_in_silence(capture: Capture) -> bool:
    """Whether the connection was closed before a byte of the answer came."""
    failure = capture.failure
    return (
        failure is not None
        and failure[0] == "connection_error"
        and not capture.first_byte_ns
    )
