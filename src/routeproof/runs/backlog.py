"""Responses that have ended and wait to be parsed.

Parsing must not take time from streams that are still running, yet memory must stay
bounded and finished requests must reach the disk within seconds. So: while a block
runs, waiting responses are parsed in slices of half a millisecond, with the event
loop turning in between, and only when they have waited or grown enough; between
blocks all of them are parsed at once.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from time import monotonic_ns

from routeproof.engines.adapter import Adapter
from routeproof.records.record import Key, Record
from routeproof.runs.capture import Capture
from routeproof.runs.parse import Origin, parse, parse_steps

SLICE_NS = 500_000
MAX_WAIT_NS = 1_000_000_000
MAX_WAITING_BYTES = 16 << 20


class Backlog:
    """A queue of captures in front of a parser.

    Attributes:
        origin: Zero of the run's clock.
        waiting_bytes: Body bytes that are waiting.
    """

    def __init__(self, origin: Origin, take: Callable[[Record, Capture], None]) -> None:
        """Give each parsed record to ``take``, with what it was parsed from."""
        self.origin = origin
        self.waiting_bytes = 0
        self._take = take
        self._waiting: deque[tuple[Capture, Key, Adapter]] = deque()

    def add(self, capture: Capture, key: Key, adapter: Adapter) -> None:
        """Take a response that has ended."""
        self._waiting.append((capture, key, adapter))
        self.waiting_bytes += capture.size_bytes

    def drain(self) -> None:
        """Parse everything that waits; for when no stream is running."""
        while self._waiting:
            capture, key, adapter = self._pop()
            self._take(parse(capture, key, adapter, self.origin), capture)

    async def drain_gently(self) -> None:
        """Parse what has waited too long or is too much, in short slices."""
        started_ns = monotonic_ns()
        while self._waiting and self._is_due():
            capture, key, adapter = self._pop()
            steps = parse_steps(capture, key, adapter, self.origin)
            while True:
                try:
                    next(steps)
                except StopIteration as stop:
                    self._take(stop.value, capture)
                    break
                started_ns = await _breathe(started_ns)
            started_ns = await _breathe(started_ns)

    def _pop(self) -> tuple[Capture, Key, Adapter]:
        item = self._waiting.popleft()
        self.waiting_bytes -= item[0].size_bytes
        return item

    def _is_due(self) -> bool:
        oldest = self._waiting[0][0].end_ns
        is_old = monotonic_ns() - oldest > MAX_WAIT_NS
        return is_old or self.waiting_bytes > MAX_WAITING_BYTES


async def _breathe(started_ns: int) -> int:
    """Let the event loop turn once the slice is used up; the start of the slice."""
    if monotonic_ns() - started_ns < SLICE_NS:
        return started_ns
    await asyncio.sleep(0)
    return monotonic_ns()
