"""A stream on its way to a client in real time, through the faults of the stream."""

import asyncio
from collections.abc import Callable

from routeproof.simulator.http import Connection
from routeproof.simulator.stream_filter import StreamFilter, Timed


class Pipe:
    """Writes a stream's events to a connection when they are due.

    Args:
        connection: Where to.
        through: The faults.
        loop: Its clock times late events.
        ended: Called once when nothing more will be written.
    """

    def __init__(
        self,
        connection: Connection,
        through: StreamFilter,
        loop: asyncio.AbstractEventLoop,
        ended: Callable[[], None],
    ) -> None:
        self._connection = connection
        self._through = through
        self._loop = loop
        self._ended = ended
        self._last_s = 0.0
        self._over = False

    def push(self, events: list[bytes]) -> None:
        """Pass events on; the faults may hold, change or end the stream."""
        if self._over:
            return
        self._write(self._through.feed(self._loop.time(), events))
        if self._through.ended is not None:
            self.finish()

    def finish(self) -> None:
        """No more events come."""
        if self._over:
            return
        self._over = True
        self._write(self._through.end(self._loop.time()))
        self._later(self._last_s, self._close)

    def _write(self, timed: list[Timed]) -> None:
        for due_s, data in timed:
            self._later(due_s, self._connection.chunk, data)

    def _later(self, due_s: float, what: Callable[..., None], *args: object) -> None:
        """Do it now, or when it is due and after everything before it."""
        now = self._loop.time()
        if due_s <= now and self._last_s <= now:
            what(*args)
            return
        self._last_s = max(due_s, self._last_s + 1e-6)
        self._loop.call_at(self._last_s, what, *args)

    def _close(self) -> None:
        if self._through.ended == "cut":
            self._connection.cut()
        else:
            self._connection.end_stream()
        self._ended()
