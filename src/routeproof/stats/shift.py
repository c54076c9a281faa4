"""Has the level just shifted? Asked again after every new value of a live series."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from routeproof.stats.changepoint import change_point

LAST = 48
"""Values looked back on: an older shift was either told or is the new normal."""

FEWEST = 12
SETTLED = 3
"""Values after the shift before it is believed: one odd window is no shift."""

P_VALUE = 0.002
PERMUTATIONS, FEW_PERMUTATIONS = 1_999, 19
NORMAL_OF_MAD = 1.4826
"""Standard deviation over median absolute deviation, of a normal distribution."""


@dataclass(frozen=True, slots=True)
class Shift:
    """A shift of level.

    Attributes:
        index: First value after it, in the series given.
        before, after: Medians on either side.
        p_value: That there is none, for this one question.
    """

    index: int
    before: float
    after: float
    p_value: float

    def change(self) -> float | None:
        """Relative change; ``None`` from a level of 0."""
        return self.after / self.before - 1 if self.before else None


def newest_shift(values: Sequence[float], *, least_change: float) -> Shift | None:
    """The shift of level among the last values, if there is one worth telling.

    Pettitt's statistic with a permutation p-value of at most 0.002, and a change of
    the median of at least ``least_change``, relative to the larger side, and of at
    least twice the scatter around the two medians. It is asked anew after every
    value, so the p-value alone would cry wolf in time; the size asked for is what
    keeps a steady series quiet (`tests/stats/test_shift.py` measures both: false
    alarms in 10,000 values, and values until a shift is told).

    Args:
        values: In order of time, all known; the caller cuts the series at a shift
            that it has told.
        least_change: Relative change worth telling.
    """
    x = np.asarray(values[-LAST:], dtype=np.float64)
    if x.size < FEWEST or np.all(x == x[0]):
        return None
    # A few permutations place the shift and spare most steady series the many.
    seen = change_point(x, permutations=FEW_PERMUTATIONS)
    if seen.index is None or seen.p_value is None:
        return None
    if seen.p_value > 1 / (1 + FEW_PERMUTATIONS):
        return None
    before, after = x[: seen.index], x[seen.index :]
    if min(before.size, after.size) < SETTLED:
        return None
    one, other = float(np.median(before)), float(np.median(after))
    scatter = float(np.median(np.abs(np.concatenate([before - one, after - other]))))
    size = abs(other - one)
    if size < least_change * max(abs(one), abs(other)):
        return None
    if size < 2 * NORMAL_OF_MAD * scatter:
        return None
    p = change_point(x, permutations=PERMUTATIONS).p_value
    if p is None or p > P_VALUE:
        return None
    return Shift(max(0, len(values) - LAST) + seen.index, one, other, p)
