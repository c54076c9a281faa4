"""One line of JSON per request: what went where and how it ended, never what was said.

Lines are collected on the event loop and written by whoever calls ``write``, in a
thread: no request waits for the disk.
"""

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

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


class _Noted(NamedTuple):
    """An exchange that is over, without what it carried."""

    wall_s: float
    ended_s: float
    id: str
    arm: str
    method: str
    target: bytes
    status: int
    outcome: str
    request_bytes: int
    answer_bytes: int
    began_s: float
    sent_s: float | None
    first_s: float | None


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
    _waiting: deque[_Noted] = field(default_factory=deque, init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)

    def note(self, flight: Flight) -> None:
        """An exchange is over; called on the event loop."""
        if len(self._waiting) >= WAITING_MAX:
            self._waiting.popleft()
            self.lost += 1
        request, decision = flight.request, flight.decision
        self._waiting.append(
            _Noted(
                self.wall(),
                flight.clock(),
                decision.request_id,
                decision.arm,
                request.method,
                request.target,
                flight.status,
                flight.outcome,
                len(request.body),
                flight.sent_bytes,
                flight.began_s,
                flight.sent_s,
                flight.first_s,
            )
        )

    def write(self) -> str | None:
        """Write what waits, in a thread; says why when it cannot be written."""
        with self._lock:
            batch = [self._waiting.popleft() for _ in range(len(self._waiting))]
            if not batch:
                return None
            text = b"".join(msgspec.json.encode(_line(each)) + b"\n" for each in batch)
            try:
                with self.path.open("ab") as file:
                    file.write(text)
            except OSError as error:
                self._waiting.extendleft(reversed(batch))
                return f"cannot write {self.path}: {error.strerror}"
        return None


def _line(noted: _Noted) -> Line:
    path = noted.target.partition(b"?")[0].decode("latin-1")

    def since(moment_s: float | None) -> float | None:
        return None if moment_s is None else round((moment_s - noted.began_s) * 1e3, 3)

    return Line(
        at_s=round(noted.wall_s, 3),
        id=noted.id,
        arm=noted.arm,
        method=noted.method[:16],
        path=path if path in KNOWN_PATHS else "other",
        status=noted.status,
        outcome=noted.outcome,
        request_bytes=noted.request_bytes,
        answer_bytes=noted.answer_bytes,
        relay_ms=since(noted.sent_s),
        first_ms=since(noted.first_s),
        total_ms=round((noted.ended_s - noted.began_s) * 1e3, 3),
    )
