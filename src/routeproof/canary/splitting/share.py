"""The observed share of the candidate: what is served, not what is configured."""

import threading
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field

from routeproof.canary.splitting.split import LiveArm


@dataclass(slots=True)
class ShareMeter:
    """Counts requests by arm while they run and for a short window after they began.

    Attributes:
        window_s: How far back started requests count, in seconds.
        clock: Monotonic seconds.
    """

    window_s: float
    clock: Callable[[], float]
    in_flight: Counter[LiveArm] = field(default_factory=Counter, init=False)
    last_canary_byte_s: float | None = field(default=None, init=False)
    _started: deque[tuple[float, LiveArm]] = field(default_factory=deque, init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)

    def began(self, arm: LiveArm) -> None:
        """A request was sent to an arm."""
        with self._lock:
            self.in_flight[arm] += 1
            self._started.append((self.clock(), arm))

    def ended(self, arm: LiveArm) -> None:
        """A request is over, in whatever way."""
        with self._lock:
            self.in_flight[arm] -= 1
        if arm == "canary":
            self.last_canary_byte_s = self.clock()

    def share(self) -> float | None:
        """Candidate requests running or lately started, as a share of all such.

        ``None`` while nothing at all runs or was lately started: without traffic
        nothing is observed. Exactly 0 only when the candidate serves nothing.
        """
        oldest = self.clock() - self.window_s
        with self._lock:
            while self._started and self._started[0][0] < oldest:
                self._started.popleft()
            recent = Counter(arm for _, arm in self._started)
        canary = max(recent["canary"], self.in_flight["canary"])
        everything = max(recent.total(), self.in_flight.total())
        return None if everything == 0 else canary / everything

    def canary_is_drained(self) -> bool:
        """True when the candidate serves nothing right now."""
        return self.in_flight["canary"] == 0
