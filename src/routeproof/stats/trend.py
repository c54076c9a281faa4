"""Does a number creep? A slope over time with an interval that survives outliers.

For memory over a soak, acceptance over uptime, latency over a run. Samples of a running
engine resemble their neighbours, so the interval is widened by what their correlation
takes away from the number of samples.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtrit

from routeproof.stats.interval import Interval

FEWEST_SAMPLES = 20
_FEWEST_STRETCHES = 12
_MOST_STRETCHES = 30
_THEIL_SEN_SD = 1.03
"""Standard error of the Theil-Sen slope over that of least squares in normal noise."""


@dataclass(frozen=True, slots=True)
class Trend:
    """A robust slope.

    Attributes:
        slope: Units of the value per second; ``None`` with too few samples.
        interval: Of the slope.
        rises: Whether the whole interval lies above 0.
        falls: Whether the whole interval lies below 0.
        n: Samples.
        lag_correlation: Correlation of a stretch's residual with the next one's.
    """

    slope: float | None
    interval: Interval | None
    rises: bool
    falls: bool
    n: int
    lag_correlation: float | None


def trend(at_s: ArrayLike, value: ArrayLike, *, level: float = 0.95) -> Trend:
    """Theil-Sen slope of medians over stretches of time, with an interval.

    Samples are reduced to medians of up to 30 equal stretches (spikes vanish there),
    the slope is the median of the slopes between all pairs of them (H. Theil 1950; P.
    K. Sen, JASA 63 (1968) 1379-1389). Its standard error is that of least squares,
    times ``sqrt((1 + r) / (1 - r))`` for residuals with lag correlation ``r`` (made
    larger by its own bias in short series); Student's distribution has the degrees of
    freedom that are left. Holds for a series whose memory is short against its
    length; a random walk has no trend to estimate, and looks like one.

    Args:
        at_s: Times, shape ``(n,)``, any order.
        value: Values, shape ``(n,)``.
        level: Two-sided confidence.

    Raises:
        ValueError: Shapes differ or a number is not finite.
    """
    t, y = np.asarray(at_s, dtype=np.float64), np.asarray(value, dtype=np.float64)
    if t.shape != y.shape or not (np.isfinite(t).all() and np.isfinite(y).all()):
        raise ValueError("times and values differ in shape or are not finite")
    n = int(t.size)
    if n < FEWEST_SAMPLES or t.max() == t.min():
        return Trend(None, None, False, False, n, None)
    order = np.argsort(t, kind="stable")
    t, y = _stretches(t[order], y[order])
    if t.size < 4:
        return Trend(None, None, False, False, n, None)
    slope = _theil_sen(t, y)
    residual = y - slope * t
    residual = residual - residual.mean()
    r = _lag_correlation(residual)
    fewer = (1 - r) / (1 + r)
    df = max(2.0, t.size * fewer - 2)
    variance = float((residual**2).sum()) / (t.size - 2)
    se = (variance / float(((t - t.mean()) ** 2).sum()) / fewer) ** 0.5
    reach = float(stdtrit(df, 0.5 + level / 2)) * se * _THEIL_SEN_SD
    low, high = slope - reach, slope + reach
    interval = Interval(low=low, high=high, level=level, method="theil_sen_stretches")
    return Trend(slope, interval, low > 0, high < 0, n, r)


def _theil_sen(t: NDArray[np.float64], y: NDArray[np.float64]) -> float:
    i, j = np.triu_indices(t.size, 1)
    return float(np.median((y[j] - y[i]) / (t[j] - t[i])))


def _stretches(
    t: NDArray[np.float64], y: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Medians over equal stretches of time; stretches without a sample are left out."""
    count = int(min(_MOST_STRETCHES, max(_FEWEST_STRETCHES, t.size // 5)))
    edges = np.linspace(t[0], t[-1], count + 1)[1:-1]
    starts = np.unique(np.r_[0, np.searchsorted(t, edges), t.size])
    parts = [slice(a, b) for a, b in zip(starts[:-1], starts[1:], strict=True)]
    return (
        np.array([np.median(t[part]) for part in parts]),
        np.array([np.median(y[part]) for part in parts]),
    )


def _lag_correlation(residual: NDArray[np.float64]) -> float:
    """Correlation of neighbours, between 0 and 0.9, made larger by its bias."""
    n = residual.size
    spread = float((residual**2).sum())
    if spread <= 0:
        return 0.0
    rho = float((residual[1:] * residual[:-1]).sum() / spread)
    return float(np.clip(rho + (2 + 4 * max(rho, 0.0)) / n, 0.0, 0.9))
