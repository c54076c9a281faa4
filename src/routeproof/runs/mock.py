"""A fast stand-in for an engine that knows when it really wrote each chunk.

The self-test and the benchmarks measure the client against it. It runs in a process
of its own (``python -m routeproof.runs.mock``), prints its port, and ends when its
standard input closes. Every stream follows an absolute schedule from the arrival of
its request; the true times are asked for with ``GET /log`` and forgotten with that.

``time.monotonic_ns`` is one clock for all processes of a Linux machine, so its times
and the client's can be subtracted.
"""

import argparse
import asyncio
import heapq
import math
import os
import sys
from collections.abc import Sequence
from time import monotonic_ns

import msgspec
import uvloop

_HEAD = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n"
)
_MODEL_LIST = b'{"object":"list","data":[{"id":"mock","object":"model"}]}'
_MODELS = (
    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
    b"Content-Length: %d\r\n\r\n%b" % (len(_MODEL_LIST), _MODEL_LIST)
)
"""Other load generators ask first whether anybody is there."""

_NOT_FOUND = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"


class Shape(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What every answer looks like.

    Attributes:
        first_s: From the arrival of the request to the first chunk.
        gap_s: Between chunks.
        chunks: Chunks with content.
        tokens_per_chunk: As the usage count has it.
        text: Content of each chunk.
    """

    first_s: float = 0.1
    gap_s: float = 0.01
    chunks: int = 64
    tokens_per_chunk: int = 1
    text: str = "word "


class Served(msgspec.Struct, frozen=True, array_like=True):
    """The truth about one request, in monotonic nanoseconds.

    Attributes:
        late_ns: Worst distance of a write behind its schedule.
    """

    request_id: str
    arrived_ns: int
    first_write_ns: int
    last_write_ns: int
    late_ns: int


def _http_chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def _event(delta: dict[str, str], finish: str | None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    body = {"id": "mock", "object": "chat.completion.chunk", "choices": [choice]}
    return b"data: %b\n\n" % msgspec.json.encode(body)


def encode(shape: Shape) -> tuple[bytes, bytes, bytes]:
    """First write (head and first chunk), each further chunk, and the end."""
    chunk = _http_chunk(_event({"content": shape.text}, None))
    counts = {
        "prompt_tokens": 8,
        "completion_tokens": shape.chunks * shape.tokens_per_chunk,
    }
    usage = b"data: %b\n\n" % msgspec.json.encode({"choices": [], "usage": counts})
    end = _http_chunk(_event({}, "stop") + usage + b"data: [DONE]\n\n") + b"0\r\n\r\n"
    return _HEAD + chunk, chunk, end


class _Wheel:
    """Writes what is due; one timer for all streams."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._due: list[tuple[int, int, _Connection]] = []
        self._number = 0
        self._timer_ns = 0

    def add(self, due_ns: int, connection: "_Connection") -> None:
        self._number += 1
        heapq.heappush(self._due, (due_ns, self._number, connection))
        if not self._timer_ns or due_ns < self._timer_ns:
            self._ring_at(due_ns)

    def _ring_at(self, due_ns: int) -> None:
        self._timer_ns = due_ns
        wait_ms = max(0, math.ceil((due_ns - monotonic_ns()) / 1e6))
        self._loop.call_later(wait_ms / 1e3, self._ring)

    def _ring(self) -> None:
        due, now_ns = self._due, monotonic_ns()
        self._timer_ns = 0
        while due and due[0][0] <= now_ns:
            due_ns, _, connection = heapq.heappop(due)
            connection.write_next(due_ns)
        if due and not self._timer_ns:
            self._ring_at(due[0][0])


class _Connection(asyncio.Protocol):
    def __init__(self, shape: Shape, wheel: _Wheel, log: list[Served]) -> None:
        self._shape = shape
        self._wheel = wheel
        self._log = log
        self._parts = encode(shape)
        self._first_ns = int(shape.first_s * 1e9)
        self._gap_ns = int(shape.gap_s * 1e9)
        self._buffer = b""
        self._closed = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: asyncio.Transport = transport  # type: ignore[assignment]

    def connection_lost(self, exc: Exception | None) -> None:
        self._closed = True

    def data_received(self, data: bytes) -> None:
        now_ns = monotonic_ns()
        self._buffer += data
        head, blank, rest = self._buffer.partition(b"\r\n\r\n")
        if not blank:
            return
        if head.startswith(b"GET"):
            self._buffer = b""
            if head.startswith(b"GET /log "):
                self._send_log()
            elif head.startswith((b"GET /v1/models ", b"GET /health ")):
                self._transport.write(_MODELS)
            else:
                self._transport.write(_NOT_FOUND)
            return
        fields = dict(
            line.partition(b":")[::2] for line in head.lower().split(b"\r\n")[1:]
        )
        length = int(fields.get(b"content-length", b"0"))
        if len(rest) < length:
            return
        self._buffer = rest[length:]
        self._request_id = fields.get(b"x-request-id", b"").strip().decode()
        self._arrived_ns, self._index, self._late_ns = now_ns, 0, 0
        self._wheel.add(now_ns + self._first_ns, self)

    def write_next(self, due_ns: int) -> None:
        if self._closed:
            return
        first, chunk, end = self._parts
        now_ns = monotonic_ns()
        self._late_ns = max(self._late_ns, now_ns - due_ns)
        self._index += 1
        last = self._index == self._shape.chunks
        piece = first if self._index == 1 else chunk
        self._transport.write(piece + end if last else piece)
        if self._index == 1:
            self._first_write_ns = now_ns
        if not last:
            self._wheel.add(due_ns + self._gap_ns, self)
            return
        self._log.append(
            Served(
                self._request_id,
                self._arrived_ns,
                self._first_write_ns,
                now_ns,
                self._late_ns,
            )
        )

    def _send_log(self) -> None:
        body = msgspec.json.encode({"served": self._log, "cpu_s": _cpu_s()})
        self._log.clear()
        head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body)
        self._transport.write(head + body)


def _cpu_s() -> float:
    times = os.times()
    return times.user + times.system


async def serve(shape: Shape) -> None:
    """Serve until standard input closes; the port is printed on a line."""
    loop = asyncio.get_running_loop()
    log: list[Served] = []
    wheel = _Wheel(loop)
    server = await loop.create_server(
        lambda: _Connection(shape, wheel, log), "127.0.0.1", 0, backlog=4096
    )
    print(server.sockets[0].getsockname()[1], flush=True)
    gone = loop.create_future()
    loop.add_reader(sys.stdin.fileno(), _read_stdin, gone)
    await gone
    server.close()


def _read_stdin(gone: asyncio.Future[None]) -> None:
    if not os.read(sys.stdin.fileno(), 4096) and not gone.done():
        gone.set_result(None)


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the shape from the command line and serve."""
    parser = argparse.ArgumentParser(prog="python -m routeproof.runs.mock")
    parser.add_argument("--shape", default="{}", help="JSON of the answers' shape")
    given = parser.parse_args(arguments)
    shape = msgspec.json.decode(given.shape.encode(), type=Shape)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(serve(shape))


if __name__ == "__main__":
    main()
