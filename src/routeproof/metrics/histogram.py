"""A mergeable histogram with logarithmic buckets, for values too many to keep."""

from dataclasses import dataclass
from functools import lru_cache
from math import ceil, log

import numpy as np
from numpy.typing import NDArray

LEAST_S = 1e-6
MOST_S = 1e4
GROWTH = 1.01
"""Each bucket is one percent wider than the last: a quantile is right within that."""

_BUCKETS = ceil(log(MOST_S / LEAST_S) / log(GROWTH)) + 2


_TABLED_US = (2_000, 2_000_000)
"""Microseconds from and to which a bucket is looked up instead of computed: there a
whole microsecond is below a twentieth of a bucket, and nearly all gaps lie there."""


def _buckets(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """Bucket of each value."""
    low, high = _TABLED_US
    us = values * 1e6
    place = np.minimum(us, high - 1).astype(np.int32)
    found = _table()[place].astype(np.int64)
    odd = np.flatnonzero((place < low) | (us >= high))
    found[odd] = _computed(values[odd])
    return found


def _computed(values: NDArray[np.float64]) -> NDArray[np.int64]:
    large = values >= LEAST_S
    logs = np.log(values, out=np.zeros_like(values), where=large)
    places = ((logs - log(LEAST_S)) / log(GROWTH)).astype(np.int64) + 1
    return np.where(large, np.minimum(places, _BUCKETS - 1), 0)


@lru_cache(maxsize=1)
def _table() -> NDArray[np.int16]:
    """Bucket of each microsecond; made in slices, for it is all that should be kept."""
    end, step = _TABLED_US[1], 1 << 16
    table = np.empty(end, dtype=np.int16)
    for start in range(0, end, step):
        us = np.arange(start, min(start + step, end), dtype=np.float64)
        table[start : start + step] = _computed((us + 0.5) * 1e-6)
    table.flags.writeable = False
    return table


@dataclass(frozen=True, slots=True)
class LogHistogram:
    """Counts of values in buckets ``LEAST_S * GROWTH^(i-1) .. LEAST_S * GROWTH^i``.

    Bucket 0 holds what is below ``LEAST_S`` (chunks of one read), the last one what is
    above ``MOST_S``. Two histograms merge by adding; memory does not grow.

    Attributes:
        counts: Shape ``(buckets,)``.
        total: Sum of the values, for the mean.
    """

    counts: NDArray[np.int64]
    total: float

    @classmethod
    def empty(cls) -> "LogHistogram":
        """No values."""
        return cls(np.zeros(_BUCKETS, dtype=np.int64), 0.0)

    @classmethod
    def of(cls, values: NDArray[np.float64]) -> "LogHistogram":
        """Values of at least 0."""
        return cls.by_group(values, np.zeros(values.size, dtype=np.int64), 1)[0]

    @classmethod
    def by_group(
        cls, values: NDArray[np.float64], groups: NDArray[np.int64], count: int
    ) -> list["LogHistogram"]:
        """Values of at least 0, one histogram for each group below ``count``.

        Group ``count`` itself is left out.
        """
        cells = groups * _BUCKETS + _buckets(values)
        counts = np.bincount(cells, minlength=(count + 1) * _BUCKETS)
        totals = np.bincount(groups, values, minlength=count + 1)
        rows = counts.astype(np.int64).reshape(count + 1, -1)[:count]
        return [
            cls(row, float(total))
            for row, total in zip(rows, totals[:count], strict=True)
        ]

    def plus(self, other: "LogHistogram") -> "LogHistogram":
        """Both together."""
        return LogHistogram(self.counts + other.counts, self.total + other.total)

    @property
    def n(self) -> int:
        """Number of values."""
        return int(self.counts.sum())

    def mean(self) -> float | None:
        """Mean of the values, ``None`` when there are none."""
        return self.total / self.n if self.n else None

    def quantile(self, q: float) -> float | None:
        """Nearest-rank quantile, the upper edge of its bucket; ``None`` when empty."""
        if not self.n:
            return None
        rank = max(1, ceil(round(q * self.n, 9)))
        bucket = int(np.searchsorted(np.cumsum(self.counts), rank))
        return 0.0 if bucket == 0 else LEAST_S * GROWTH**bucket
