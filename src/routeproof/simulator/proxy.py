"""The fault proxy: the faults of a stream in front of any real engine."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from random import Random
from urllib.parse import urlsplit

import httptools
import msgspec

from routeproof.errors import ConfigError
from routeproof.simulator.defects import Defects, StreamDefects
from routeproof.simulator.http import Connection, end_serving, protocol
from routeproof.simulator.pipe import Pipe
from routeproof.simulator.stream_filter import StreamFilter, edited, stripped_body

_HOP = frozenset(
    {"connection", "content-length", "host", "keep-alive", "transfer-encoding"}
)
_TIMEOUT_S = 600.0


@dataclass(slots=True)
class _Answer:
    """Callbacks for httptools; collects what the engine sends."""

    headers: dict[str, str] = field(default_factory=dict)
    fresh: list[bytes] = field(default_factory=list)
    head_done: bool = False
    done: bool = False

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        self.head_done = True

    def on_body(self, body: bytes) -> None:
        self.fresh.append(body)

    def on_message_complete(self) -> None:
        self.done = True


class FaultProxy:
    """Passes requests on to an engine and its answers back, faults between.

    Args:
        upstream: Root URL of the engine, without ``/v1``.
        defects: Of these only the faults of the stream are used.
        seed: Decides which responses a share falls on.
    """

    def __init__(
        self,
        upstream: str,
        defects: Defects,
        loop: asyncio.AbstractEventLoop,
        seed: int = 7,
    ) -> None:
        parts = urlsplit(upstream)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConfigError(f"not the URL of an engine: {upstream}")
        self._host = parts.hostname
        self._port = parts.port or (443 if parts.scheme == "https" else 80)
        self._tls = ssl.create_default_context() if parts.scheme == "https" else None
        self._prefix = parts.path.rstrip("/").removesuffix("/v1")
        self._wrong: StreamDefects = defects.stream
        self._loop = loop
        self._rng = Random(seed)
        self._tasks: dict[Connection, asyncio.Task[None]] = {}
        self.connections: set[Connection] = set()

    # -- from the client ------------------------------------------------------------

    def opened(self, connection: Connection) -> None:
        """Know a client."""
        self.connections.add(connection)

    def dropped(self, connection: Connection) -> None:
        """Close the engine's side when the client has gone."""
        self.connections.discard(connection)
        task = self._tasks.pop(connection, None)
        if task is not None:
            task.cancel()

    def handle(
        self, connection: Connection, method: str, path: str, body: bytes
    ) -> None:
        """Pass one request on."""
        passing = self._pass_on(connection, method, path, body)
        self._tasks[connection] = self._loop.create_task(passing)

    def stop(self) -> None:
        """Drop every client."""
        for connection in list(self.connections):
            connection.abort()
        for task in self._tasks.values():
            task.cancel()

    # -- to the engine ----------------------------------------------------------------

    async def _pass_on(
        self, connection: Connection, method: str, path: str, body: bytes
    ) -> None:
        generates = method == "POST" and path.endswith("completions")
        wrong = self._wrong if generates else StreamDefects()
        through = StreamFilter(wrong, Random(self._rng.random()), len(self._tasks))
        refused = through.refused()
        if refused is not None:
            connection.respond(refused.status, refused.body, refused.kind)
            return
        try:
            async with asyncio.timeout(_TIMEOUT_S):
                request = self._request(connection, method, path, body, wrong)
                await self._exchange(connection, request, through, wrong)
        except (OSError, httptools.HttpParserError, TimeoutError) as error:
            words = msgspec.json.encode({"error": {"message": f"no engine: {error}"}})
            if connection.streaming:
                connection.cut()
            else:
                connection.respond(502, words)
        finally:
            if self._tasks.get(connection) is asyncio.current_task():
                del self._tasks[connection]

    def _request(
        self,
        connection: Connection,
        method: str,
        path: str,
        body: bytes,
        wrong: StreamDefects,
    ) -> bytes:
        sent = stripped_body(body, wrong.ignore_parameters)
        lines = [f"{method} {self._prefix}{path} HTTP/1.1", f"host: {self._host}"]
        lines += [f"{k}: {v}" for k, v in connection.headers.items() if k not in _HOP]
        lines += ["connection: close", f"content-length: {len(sent)}"]
        return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + sent

    async def _exchange(
        self,
        connection: Connection,
        request: bytes,
        through: StreamFilter,
        wrong: StreamDefects,
    ) -> None:
        reader, writer = await asyncio.open_connection(
            self._host, self._port, ssl=self._tls
        )
        try:
            writer.write(request)
            answer = _Answer()
            parser = httptools.HttpResponseParser(answer)
            while not answer.head_done:
                parser.feed_data(await _some(reader))
            kind = answer.headers.get("content-type", "application/json")
            status = parser.get_status_code()
            if "text/event-stream" in kind and status == 200:
                await self._stream(connection, reader, parser, answer, through)
                return
            while not answer.done and (data := await reader.read(1 << 16)):
                parser.feed_data(data)
            connection.respond(status, _edited(b"".join(answer.fresh), wrong), kind)
        finally:
            writer.close()

    async def _stream(
        self,
        connection: Connection,
        reader: asyncio.StreamReader,
        parser: httptools.HttpResponseParser,
        answer: _Answer,
        through: StreamFilter,
    ) -> None:
        over = self._loop.create_future()
        connection.start_stream()
        pipe = Pipe(connection, through, self._loop, lambda: over.set_result(None))
        rest = b""
        while through.ended is None:
            rest += b"".join(answer.fresh)
            answer.fresh.clear()
            *whole, rest = rest.replace(b"\r\n", b"\n").split(b"\n\n")
            pipe.push([event + b"\n\n" for event in whole])
            if answer.done or not (data := await reader.read(1 << 16)):
                break
            parser.feed_data(data)
        if not answer.done and through.ended is None:
            through.ended = "cut"
        pipe.finish()
        await over


async def _some(reader: asyncio.StreamReader) -> bytes:
    data = await reader.read(1 << 16)
    if not data:
        raise ConnectionError("the engine closed the connection without an answer")
    return data


def _edited(body: bytes, wrong: StreamDefects) -> bytes:
    if not (wrong.strip_fields or wrong.no_usage or wrong.usage_factor != 1.0):
        return body
    try:
        plain = msgspec.json.decode(body)
    except msgspec.DecodeError:
        return body
    if isinstance(plain, dict):
        edited(plain, wrong)
    return msgspec.json.encode(plain)


@dataclass(frozen=True, slots=True)
class Proxying:
    """A running fault proxy."""

    url: str
    port: int


@contextlib.asynccontextmanager
async def serve_proxy(
    upstream: str,
    defects: Defects,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    seed: int = 7,
) -> AsyncIterator[Proxying]:
    """Stand between clients and ``upstream`` while the block runs.

    Raises:
        ConfigError: ``upstream`` is no URL.
    """
    loop = asyncio.get_running_loop()
    handler = FaultProxy(upstream, defects, loop, seed)
    listening = await loop.create_server(protocol(handler), host, port, backlog=4096)
    bound = listening.sockets[0].getsockname()[1]
    try:
        yield Proxying(f"http://{host}:{bound}", bound)
    finally:
        await end_serving(listening, handler.stop)
