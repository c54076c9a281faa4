"""How late writes were, against the times that were meant."""

from dataclasses import dataclass, field

import numpy as np

_BIN_NS = 10_000
_BINS = 200_000


@dataclass(slots=True)
class Lateness:
    """Counts of writes in bins of 0.01 ms; two seconds and more share the last one."""

    counts: list[int] = field(default_factory=lambda: [0] * _BINS)
    most_ns: int = 0

    def add(self, late_ns: int) -> None:
        """Count one write."""
        if late_ns > self.most_ns:
            self.most_ns = late_ns
        self.counts[min(late_ns // _BIN_NS, _BINS - 1)] += 1

    def clear(self) -> None:
        """Forget every write."""
        self.counts = [0] * _BINS
        self.most_ns = 0

    def quantile_s(self, q: float) -> float | None:
        """Upper edge of the bin in which the quantile falls; ``None`` without any."""
        total = np.cumsum(self.counts)
        if not total[-1]:
            return None
        bins = int(np.searchsorted(total, q * total[-1])) + 1
        return bins * _BIN_NS / 1e9

    @property
    def most_s(self) -> float | None:
        """The latest write of all; ``None`` without any."""
        return self.most_ns / 1e9 if any(self.counts) else None
