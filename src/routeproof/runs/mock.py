"""A fast stand-in for an engine that knows when it really wrote each chunk.

The self-test and the benchmarks measure the client against it. It runs in a process
of its own (``python -m routeproof.runs.mock``), prints its port, and ends when its
standard input closes. Every stream follows an absolute schedule from the arrival of
its request; the true times are asked for with ``GET /log`` and forgotten with that.

It is written on bare sockets: an event loop's timers count whole milliseconds and its
transports write after all callbacks of a turn, so a stamp taken before such a write
is not the time of the write. Here the stamp is taken, and the next statement is the
system call.

``time.monotonic_ns`` is one clock for all processes of a Linux machine, so its times
and the client's can be subtracted.
"""

import argparse
import gc
import heapq
import os
import select
import selectors
import socket
import sys
from collections.abc import Callable, Sequence
from time import monotonic_ns

import msgspec

_HEAD = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n"
)
_MODEL_LIST = b'{"object":"list","data":[{"id":"mock","object":"model"}]}'
_NOT_FOUND = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"

_READ_BYTES = 1 << 16
_TURNS = 16
"""So many sockets are read, or chunks written, before the other gets its turn."""


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


def _json_reply(body: bytes) -> bytes:
    """Other load generators ask first whether anybody is there."""
    return (
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
        b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
    )


def encode(shape: Shape) -> list[bytes]:
    """The writes of one answer: the head is in the first, the end in the last."""
    chunk = _http_chunk(_event({"content": shape.text}, None))
    counts = {
        "prompt_tokens": 8,
        "completion_tokens": shape.chunks * shape.tokens_per_chunk,
    }
    usage = b"data: %b\n\n" % msgspec.json.encode({"choices": [], "usage": counts})
    end = _http_chunk(_event({}, "stop") + usage + b"data: [DONE]\n\n") + b"0\r\n\r\n"
    writes = [chunk] * shape.chunks
    writes[0] = _HEAD + writes[0]
    writes[-1] += end
    return writes


class _Connection:
    """One client's connection; it asks, is answered, and asks again."""

    def __init__(self, own: socket.socket, server: "_Server") -> None:
        self._socket = own
        self._server = server
        self._asked = b""
        self._unsent = b""
        self.is_open = True

    def turn(self, events: int) -> None:
        """The socket can be read, or written again."""
        if not self.is_open:
            return
        if events & selectors.EVENT_WRITE:
            unsent, self._unsent = self._unsent, b""
            self._server.selector.modify(self._socket, selectors.EVENT_READ, self.turn)
            self.write(unsent)
        if events & selectors.EVENT_READ:
            self._read()

    def write(self, data: bytes) -> None:
        """Hand bytes to the kernel; what it does not take goes when it can."""
        if self._unsent:
            self._unsent += data
            return
        try:
            sent = self._socket.send(data)
        except BlockingIOError:
            sent = 0
        except OSError:
            self.close()
            return
        if sent < len(data):
            self._unsent = data[sent:]
            both = selectors.EVENT_READ | selectors.EVENT_WRITE
            self._server.selector.modify(self._socket, both, self.turn)

    def close(self) -> None:
        """Forget the client."""
        if self.is_open:
            self.is_open = False
            self._server.selector.unregister(self._socket)
            self._socket.close()

    def _read(self) -> None:
        try:
            data = self._socket.recv(_READ_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        now_ns = monotonic_ns()
        if not data:
            self.close()
            return
        self._asked += data
        head, blank, rest = self._asked.partition(b"\r\n\r\n")
        if not blank:
            return
        fields = dict(
            line.partition(b":")[::2] for line in head.lower().split(b"\r\n")[1:]
        )
        length = int(fields.get(b"content-length", b"0"))
        if len(rest) < length:
            return
        self._asked = rest[length:]
        if head.startswith(b"GET"):
            self.write(self._server.told(head.split(b" ")[1]))
            return
        self._request_id = fields.get(b"x-request-id", b"").strip().decode()
        self._arrived_ns, self._index, self._late_ns = now_ns, 0, 0
        self._server.add(now_ns + self._server.first_ns, self)

    def write_next(self, due_ns: int) -> None:
        """Write the chunk that is due, and put the next on the schedule."""
        server, index = self._server, self._index
        now_ns = monotonic_ns()
        self.write(server.writes[index])
        if now_ns - due_ns > self._late_ns:
            self._late_ns = now_ns - due_ns
        if index == 0:
            self._first_write_ns = now_ns
        self._index = index + 1
        if self._index < len(server.writes):
            server.add(due_ns + server.gap_ns, self)
            return
        server.log.append(
            Served(
                self._request_id,
                self._arrived_ns,
                self._first_write_ns,
                now_ns,
                self._late_ns,
            )
        )


class _Server:
    """The listening socket, the schedule of all streams and the log."""

    def __init__(self, shape: Shape) -> None:
        self.writes = encode(shape)
        self.first_ns = int(shape.first_s * 1e9)
        self.gap_ns = int(shape.gap_s * 1e9)
        self.log: list[Served] = []
        self.selector = selectors.DefaultSelector()
        self._due: list[tuple[int, int, _Connection]] = []
        self._number = 0
        self._listening = socket.create_server(("127.0.0.1", 0), backlog=4096)
        self._listening.setblocking(False)
        self.port: int = self._listening.getsockname()[1]
        self.selector.register(self._listening, selectors.EVENT_READ, self._accept)

    def add(self, due_ns: int, connection: _Connection) -> None:
        """Put a write on the schedule."""
        self._number += 1
        heapq.heappush(self._due, (due_ns, self._number, connection))

    def told(self, path: bytes) -> bytes:
        """The answer to a ``GET``."""
        if path == b"/log":
            body = msgspec.json.encode({"served": self.log, "cpu_s": _cpu_s()})
            self.log.clear()
            return _json_reply(body)
        is_asked = path in (b"/v1/models", b"/health")
        return _json_reply(_MODEL_LIST) if is_asked else _NOT_FOUND

    def serve(self, until: Callable[[], bool]) -> None:
        """Answer until the function says so; it is asked when standard input stirs."""
        stopped: list[bool] = []
        self.selector.register(
            sys.stdin, selectors.EVENT_READ, lambda _: stopped.append(until())
        )
        wait_on = [self.selector.fileno()] if hasattr(self.selector, "fileno") else []
        while not any(stopped):
            self._wait(wait_on)
            for number, (key, events) in enumerate(self.selector.select(0)):
                key.data(events)
                if number % _TURNS == 0:
                    self._write_due()
            self._write_due()

    def _wait(self, wait_on: list[int]) -> None:
        """Until a socket stirs or a write is due; ``select`` counts microseconds."""
        if not self._due:
            select.select(wait_on, [], [])
            return
        wait_ns = self._due[0][0] - monotonic_ns()
        if wait_ns > 0:
            select.select(wait_on, [], [], wait_ns / 1e9)

    def _write_due(self) -> None:
        due, now_ns = self._due, monotonic_ns()
        for _ in range(_TURNS):
            if not due or due[0][0] > now_ns:
                return
            due_ns, _, connection = heapq.heappop(due)
            if connection.is_open:
                connection.write_next(due_ns)

    def _accept(self, _events: int) -> None:
        try:
            own, _ = self._listening.accept()
        except BlockingIOError:
            return
        own.setblocking(False)
        own.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection = _Connection(own, self)
        self.selector.register(own, selectors.EVENT_READ, connection.turn)


def _cpu_s() -> float:
    times = os.times()
    return times.user + times.system


def _stdin_closed() -> bool:
    return not os.read(sys.stdin.fileno(), 4096)


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the shape from the command line and serve."""
    parser = argparse.ArgumentParser(prog="python -m routeproof.runs.mock")
    parser.add_argument("--shape", default="{}", help="JSON of the answers' shape")
    given = parser.parse_args(arguments)
    server = _Server(msgspec.json.decode(given.shape.encode(), type=Shape))
    gc.freeze()
    gc.disable()
    print(server.port, flush=True)
    server.serve(_stdin_closed)


if __name__ == "__main__":
    main()
