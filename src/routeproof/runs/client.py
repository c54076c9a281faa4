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
from urllib.parse import urlsplit

from routeproof.engines.endpoint import Endpoint
from routeproof.runs.capture import Capture, FailureKind
from routeproof.runs.connection import Connection, Limits

__all__ = ["Client", "Limits"]

_DEFAULT_PORTS = {"http": 80, "https": 443}


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
        self._idle: list[Connection] = []
        self._all: set[Connection] = set()

    async def open(self, n: int) -> None:
        """Have ``n`` idle connections ready, so that none is opened on the clock.

        A connection that cannot be opened is left to the request that needs it.
        """
        self._drop_stale()
        missing = n - len(self._idle)
        if missing > 0:
            made = [self._connect() for _ in range(missing)]
            for result in await asyncio.gather(*made, return_exceptions=True):
                if isinstance(result, Connection):
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
        connection: Connection, request: bytes, capture: Capture
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

    def _take_idle(self) -> Connection | None:
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

    def _new_connection(self) -> Connection:
        return Connection(self.limits, self._all, self._came_back)

    async def _connect(self) -> Connection:
        loop = asyncio.get_running_loop()
        address = self._address
        name = address.host if address.tls else None
        async with asyncio.timeout(self.limits.connect_s):
            if address.unix_socket:
                _, connection = await loop.create_unix_connection(
                    self._new_connection,
                    address.unix_socket,
                    ssl=address.tls,
                    server_hostname=name,
                )
            else:
                _, connection = await loop.create_connection(
                    self._new_connection,
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

    def _came_back(self, connection: Connection) -> None:
        connection.answers += 1
        if self.keeps_alive:
            self._idle.append(connection)
        else:
            connection.drop()


def _died_in_silence(capture: Capture) -> bool:
    """Whether the connection was closed before a byte of the answer came."""
    failure = capture.failure
    return (
        failure is not None
        and failure[0] == "connection_error"
        and not capture.first_byte_ns
    )
