"""One connection of a client: asyncio protocol and httptools, one answer at a time.

What a client may not do ends here: heads and bodies that come too slowly or grow too
long, bytes that are no HTTP. Requests sent ahead wait until their turn.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import cast

import httptools

from routeproof.canary.relay.alarm import Alarm
from routeproof.canary.relay.answers import BODILESS, answer_head, own_answer
from routeproof.canary.relay.connection import Headers
from routeproof.canary.relay.request import Limits, Request, Waiting, origin_form
from routeproof.canary.relay.roles import Listening, Serves

__all__ = ["Inbound", "Limits", "Serves"]

LINGER_S = 2.0
"""How long a refused client may still send before the connection is dropped."""

AHEAD_MAX = 4
"""With so many whole requests waiting, the connection is not read from."""

LONG_BODY_BYTES = 64 * 1024
"""Of a longer body with a length the parser sees no more than came with its head."""


class Inbound(asyncio.Protocol):
    """The server's side of one client connection."""

    def __init__(
        self, serves: Serves, limits: Limits, others: "set[Inbound] | None" = None
    ) -> None:
        self.serves = serves
        self.limits = limits
        self.others = others
        self.listening: Listening | None = None
        self.is_last = False
        self.is_busy = False
        self.is_gone = False
        self.parser = httptools.HttpRequestParser(self)
        self._transport: asyncio.Transport | None = None
        self._ready: deque[Waiting] = deque()
        self._is_held = False
        self._refusal: tuple[int, str] | None = None
        self._is_deaf = False
        self._corked: list[bytes] | None = None
        self._phase = ""
        self._alarm = Alarm(self._too_slow)
        self._is_bodiless = False
        self._is_old = False
        self._is_chunked = False
        self._is_alone = True  # what came last holds no end of another request
        self._clear()

    def _clear(self) -> None:
        self._url = b""
        self._headers: Headers = []
        self._pieces: list[bytes] = []
        self._size = 0
        self._length = 0
        self._head_size = 0
        self._has_begun = False
        self._has_head = False

    # What the transport tells.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start the clock of the first head."""
        self._transport = cast("asyncio.Transport", transport)
        if self.others is not None:
            self.others.add(self)
        self._wait_for("head")

    def data_received(self, data: bytes) -> None:
        """Feed the parser; serve what became whole."""
        if self._is_deaf:
            return
        if self._length:
            data = self._rest_of_body(data)
        self._is_alone = True
        try:
            if data:
                self.parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._is_deaf = True  # we switch to nothing
        except httptools.HttpParserError:
            self._refuse(400, "that is not HTTP/1.1")
        if self._has_begun and not self._has_head and self._is_alone:
            self._head_size += len(data)
            if self._head_size > self.limits.header_bytes:
                self._refuse(431, "request head too large")
        self._go_on()

    def _rest_of_body(self, data: bytes) -> bytes:
        """Take what belongs to a long body; what follows it is another request's.

        The parser is left in the middle of it, and another one goes on.
        """
        left = self._length - self._size
        piece = data if len(data) <= left else data[:left]
        self._pieces.append(piece)
        self._size += len(piece)
        if len(piece) == left:
            self.on_message_complete()
            self.parser = httptools.HttpRequestParser(self)
            if self._is_deaf:
                return b""
        return data[len(piece) :]

    def eof_received(self) -> bool:
        """A client that stops sending is taken as gone."""
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """Nobody is waited for any more."""
        self.is_gone = True
        if self.others is not None:
            self.others.discard(self)
        self._alarm.stop()
        self._ready.clear()
        listening, self.listening = self.listening, None
        if listening is not None:
            listening.client_gone()

    def pause_writing(self) -> None:
        """The client does not keep up."""
        if self.listening is not None:
            self.listening.client_full()

    def resume_writing(self) -> None:
        """The client caught up."""
        if self.listening is not None:
            self.listening.client_ready()

    # What the parser tells.

    def on_message_begin(self) -> None:
        """A head begins."""
        self._clear()
        self._has_begun = True

    def on_url(self, url: bytes) -> None:
        """The target, or a piece of it."""
        self._url += url
        self._head_size += len(url)
        if self._head_size > self.limits.header_bytes:
            self._refuse(431, "request target too long")

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep a header; trailers after the body are ignored."""
        if self._has_head or self._refusal is not None:
            return
        self._head_size += len(name) + len(value)
        if self._head_size > self.limits.header_bytes:
            self._refuse(431, "request headers too large")
            return
        self._headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        """The head is whole: a body that is announced too large is not read."""
        if self._has_head or self._refusal is not None:
            return
        self._has_head = True
        self._head_size = 0
        for name, value in self._headers:
            if name == b"content-length":
                self._announced(int(value))
            elif name == b"expect" and value.lower() == b"100-continue":
                self._encourage()

    def _announced(self, length: int) -> None:
        """The parser lets no other length and no chunks stand beside this one."""
        if length > self.limits.body_bytes:
            self._refuse(413, f"body above {self.limits.body_bytes} bytes")
        elif length > LONG_BODY_BYTES:
            self._length = length

    def _encourage(self) -> None:
        if not (self.is_busy or self._ready):
            self._write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def on_body(self, body: bytes) -> None:
        """A piece of the body, counted while it comes."""
        self._size += len(body)
        if self._size > self.limits.body_bytes:
            self._refuse(413, f"body above {self.limits.body_bytes} bytes")
        elif self._refusal is None:
            self._pieces.append(body)

    def on_message_complete(self) -> None:
        """The request is whole."""
        if self._refusal is not None:
            return
        target = origin_form(self._url)
        method = self.parser.get_method().decode("latin-1")
        if target is None or method == "CONNECT":
            self._refuse(400, "the request names no path of this server")
            return
        self._is_alone = False
        pieces = self._pieces
        body = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        parser = self.parser
        is_old = parser.get_http_version() != "1.1"
        is_last = is_old or not parser.should_keep_alive() or parser.should_upgrade()
        self._is_deaf = self._is_deaf or is_last
        request = Request(method, target, self._headers, body)
        self._ready.append(Waiting(request, is_old, is_last))
        self._clear()

    # One request after the other.

    def _go_on(self) -> None:
        """Serve what waits, refuse what must be, set the clock."""
        if self.is_gone or self._transport is None:
            return
        if not self.is_busy:
            if self._ready:
                self._serve(self._ready.popleft())
                return
            if self._refusal is not None:
                status, message = self._refusal
                self._is_bodiless = self._is_old = False
                self.is_busy = True
                self.answer(status, message, is_last=True)
                return
            if self.is_last:
                self._close()
                return
        elif len(self._ready) >= AHEAD_MAX:
            self._hold(True)
        self._wait_for(self._state())

    def _serve(self, waiting: Waiting) -> None:
        request, self._is_old, is_last = waiting
        self.is_last = self.is_last or is_last
        self._is_bodiless = request.method == "HEAD"
        self.is_busy = True
        self._hold(len(self._ready) >= AHEAD_MAX)
        self._wait_for("")
        self.serves.begin(request, self)

    def _hold(self, is_held: bool) -> None:
        if is_held is self._is_held or self._transport is None:
            return
        self._is_held = is_held
        if is_held:
            self._transport.pause_reading()
        else:
            self._transport.resume_reading()

    def _state(self) -> str:
        if self.is_busy:
            return ""
        if self._has_head:
            return "body"
        return "head" if self._has_begun or self._phase == "head" else "idle"

    def _refuse(self, status: int, message: str) -> None:
        self._is_deaf = True
        if self._refusal is None:
            self._refusal = (status, message)

    def _wait_for(self, phase: str) -> None:
        """Set the clock for what must come next; nothing when we are to act."""
        if phase == self._phase:
            return
        self._phase = phase
        if phase:
            limits = self.limits
            self._alarm.set(limits.idle_s if phase == "idle" else limits.receive_s)
        else:
            self._alarm.clear()

    def _too_slow(self) -> None:
        if self._phase == "body":
            seconds = f"{self.limits.receive_s:g} s"
            self._refuse(408, f"the body did not come within {seconds}")
            self._go_on()
        else:
            self.abort()

    # What the relay says.

    def start(self, status: int, headers: Headers) -> None:
        """Begin an answer; without ``content-length`` its body is sent in chunks."""
        self._is_bodiless = self._is_bodiless or status in BODILESS
        self._is_chunked = not (
            self._is_bodiless
            or self._is_old
            or any(name == b"content-length" for name, _ in headers)
        )
        chunked, last = self._is_chunked, self.is_last
        self._write(answer_head(status, headers, is_chunked=chunked, is_last=last))

    def piece(self, data: bytes) -> None:
        """A piece of the body, not empty."""
        if self._is_chunked:
            self._write(b"%x\r\n%b\r\n" % (len(data), data))
        elif not self._is_bodiless:
            self._write(data)

    def takes_chunks(self) -> Callable[[bytes], None] | None:
        """Who takes pieces that are chunks already; ``None`` when nobody does."""
        if self._is_chunked and not self.is_gone and self._transport is not None:
            return self._transport.write
        return None

    def finish(self) -> None:
        """The answer is whole; the next request may have come already."""
        if self._is_chunked:
            self._write(b"0\r\n\r\n")
        self._is_chunked = self.is_busy = False
        self.listening = None
        if self._refusal is None and self.is_last and not self._ready:
            self._close()
        elif self._ready:
            asyncio.get_running_loop().call_soon(self._go_on)
        else:
            self._go_on()

    def answer(
        self,
        status: int,
        message: str,
        *,
        retry_after: int | None = None,
        is_last: bool = False,
    ) -> None:
        """A whole answer of our own.

        ``is_last`` closes the connection: what is left of a request is not read.
        """
        headers, body = own_answer(status, message, retry_after)
        self.is_last = self.is_last or is_last
        self.start(status, headers)
        self.piece(body)
        if not is_last:
            self.finish()
            return
        self._is_deaf, self.listening = True, None
        self._ready.clear()
        self._linger()

    def break_off(self) -> None:
        """End an answer that cannot be whole: the framing stays broken."""
        self.listening = None
        self._ready.clear()
        self._is_deaf = True
        self._close()

    def end_after_answer(self) -> None:
        """The server stops: close now, or when the running answer is out."""
        self.is_last = True
        if not self.is_busy:
            self._close()

    def abort(self) -> None:
        """Drop the connection now."""
        if self._transport is not None:
            self._transport.abort()

    def _linger(self) -> None:
        """Let a refused client read why, though it may still be sending."""
        transport = self._transport
        if transport is None or self.is_gone:
            return
        self.uncork()
        self._wait_for("")
        if not transport.can_write_eof():
            transport.close()
            return
        transport.write_eof()
        self._alarm.act = transport.abort
        self._alarm.set(LINGER_S)

    def cork(self) -> None:
        """Keep what is said until ``uncork``: it goes out in one write."""
        self._corked = []

    def uncork(self) -> None:
        """Send what was kept."""
        kept, self._corked = self._corked, None
        if kept and not self.is_gone and self._transport is not None:
            self._transport.writelines(kept)

    def _write(self, data: bytes) -> None:
        if self._corked is not None:
            self._corked.append(data)
        elif not self.is_gone and self._transport is not None:
            self._transport.write(data)

    def _close(self) -> None:
        self.uncork()
        if self._transport is not None:
            self._transport.close()
