"""One connection to an upstream: asyncio protocol and httptools, one answer at a time.

Bodies are kept as the bytes that came, content encoding included; only the framing
(chunked, length) is undone.
"""

import asyncio
import select
from collections import deque
from collections.abc import Callable
from typing import cast

import httptools

HIGH_WATER_BYTES = 256 * 1024
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


class Connection(asyncio.Protocol):
    """One connection; serves one exchange after the other.

    Attributes:
        on_change: Called, on the event loop, after each batch of bytes was parsed and
            when the connection is lost; reads what changed from the other fields.
        passed_bytes: Length of the payload that ``pass_chunks`` took by the parser.
        passed_s: When it took the last chunk, on the loop's clock.
        last_chunk: That chunk; empty when parsed bytes came after it.
    """

    def __init__(self) -> None:
        self.transport: asyncio.Transport | None = None
        self.is_closed = False
        self.on_change: Callable[[], None] | None = None
        self._poll: select.poll | None = None
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
        self.is_bodiless = False
        self.is_serving = False
        self._is_between = False
        self._pass_on: Callable[[bytes], None] | None = None
        self._tee: Callable[[bytes, float], None] | None = None
        self.passed_bytes = 0
        self.passed_s = 0.0
        self.last_chunk = b""

    def begin(self, data: list[bytes], *, is_bodiless: bool = False) -> None:
        """Send the next request; ``is_bodiless`` says that it is a ``HEAD``."""
        self._reset()
        self.is_serving, self.is_bodiless = True, is_bodiless
        assert self.transport is not None
        self.transport.writelines(data)

    def pass_chunks(
        self,
        write: Callable[[bytes], None],
        now: Callable[[], float],
        tee: Callable[[bytes, float], None] | None,
    ) -> None:
        """Give every read that is one whole chunk to ``write``, framing and all.

        Most reads of a stream are. The parser, which stands between two chunks, need
        not see them. Taken for a chunk is only what nobody could read otherwise: the
        size in small letters without zeros before it, no extension, at least four
        bytes, nothing after.

        Args:
            write: Takes the chunk.
            now: The loop's clock.
            tee: Takes the payload of each chunk and when it came.
        """
        self._pass_on, self._now, self._tee = write, now, tee

    def parse_all(self) -> None:
        """No more of ``pass_chunks``."""
        self._pass_on = self._tee = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self.transport = cast("asyncio.Transport", transport)  # uvloop's is no subclass
        socket = transport.get_extra_info("socket")
        if socket is not None:
            self._poll = select.poll()
            self._poll.register(socket.fileno(), select.POLLIN)

    def is_quiet(self) -> bool:
        """Whether nothing waits to be read: no stray bytes and no close.

        Asked before a kept connection serves again, for what came may not have been
        seen by the event loop yet.
        """
        return self._poll is None or not self._poll.poll(0)

    def data_received(self, data: bytes) -> None:
        """Feed the parser; what is not HTTP ends the exchange.

        Bytes that nobody asked for (after the end of an answer, or on a connection
        that waits for its next request) would be taken for the next answer: such a
        connection never serves again.
        """
        if self._is_between and self._pass_on is not None:
            start = data.find(b"\r\n", 0, 10) + 2
            size = len(data) - start - 2
            if (
                start > 2
                and size > 3
                and data.startswith(b"%x\r\n" % size)
                and data.endswith(b"\r\n")
            ):
                self.passed_s = self._now()
                if self._tee is not None:
                    self._tee(data[start:-2], self.passed_s)
                self.passed_bytes += size
                self.last_chunk = data
                self._pass_on(data)
                return
        if not self.is_serving or self.is_complete:
            self.can_reuse = False
            self.close()
            return
        self.has_bytes = True
        self.last_chunk = b""
        try:
            self.parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            if not self.is_complete and self.error is None:
                kind = type(error) is httptools.HttpParserUpgrade
                said = "it switched protocols" if kind else str(error)
                self.error = f"not HTTP: {said}"
            self.close()
        self._is_between = self._is_between and data.endswith(b"\r\n")
        self._wake()

    def eof_received(self) -> bool:
        """A close ends a body without length, and breaks every other one."""
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """End the exchange that is under way."""
        self.is_closed = True
        if not self.is_complete and self.error is None:
            if self.has_head and exc is None and not self._is_framed():
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
        if self.has_head:
            return
        status = self.parser.get_status_code()
        if 100 <= status < 200:
            self.headers = []
            return
        self.status = status
        self.has_head = True
        self.is_complete = self.is_bodiless

    def on_body(self, body: bytes) -> None:
        """Buffer a piece; stop reading when the client side is slow."""
        if self.is_complete:
            return
        self.chunks.append(body)
        self.buffered += len(body)
        if self.buffered > HIGH_WATER_BYTES:
            self.pause()

    def on_chunk_header(self) -> None:
        """A chunk begins."""
        self._is_between = False

    def on_chunk_complete(self) -> None:
        """A chunk is over; what follows in the same bytes may begin the next one."""
        self._is_between = True

    def on_message_complete(self) -> None:
        """The body is whole; the connection may serve again if both sides agree."""
        self._is_between = False
        if not self.has_head or self.is_complete:
            return
        self.is_complete = True
        self.can_reuse = self.parser.should_keep_alive()

    def take(self) -> bytes:
        """Everything buffered, as one piece."""
        data = self.chunks[0] if len(self.chunks) == 1 else b"".join(self.chunks)
        self.chunks.clear()
        if self.buffered > HIGH_WATER_BYTES:
            self.resume()
        self.buffered = 0
        return data

    def pause(self) -> None:
        """Read nothing more until ``resume``."""
        if not self.is_paused and self.transport is not None:
            self.is_paused = True
            if not self.transport.is_closing():
                self.transport.pause_reading()

    def resume(self) -> None:
        """Read again."""
        if self.is_paused and self.transport is not None:
            self.is_paused = False
            if not self.transport.is_closing():
                self.transport.resume_reading()

    async def wait(self, seconds: float, what: str) -> None:
        """Wait until something new came.

        Raises:
            UpstreamError: Nothing came in time.
        """
        loop = asyncio.get_running_loop()
        waiter = loop.create_future()
        handle = loop.call_later(seconds, _give_up, waiter)
        self.on_change = lambda: _give(waiter)
        try:
            await waiter
        except TimeoutError:
            self.close()
            raise UpstreamError(
                f"no {what} in time",
                status=504,
                is_before_first_byte=not self.has_bytes,
            ) from None
        finally:
            handle.cancel()
            self.on_change = None

    def _wake(self) -> None:
        if self.on_change is not None:
            self.on_change()

    def on_message_begin(self) -> None:
        """A second answer to one request makes the connection useless."""
        if self.is_complete:
            self.can_reuse = False

    def close(self) -> None:
        """Drop the connection now; upstream sees it at once."""
        self.is_closed = True
        self._is_between = False
        if self.transport is not None:
            self.transport.abort()


def _give(waiter: "asyncio.Future[None]") -> None:
    if not waiter.done():
        waiter.set_result(None)


def _give_up(waiter: "asyncio.Future[None]") -> None:
    if not waiter.done():
        waiter.set_exception(TimeoutError())
