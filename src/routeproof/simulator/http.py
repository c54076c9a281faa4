"""The HTTP side: a keep-alive server protocol on raw asyncio transports."""

import asyncio
from collections.abc import Callable
from typing import Protocol, cast

import httptools

REASONS = {
    200: "OK",
    400: "Bad Request",
    404: "Not Found",
    405: "Method Not Allowed",
    413: "Content Too Large",
    429: "Too Many Requests",
    500: "Internal Server Error",
    502: "Bad Gateway",
    503: "Service Unavailable",
}
MAX_BODY_BYTES = 256 << 20
END_OF_CHUNKS = b"0\r\n\r\n"
STREAM_HEAD = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\n"
    b"cache-control: no-cache\r\ntransfer-encoding: chunked\r\n\r\n"
)


class Handler(Protocol):
    """What the connection asks of the server."""

    def handle(
        self, connection: "Connection", method: str, path: str, body: bytes
    ) -> None:
        """Answer a request, now or later, on the connection."""
        ...

    def opened(self, connection: "Connection") -> None:
        """A client has come."""
        ...

    def dropped(self, connection: "Connection") -> None:
        """The client went away."""
        ...


class Connection(asyncio.Protocol):
    """One client connection; one request at a time, the next one waits its turn."""

    def __init__(self, handler: Handler) -> None:
        self._handler = handler
        self._parser = httptools.HttpRequestParser(self)
        self._transport: asyncio.Transport | None = None
        self._url = b""
        self._body: list[bytes] = []
        self._queue: list[tuple[str, str, bytes, bool]] = []
        self.busy = False
        self.streaming = False
        self._keep_alive = True
        self.headers: dict[str, str] = {}

    # -- from the socket -----------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Remember where to write."""
        # uvloop's transports are no subclass of asyncio's.
        self._transport = cast(asyncio.Transport, transport)
        self._handler.opened(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell the server that nobody listens any more."""
        self._transport = None
        self._handler.dropped(self)

    def data_received(self, data: bytes) -> None:
        """Feed the parser."""
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError:
            self.respond(400, b'{"error":{"message":"not HTTP"}}')
            self.close()

    # -- from the parser ------------------------------------------------------------

    def on_message_begin(self) -> None:
        """Forget the request before."""
        self._url, self._body, self.headers = b"", [], {}

    def on_url(self, url: bytes) -> None:
        """A piece of the target."""
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """One header."""
        self.headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_body(self, body: bytes) -> None:
        """A piece of the body."""
        self._body.append(body)

    def on_message_complete(self) -> None:
        """A whole request: answer it, or queue it behind the one being answered."""
        path = self._url.split(b"?", 1)[0].decode("latin-1")
        method = self._parser.get_method().decode("latin-1")
        request = (method, path, b"".join(self._body), self._parser.should_keep_alive())
        if self.busy:
            self._queue.append(request)
        else:
            self._begin(request)

    def _begin(self, request: tuple[str, str, bytes, bool]) -> None:
        method, path, body, self._keep_alive = request
        self.busy = True
        self._handler.handle(self, method, path, body)

    # -- to the client -----------------------------------------------------------------

    @property
    def open(self) -> bool:
        """Whether anybody still listens."""
        return self._transport is not None and not self._transport.is_closing()

    @property
    def file(self) -> int:
        """The socket's file descriptor, -1 when the client has gone."""
        if self._transport is None:
            return -1
        return int(self._transport.get_extra_info("socket").fileno())

    @property
    def waiting_bytes(self) -> int:
        """Bytes the loop still holds because the socket did not take them."""
        return self._transport.get_write_buffer_size() if self._transport else 0

    def write(self, data: bytes) -> None:
        """Raw bytes, dropped when the client has gone."""
        if self.open and self._transport is not None:
            self._transport.write(data)

    def respond(self, status: int, body: bytes, kind: str = "application/json") -> None:
        """A whole response."""
        head = (
            f"HTTP/1.1 {status} {REASONS.get(status, 'Unknown')}\r\n"
            f"content-type: {kind}\r\ncontent-length: {len(body)}\r\n\r\n"
        )
        self.write(head.encode() + body)
        self.finish()

    def start_stream(self) -> None:
        """Head of an event stream."""
        self.streaming = True
        self.write(STREAM_HEAD)

    def chunk(self, data: bytes) -> None:
        """A part of a stream."""
        if data:
            self.write(b"%x\r\n%b\r\n" % (len(data), data))

    def end_stream(self) -> None:
        """The proper end of a stream."""
        self.write(END_OF_CHUNKS)
        self.finish()

    def cut(self) -> None:
        """End a stream in the middle: the connection closes, no last chunk comes."""
        self.busy = False
        self.close()

    def finish(self) -> None:
        """The response is complete: close, or go on with the next request."""
        self.busy = self.streaming = False
        if not self._keep_alive:
            self.close()
        elif self._queue:
            self._begin(self._queue.pop(0))

    def close(self) -> None:
        """Close after what was written."""
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """Reset the connection."""
        if self._transport is not None:
            self._transport.abort()


def protocol(handler: Handler) -> Callable[[], Connection]:
    """A factory for ``loop.create_server``."""
    return lambda: Connection(handler)


async def end_serving(listening: asyncio.Server, stop: Callable[[], None]) -> None:
    """Stop listening, drop every client, and wait until their sockets are closed.

    A connection that was just accepted gets its protocol some turns of the loop later,
    and an aborted one closes its socket in the turn after.
    """
    listening.close()
    for _ in range(5):
        await asyncio.sleep(0)
    stop()
    await listening.wait_closed()
    for _ in range(3):
        await asyncio.sleep(0)
