"""A server for load tests: chunks at an even pace, as many as one core can write.

No batching and no model: every stream gets a chunk every ``paced_s`` seconds from its
first token on, and knows how late each was. What a client measures against it beyond
that is the client's own.
"""

import asyncio
from collections import deque
from dataclasses import dataclass, field

import msgspec
import numpy as np

from routeproof.simulator.ask import BadRequest, parse
from routeproof.simulator.http import END_OF_CHUNKS, Connection
from routeproof.simulator.route import SimulatedRoute

TICK_S = 0.001
_BIN_S = 0.0001
_BINS = 20_000


@dataclass(slots=True, eq=False)
class _Stream:
    """One response: what is written next, and when."""

    connection: Connection
    due_s: float
    left: int
    usage: bytes


@dataclass(slots=True)
class Lateness:
    """How late chunks were written, in bins of 0.1 ms."""

    counts: list[int] = field(default_factory=lambda: [0] * _BINS)

    def add(self, late_s: float) -> None:
        """Count one chunk."""
        self.counts[min(int(late_s / _BIN_S), _BINS - 1)] += 1

    def quantile_s(self, q: float) -> float | None:
        """Upper edge of the bin in which the quantile falls; ``None`` without any."""
        total = np.cumsum(self.counts)
        if not total[-1]:
            return None
        return float((np.searchsorted(total, q * total[-1]) + 1) * _BIN_S)


class PacedServer:
    """Answers every request with a stream of equal chunks.

    Args:
        route: ``paced_s`` is the time between chunks, ``quality.filler_tokens`` the
            length of an answer that asks for no ``max_tokens``.
        loop: Its clock is the pace.
    """

    def __init__(self, route: SimulatedRoute, loop: asyncio.AbstractEventLoop) -> None:
        assert route.paced_s is not None
        self._pace_s = route.paced_s
        self._length = route.quality.filler_tokens
        self._loop = loop
        self._ring: dict[int, deque[_Stream]] = {}
        self._next = 0
        self._alive: dict[Connection, _Stream] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._model = route.identity.model
        self._chunk = _framed(_event(self._model, {"content": " word"}, None))
        self._first = _framed(_event(self._model, {"role": "assistant"}, None))
        self._last = _framed(_event(self._model, {}, "stop"))
        self.lateness = Lateness()
        self.chunks = 0
        self.connections: set[Connection] = set()

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
        last = (
            _framed(_event(self._model, None, None, usage))
            if ask.include_usage
            else b""
        )
        connection.start_stream()
        stream = _Stream(connection, self._loop.time() + self._pace_s, count, last)
        connection.write(self._first)
        self._alive[connection] = stream
        self._wait(stream)
        if self._timer is None:
            self._next = int(self._loop.time() / TICK_S)
            self._timer = self._loop.call_later(TICK_S, self._tick)

    def _page(self, path: str) -> bytes:
        if path.endswith("/models"):
            entry = {"id": self._model, "object": "model", "owned_by": "owner"}
            return msgspec.json.encode({"object": "list", "data": [entry]})
        lateness = self.lateness
        return msgspec.json.encode(
            {
                "chunks": self.chunks,
                "write_lateness_p50_s": lateness.quantile_s(0.5),
                "write_lateness_p99_s": lateness.quantile_s(0.99),
            }
        )

    def _wait(self, stream: _Stream) -> None:
        slot = max(int(stream.due_s / TICK_S) + 1, self._next + 1)
        waiting = self._ring.get(slot)
        if waiting is None:
            self._ring[slot] = deque((stream,))
        else:
            waiting.append(stream)

    def _tick(self) -> None:
        now_slot = int(self._loop.time() / TICK_S)
        time = self._loop.time
        while self._next < now_slot:
            self._next += 1
            waiting = self._ring.pop(self._next, None)
            if waiting is None:
                continue
            for stream in waiting:
                if stream.connection in self._alive:
                    self._write(stream, time())
        if self._alive:
            self._timer = self._loop.call_later(TICK_S, self._tick)
        else:
            self._timer = None

    def _write(self, stream: _Stream, now_s: float) -> None:
        self.lateness.add(now_s - stream.due_s)
        self.chunks += 1
        stream.left -= 1
        if stream.left:
            stream.connection.write(self._chunk)
            stream.due_s += self._pace_s
            self._wait(stream)
            return
        self._alive.pop(stream.connection, None)
        end = self._chunk + self._last + stream.usage + _framed(b"data: [DONE]\n\n")
        stream.connection.write(end + END_OF_CHUNKS)
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
