"""A server for load tests: chunks at an even pace, as many as one core can write.

No batching and no model: every stream gets a chunk every ``paced_s`` seconds, and the
server knows when it wrote each, against when it meant to. What a client measures
beyond that is the client's own. Times are ``time.monotonic_ns``, one clock for all
processes of a machine.
"""

import asyncio
import os
import time
from collections import deque
from dataclasses import dataclass
from time import monotonic_ns

import msgspec

from routeproof.errors import ConfigError
from routeproof.simulator.ask import BadRequest, parse
from routeproof.simulator.http import END_OF_CHUNKS, STREAM_HEAD, Connection
from routeproof.simulator.lateness import Lateness
from routeproof.simulator.route import SimulatedRoute
from routeproof.simulator.wheel import PhaseWheel

BATCH_SLOTS = 256
"""Slots passed before the loop looks at its sockets again."""

NAP_NS = 300_000
"""Longest time the loop is held asleep; a timer of the loop is no finer than 1 ms."""

LOG_REQUESTS = 1_000_000
"""Requests remembered until somebody asks for the log."""

REQUEST_ID = "x-request-id"


class Served(msgspec.Struct, frozen=True, array_like=True):
    """The truth about one request, in monotonic nanoseconds.

    Attributes:
        request_id: Header ``x-request-id`` of the request.
        arrived_ns: When its last byte had been read.
        first_write_ns, last_write_ns: When the system had taken the first and the last
            chunk.
        late_ns: The largest distance of a write behind its schedule.
    """

    request_id: str
    arrived_ns: int
    first_write_ns: int
    last_write_ns: int
    late_ns: int


@dataclass(slots=True, eq=False)
class _Stream:
    """One response: what is still to be written, and what was seen so far."""

    connection: Connection
    file: int
    left: int
    last: bytes
    request_id: str
    arrived_ns: int
    first_write_ns: int = 0
    late_ns: int = 0


class PacedServer:
    """Answers every request with a stream of equal chunks.

    Chunks go straight to the socket; only what the socket does not take at once (a
    client that reads too slowly) is left to the loop, and counted in ``deferred``.

    Args:
        route: ``paced_s`` is the time between chunks, ``paced_first_s`` the least time
            to the first one, ``quality.filler_tokens`` the length of an answer that
            asks for no ``max_tokens``.
        loop: Where connections are accepted and read.

    Raises:
        ConfigError: The pace is shorter than a microsecond.
    """

    def __init__(self, route: SimulatedRoute, loop: asyncio.AbstractEventLoop) -> None:
        assert route.paced_s is not None
        pace_ns = round(route.paced_s * 1e9)
        if pace_ns < 1_000:
            raise ConfigError("a chunk every microsecond is the most", key="paced_s")
        self._wheel = PhaseWheel[_Stream](pace_ns, self._write, monotonic_ns())
        self._first_ns = round(route.paced_first_s * 1e9)
        self._length = route.quality.filler_tokens
        self._loop = loop
        self._alive: dict[Connection, _Stream] = {}
        self._timer: asyncio.Handle | None = None
        self._model = model = route.identity.model
        self._chunk = _framed(_event(model, {"content": " word"}, None))
        self._first = STREAM_HEAD + _framed(_event(model, {"role": "assistant"}, None))
        self._last = _framed(_event(model, {}, "stop"))
        self._log: deque[Served] = deque(maxlen=LOG_REQUESTS)
        self.lateness = Lateness()
        self.chunks = 0
        self.deferred = 0
        self._turning_ns = 0
        self.connections: set[Connection] = set()

    @property
    def is_writing(self) -> bool:
        """Whether any stream is under way."""
        return self._timer is not None

    def opened(self, connection: Connection) -> None:
        """Know a client."""
        self.connections.add(connection)

    def dropped(self, connection: Connection) -> None:
        """Forget a client."""
        self.connections.discard(connection)
        self._alive.pop(connection, None)

    def stop(self) -> None:
        """Stop the clock and drop every client."""
        if self._timer is not None:
            self._timer.cancel()
        for connection in list(self.connections):
            connection.abort()

    def handle(
        self, connection: Connection, method: str, path: str, body: bytes
    ) -> None:
        """Begin a stream, or answer a page."""
        now_ns = monotonic_ns()
        if method != "POST":
            connection.respond(200, self._page(path))
            return
        ask = parse(path, body, 1 << 20)
        if isinstance(ask, BadRequest):
            words = {"error": {"message": ask.message}}
            connection.respond(ask.status, msgspec.json.encode(words))
            return
        asked = ask.body.get("max_tokens")
        count = int(asked) if asked else self._length
        usage = {
            "prompt_tokens": ask.prompt_tokens,
            "completion_tokens": count,
            "total_tokens": ask.prompt_tokens + count,
        }
        last = self._chunk + self._last
        if ask.include_usage:
            last += _framed(_event(self._model, None, None, usage))
        last += _framed(b"data: [DONE]\n\n") + END_OF_CHUNKS
        name = connection.headers.get(REQUEST_ID, "")
        stream = _Stream(connection, connection.file, count, last, name, now_ns)
        connection.streaming = True
        self._alive[connection] = stream
        self._wheel.add(stream, now_ns + self._first_ns, now_ns)
        if self._timer is None:
            self._timer = self._loop.call_soon(self._turn)

    def _page(self, path: str) -> bytes:
        if path.endswith("/models"):
            entry = {"id": self._model, "object": "model", "owned_by": "owner"}
            return msgspec.json.encode({"object": "list", "data": [entry]})
        if path.endswith("/log"):
            served = list(self._log)
            self._log.clear()
            cpu_s = time.process_time()
            return msgspec.json.encode({"served": served, "cpu_s": cpu_s})
        return msgspec.json.encode(self.report())

    def report(self) -> dict[str, float | int | None]:
        """Chunks written and how late, since the beginning; ``None`` before any."""
        late = self.lateness
        return {
            "chunks": self.chunks,
            "deferred_chunks": self.deferred,
            "writing_s": self._turning_ns / 1e9,
            "write_lateness_p50_s": late.quantile_s(0.5),
            "write_lateness_p99_s": late.quantile_s(0.99),
            "write_lateness_max_s": late.most_s,
        }

    # -- time ------------------------------------------------------------------------

    def _turn(self) -> None:
        """Write what is due; come back at once, after a nap, or by a timer."""
        began_ns = monotonic_ns()
        caught_up = self._wheel.turn(began_ns, BATCH_SLOTS)
        now_ns = monotonic_ns()
        self._turning_ns += now_ns - began_ns
        if not self._wheel.alive:
            self._timer = None
            return
        wait_ns = self._wheel.next_ns() - now_ns if caught_up else 0
        if wait_ns > 2_000_000:
            self._timer = self._loop.call_later(wait_ns / 1e9 - 0.001, self._turn)
            return
        if wait_ns > 5_000:  # not spun away: who gives the core back gets it back soon
            time.sleep(min(wait_ns, NAP_NS) / 1e9)
        self._timer = self._loop.call_soon(self._turn)

    def _write(self, stream: _Stream, due_ns: int) -> bool:
        if stream.connection not in self._alive:
            return False
        stream.left -= 1
        data = self._chunk if stream.left > 0 else stream.last
        if not stream.first_write_ns:
            data = self._first + data
        self._send(stream, data)
        now_ns = monotonic_ns()
        late_ns = now_ns - due_ns
        self.lateness.add(late_ns)
        self.chunks += 1
        if late_ns > stream.late_ns:
            stream.late_ns = late_ns
        if not stream.first_write_ns:
            stream.first_write_ns = now_ns
        if stream.left > 0:
            return True
        self._end(stream, now_ns)
        return False

    def _send(self, stream: _Stream, data: bytes) -> None:
        connection = stream.connection
        if not connection.waiting_bytes:
            try:
                taken = os.write(stream.file, data)
            except BlockingIOError:
                taken = 0
            except OSError:  # the client has gone; the loop will say so
                return
            if taken == len(data):
                return
            data = data[taken:]
        self.deferred += 1
        connection.write(data)

    def _end(self, stream: _Stream, now_ns: int) -> None:
        self._alive.pop(stream.connection, None)
        served = Served(
            stream.request_id,
            stream.arrived_ns,
            stream.first_write_ns,
            now_ns,
            stream.late_ns,
        )
        self._log.append(served)
        stream.connection.finish()


def _event(
    model: str,
    delta: dict[str, str] | None,
    finish: str | None,
    usage: dict[str, int] | None = None,
) -> bytes:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    body: dict[str, object] = {
        "id": "chatcmpl-0000000000000000",
        "object": "chat.completion.chunk",
        "created": 1_790_000_000,
        "model": model,
        "choices": [] if delta is None else [choice],
    }
    if usage is not None:
        body["usage"] = usage
    return b"data: " + msgspec.json.encode(body) + b"\n\n"


def _framed(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)
