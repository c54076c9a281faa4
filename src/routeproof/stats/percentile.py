"""Percentiles with intervals that assume no distribution, or none at all.

A failed request is ``+inf``: it stays in the sample and ranks last, so that a route
cannot improve its tail by failing.
"""

from dataclasses import dataclass
from functools import lru_cache
from math import ceil, inf, log

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import bdtr

from routeproof.stats.interval import Interval


@dataclass(frozen=True, slots=True)
class Percentile:
    """A percentile of a sample.

    Attributes:
        value: Nearest-rank percentile; ``None`` when ``n < n_minimum`` or when it
            falls among failures.
        interval: Order-statistic interval; a limit is ``None`` when it falls among
            failures (unbounded above). ``None`` when ``n < n_minimum``.
        n: Sample size, failures included.
        n_minimum: Fewest samples for which an upper limit exists at this level.
        failures: Samples that were ``+inf``.
        in_failures: True when the percentile itself falls among the failures.
    """

    value: float | None
    interval: Interval | None
    n: int
    n_minimum: int
    failures: int
    in_failures: bool


def minimum_samples(q: float, level: float = 0.95) -> int:
    """Fewest samples for a two-sided order-statistic interval of the q quantile.

    Smallest n with ``q^n <= (1 - level) / 2`` and ``(1 - q)^n <= (1 - level) / 2``:
    at 95 %, 6 for the median, 72 for p95, 368 for p99.
    """
    _check(q, level)
    rarer = max(q, 1 - q)
    tail = (1 - level) / 2
    n = max(1, ceil(log(tail) / log(rarer) - 1e-9))
    return n if rarer**n <= tail * (1 + 1e-12) else n + 1


def percentile(samples: ArrayLike, q: float, *, level: float = 0.95) -> Percentile:
    """The q quantile of ``samples`` by nearest rank: the ``ceil(q * n)``-th smallest.

    The interval ``[x_(l), x_(u)]`` takes the order statistics whose ranks hold the
    true quantile with at least ``level``, by the binomial distribution of the number
    of samples below it; it assumes independent samples and no distribution. Requests
    under one load are not quite independent: compare arms with
    :func:`routeproof.stats.ratio.paired_ratio`, which resamples blocks.

    Args:
        samples: Shape ``(n,)``; ``+inf`` for a failure. Unknown values must be left
            out by the caller, who alone knows whether they are missing at random.
        q: In (0, 1), such as 0.95.
        level: Two-sided confidence.

    Raises:
        ValueError: A NaN in ``samples``, or ``q`` or ``level`` outside (0, 1).
    """
    values = np.sort(np.asarray(samples, dtype=np.float64).ravel())
    if np.isnan(values).any():
        raise ValueError("samples hold NaN; leave unknown values out")
    needed = minimum_samples(q, level)
    n = int(values.size)
    failures = int(np.count_nonzero(values == inf))
    if n < needed:
        return Percentile(None, None, n, needed, failures, False)
    value = float(values[_rank(q, n) - 1])
    low, high = _ranks(q, n, level)
    interval = Interval(
        low=_finite(float(values[low - 1])),
        high=_finite(float(values[high - 1])),
        level=level,
        method="order_statistic",
    )
    return Percentile(_finite(value), interval, n, needed, failures, value == inf)


def _check(q: float, level: float) -> None:
    if not (0 < q < 1 and 0 < level < 1):
        raise ValueError(f"q and level must lie between 0 and 1: {q}, {level}")


def _rank(q: float, n: int) -> int:
    # 0.95 * 100 is 95.00000000000001 in binary: a rank must not jump for that.
    return max(1, ceil(q * n - 1e-9))


@lru_cache(maxsize=256)
def _ranks(q: float, n: int, level: float) -> tuple[int, int]:
    """1-based ranks ``(l, u)``: ``P(X_(l) <= quantile <= X_(u)) >= level``."""
    tail = (1 - level) / 2
    below = bdtr(np.arange(n), n, q)  # P(fewer than k + 1 samples below) for k = 0..n-1
    low = int(np.searchsorted(below, tail, side="right"))
    high = int(np.searchsorted(below, 1 - tail, side="left")) + 1
    return max(low, 1), min(high, n)


def _finite(value: float) -> float | None:
    return None if value == inf else value
