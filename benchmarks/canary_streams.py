"""The two ends of the relay's benchmark: an engine that streams, callers that time it.

Both are bare asyncio protocols on uvloop, so that they take little of the machine.
"""

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from time import perf_counter
from typing import cast

import uvloop

CHUNKS, PACE_S = 64, 0.01


def event(delta: dict[str, str], finish: str | None = None) -> bytes:
    """One chunk as engines send it."""
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    plain = {
        "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1_700_000_000,
        "model": "m", "choices": [choice],
    }  # fmt: skip
    return b"data: %b\n\n" % json.dumps(plain).encode()


def chunk(data: bytes) -> bytes:
    """Chunked framing."""
    return b"%x\r\n%b\r\n" % (len(data), data)


HEAD = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n"
)
WORD = chunk(event({"content": "word "}))
END = chunk(event({}, "stop")) + chunk(b"data: [DONE]\n\n") + b"0\r\n\r\n"


class Engine(asyncio.Protocol):
    """Answers each request with a stream: the first word at once, then by the clock.

    ``x-chunks`` and ``x-pace-us`` in the head change how many and how fast.
    """

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep it."""
        self.transport = cast("asyncio.Transport", transport)
        self.seen, self.need, self.head = 0, -1, b""
        self.writable = asyncio.Event()
        self.writable.set()

    def pause_writing(self) -> None:
        """The reader is slow."""
        self.writable.clear()

    def resume_writing(self) -> None:
        """It caught up."""
        self.writable.set()

    def data_received(self, data: bytes) -> None:
        """Count the request's bytes; answer when all are there."""
        self.seen += len(data)
        if self.need < 0:
            self.head += data
            head, end, _ = self.head.partition(b"\r\n\r\n")
            if not end:
                return
            self.head = head.lower()
            self.need = len(head) + 4 + self._number(b"content-length:", 0)
        if self.seen >= self.need:
            chunks = self._number(b"x-chunks:", CHUNKS)
            pace_us = self._number(b"x-pace-us:", round(PACE_S * 1e6))
            self.seen, self.need, self.head = 0, -1, b""
            self.transport.write(HEAD + WORD)
            if pace_us:
                loop = asyncio.get_running_loop()
                self._later(loop, loop.time() + pace_us / 1e6, pace_us / 1e6, chunks)
            else:
                self.task = asyncio.ensure_future(self._pour(chunks - 1))

    def _number(self, name: bytes, default: int) -> int:
        _, found, rest = self.head.partition(name)
        return int(rest.partition(b"\r")[0]) if found else default

    def _later(
        self, loop: asyncio.AbstractEventLoop, at_s: float, pace_s: float, left: int
    ) -> None:
        loop.call_at(at_s, self._next, loop, at_s, pace_s, left - 1)

    def _next(
        self, loop: asyncio.AbstractEventLoop, at_s: float, pace_s: float, left: int
    ) -> None:
        if self.transport.is_closing():
            return
        self.transport.write(WORD if left else END)
        if left:
            self._later(loop, at_s + pace_s, pace_s, left)

    async def _pour(self, left: int) -> None:
        while left > 0:
            await self.writable.wait()
            burst = min(left, 50)
            self.transport.write(WORD * burst)
            left -= burst
            await asyncio.sleep(0)
        self.transport.write(END)


def serve(port: int) -> None:
    """An engine until it is ended."""

    async def forever() -> None:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(Engine, "127.0.0.1", port, backlog=4096)
        await server.serve_forever()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(forever())


class Caller(asyncio.Protocol):
    """One connection; one stream at a time."""

    def __init__(self) -> None:
        self.done: asyncio.Future[float] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep it."""
        self.transport = cast("asyncio.Transport", transport)

    def ask(self, request: bytes) -> "asyncio.Future[float]":
        """Send; gives the seconds to the first event once the stream is whole."""
        self.done = asyncio.get_running_loop().create_future()
        self.tail, self.first_s, self.bytes = b"", 0.0, 0
        self.began_s = perf_counter()
        self.transport.write(request)
        return self.done

    def data_received(self, data: bytes) -> None:
        """Stamp the first event; look for the end."""
        self.bytes += len(data)
        if not self.first_s:
            if b"data:" not in data:
                return
            self.first_s = perf_counter() - self.began_s
        self.tail = (self.tail + data[-64:])[-64:]
        if self.tail.endswith(b"0\r\n\r\n") and b"[DONE]" in self.tail:
            if self.done is not None and not self.done.done():
                self.done.set_result(self.first_s)

    def connection_lost(self, exc: Exception | None) -> None:
        """Too early, when a stream runs."""
        if self.done is not None and not self.done.done():
            self.done.set_exception(ConnectionError(f"broke off: {self.tail[-64:]!r}"))


@dataclass(slots=True)
class Callers:
    """Kept connections to one port."""

    port: int
    idle: list[Caller] = field(default_factory=list)
    failed: int = 0

    async def one(self, request: bytes, at_s: float, took: Callable[..., None]) -> None:
        """One stream that begins at a time of the event loop's clock."""
        loop = asyncio.get_running_loop()
        await asyncio.sleep(max(0.0, at_s - loop.time()))
        caller = None
        while self.idle and (caller is None or caller.transport.is_closing()):
            caller = self.idle.pop()
        if caller is None or caller.transport.is_closing():
            _, caller = await loop.create_connection(Caller, "127.0.0.1", self.port)
        try:
            took(await caller.ask(request))
        except ConnectionError:
            self.failed += 1
        else:
            if not caller.transport.is_closing():
                self.idle.append(caller)

    def close(self) -> None:
        """Hang up."""
        for caller in self.idle:
            caller.transport.close()
        self.idle.clear()


def request(number: int, size: int, **headers: int) -> bytes:
    """A streamed chat request of about ``size`` bytes, of a caller of its own."""
    asked = {
        "model": "m", "stream": True, "user": f"user-{number}",
        "messages": [{"role": "user", "content": "a word " * (size // 7)}],
    }  # fmt: skip
    body = json.dumps(asked).encode()
    more = "".join(f"{k.replace('_', '-')}: {v}\r\n" for k, v in headers.items())
    top = (
        "POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n{more}\r\n"
    )
    return top.encode() + body
