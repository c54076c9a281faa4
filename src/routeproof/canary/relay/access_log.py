"""One line of JSON per request: what went where and how it ended, never what was said.

Lines are collected on the event loop and written by whoever calls ``write``, in a
thread: no request waits for the disk.
"""

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from routeproof.canary.relay.flight import Flight

WAITING_MAX = 100_000
"""With a full disk, older lines than so many are lost, and counted."""

KNOWN_PATHS = frozenset(
    f"/v1/{name}"
    for name in ("chat/completions", "completions", "responses", "embeddings", "models")
)


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """One request.

    Attributes:
        at_s: When its answer ended, Unix seconds.
        path: Without query; ``other`` for paths that are not OpenAI's, which may hold
            anything.
        outcome: ``completed``, ``cut_short`` or ``cancelled``.
        relay_ms: From the whole request to its handing over to the upstream.
        first_ms: To the first byte of the answer's body.
        total_ms: To its end.
    """

    at_s: float
    id: str
    arm: str
    method: str
    path: str
    status: int
    outcome: str
    request_bytes: int
    answer_bytes: int
    relay_ms: float | None
    first_ms: float | None
    total_ms: float


@dataclass(slots=True)
class AccessLog:
    """Collects lines; a file is opened anew for each batch, so it may be rotated.

    Attributes:
        wall: Unix seconds.
        lost: Lines dropped because they could not be written for too long.
    """

    path: Path
    wall: Callable[[], float]
    lost: int = 0
    _waiting: deque[Line] = field(default_factory=deque, init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)

    def note(self, flight: Flight) -> None:
        """An exchange is over; called on the event loop."""
        if len(self._waiting) >= WAITING_MAX:
            self._waiting.popleft()
            self.lost += 1
        self._waiting.append(_line(self.wall(), flight, flight.clock()))

    def write(self) -> str | None:
        """Write what waits, in a thread; says why when it cannot be written."""
        with self._lock:
            batch = [self._waiting.popleft() for _ in range(len(self._waiting))]
            if not batch:
                return None
            text = b"".join(msgspec.json.encode(line) + b"\n" for line in batch)
            try:
                with self.path.open("ab") as file:
                    file.write(text)
            except OSError as error:
                self._waiting.extendleft(reversed(batch))
                return f"cannot write {self.path}: {error.strerror}"
        return None


def _line(at_s: float, flight: Flight, ended_s: float) -> Line:
    request, began_s = flight.request, flight.began_s
    path = request.path

    def since(moment_s: float | None) -> float | None:
        return None if moment_s is None else round((moment_s - began_s) * 1e3, 3)

    return Line(
        at_s=round(at_s, 3),
        id=flight.decision.request_id,
        arm=flight.decision.arm,
        method=request.method[:16],
        path=path if path in KNOWN_PATHS else "other",
        status=flight.status,
        outcome=flight.outcome,
        request_bytes=len(request.body),
        answer_bytes=flight.sent_bytes,
        relay_ms=since(flight.sent_s),
        first_ms=since(flight.first_s),
        total_ms=round((ended_s - began_s) * 1e3, 3),
    )
