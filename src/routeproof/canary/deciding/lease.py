"""The lease: a candidate weight may be used only while its state is fresh.

A relay whose store is dead, whose controller is gone or whose disk is full keeps
serving, but with weight 0 once the last good reading is older than the lease.
"""

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
    _state: State | None = field(default=None, init=False)
    _read_at_s: float = field(default=float("-inf"), init=False)

    def renew(self, state: State | None) -> None:
        """Note a successful reading of the store."""
        self._state = state
        self._read_at_s = self.clock()

    def age_s(self) -> float | None:
        """Age of the last reading, in seconds; ``None`` before the first."""
        return None if self._state is None else self.clock() - self._read_at_s

    def weight_ppm(self) -> int:
        """The candidate's weight right now, in parts per million.

        0 without a reading, with a stale one, and whenever the clock went backwards.
        """
        age_s = self.age_s()
        if self._state is None or age_s is None or not 0 <= age_s <= self.lease_s:
            return 0
        return self._state.weight_ppm
