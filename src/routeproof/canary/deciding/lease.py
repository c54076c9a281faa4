"""The lease: a candidate weight may be used only while its state is fresh.

A relay whose store is dead, whose controller is gone or whose disk is full keeps
serving, but with weight 0 once the last good reading is older than the lease.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from routeproof.canary.deciding.state import State


@dataclass(slots=True)
class Lease:
    """The last state read and when.

    Attributes:
        lease_s: How long a reading may be used, in seconds.
        clock: Monotonic seconds.
    """

    lease_s: float
    clock: Callable[[], float]
    _held: tuple[State, float] | None = field(default=None, init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)

    def renew(self, state: State, read_at_s: float | None = None) -> None:
        """Note a successful reading of the store.

        Readers are several: whoever began to read before a rollback was written may
        come here after it. A state older than the one held is therefore passed over,
        and it does not make that one fresh either.

        Args:
            state: What was read.
            read_at_s: When the reading began; now without it. A store that takes its
                time gives a reading that is already old.
        """
        at_s = self.clock() if read_at_s is None else read_at_s
        with self._lock:
            if self._held is not None:
                held, held_at_s = self._held
                if state.revision < held.revision:
                    return
                at_s = max(at_s, held_at_s) if state == held else at_s
            self._held = (state, at_s)

    def state(self) -> State | None:
        """The last state read, however old; ``None`` before the first."""
        held = self._held
        return None if held is None else held[0]

    def age_s(self) -> float | None:
        """Age of the last reading, in seconds; ``None`` before the first."""
        held = self._held
        return None if held is None else self.clock() - held[1]

    def weight_ppm(self) -> int:
        """The candidate's weight right now, in parts per million.

        0 without a reading, with a stale one, and whenever the clock went backwards.
        """
        held = self._held
        if held is None or not 0 <= self.clock() - held[1] <= self.lease_s:
            return 0
        return held[0].weight_ppm
