"""One HTTP/1.1 connection of the streaming client, on a raw asyncio protocol."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic_ns
from typing import cast

import httptools

from routeproof.runs.capture import Capture, FailureKind


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


class Connection(asyncio.Protocol):
    """One connection; at most one request at a time.

    Attributes:
        closed: It can take no further request.
        answers: Responses that came over it.
        idle_since_ns: When the last one ended.
    """

    def __init__(
        self,
        limits: Limits,
        joined: "set[Connection]",
        came_back: "Callable[[Connection], None]",
    ) -> None:
        """While open it is in ``joined``; ``came_back`` takes it when idle again."""
        self._limits = limits
        self._joined = joined
        self._came_back = came_back
        self.closed = False
        self.answers = 0
        self.idle_since_ns = monotonic_ns()
        self._limit_bytes = limits.response_bytes
        self._capture: Capture | None = None
        self._done: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._now_ns = 0

    # -- the request ---------------------------------------------------------------

    async def exchange(self, request: bytes, capture: Capture) -> None:
        """Send a request and wait until its response has ended or failed."""
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
        limits = self._limits
        spent_s = (monotonic_ns() - capture.dispatched_ns) / 1e9
        first_s = limits.first_byte_s
        if first_s is not None and first_s < limits.total_s:
            self._timer = loop.call_later(first_s - spent_s, self._first_is_due)
        else:
            self._timer = loop.call_later(limits.total_s - spent_s, self._all_is_due)

    def _first_is_due(self) -> None:
        capture, limits = self._capture, self._limits
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
        self.give_up("timeout", f"not finished within {self._limits.total_s:g} s")

    def give_up(self, kind: FailureKind, words: str) -> None:
        """End the request that is in flight, if any, and the connection."""
        self._finish((kind, words))
        self.drop()

    def drop(self) -> None:
        """Close at once; what is in flight notices when the socket is gone."""
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
        """The event loop has connected."""
        # uvloop's transports are no subclasses of asyncio.Transport.
        self._transport = cast(asyncio.Transport, transport)
        self._joined.add(self)

    def data_received(self, data: bytes) -> None:
        """A socket read: stamp first."""
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
        except httptools.HttpParserUpgrade:
            self.give_up("invalid_response", "the server switched to another protocol")
        except httptools.HttpParserError as error:
            self.give_up("invalid_response", f"not HTTP: {error}")

    def eof_received(self) -> bool:
        """The server will send no more: close."""
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """The socket is gone; a response until close ends well by it."""
        self.closed = True
        self._joined.discard(self)
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
        """The socket has taken a request that was too large for one write."""
        if self._capture is not None:
            self._capture.sent_ns = monotonic_ns()

    # -- the response, called by httptools ------------------------------------------

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header of the response."""
        if self._capture is not None:
            text = value.decode("latin-1")
            self._capture.headers.append((name.decode("latin-1").lower(), text))

    def on_headers_complete(self) -> None:
        """The head is whole; interim ones (1xx) are forgotten."""
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
        """A piece of the body, without its framing."""
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
        """The response is whole."""
        capture = self._capture
        if capture is None or not capture.status:
            return
        keep = self._parser.should_keep_alive()
        self._finish(None)
        self.idle_since_ns = self._now_ns
        if keep and not self.closed:
            self._came_back(self)
        else:
            self.closed = True
            self._transport.close()
