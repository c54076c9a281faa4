"""Four lower bounds of a mean difference, each with another weakness.

==============  ================================================  ====================
bound           source                                            fails when
==============  ================================================  ====================
cluster t       Student; jackknife over clusters                  tails unseen, skew
BCa             Efron, JASA 82 (1987) 171-185                     tails unseen, few
worst case      Gaffke (2005), Metrika 62; Learned-Miller and     (valid for bounded
                Thomas (2019), arXiv:1905.06208                   scores; no proof)
betting         Waudby-Smith and Ramdas, JRSS B 86 (2024) 1-27    never; but is wide
==============  ================================================  ====================
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri, stdtr, stdtrit

from routeproof.stats.clusters import Clustered
from routeproof.stats.interval import Interval

_TIES = 10
"""Clusters per distinct one from which drawing counts of them is the quicker way."""
_CHUNK = 2_000_000
_MOST_WORST_CASE = 4_000
"""Its draws cost a random number per cluster; the p-value's error stays below 0.004."""
_BETS = np.array([0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 0.9, 1.0])
"""Shares of the largest bet that cannot lose more than everything."""
_STAKES = np.array([0.03] * 8 + [0.76])
"""Most stake on the largest bet: samples without any loss are the normal case."""
_HALVINGS = 20


@dataclass(frozen=True, slots=True)
class StudentT:
    """Cluster-robust paired t: mean, standard error, degrees of freedom."""

    mean: float
    se: float
    df: int

    def interval(self, alpha: float) -> Interval:
        """Two-sided interval at ``1 - 2 alpha``."""
        reach = float(stdtrit(self.df, 1 - alpha)) * self.se
        return Interval(
            low=self.mean - reach,
            high=self.mean + reach,
            level=1 - 2 * alpha,
            method="paired_t",
        )

    def p_below(self, value: float) -> float:
        """One-sided p-value of "the true mean is at least ``value``"."""
        if self.se == 0:
            return float(self.mean >= value)
        return float(stdtr(self.df, (self.mean - value) / self.se))


def student_t(sample: Clustered) -> StudentT:
    """Mean over cases with its jackknife standard error over clusters.

    ``se^2 = (g - 1) / g * sum((left_out - mean)^2)``: for clusters of one size the
    classical formula, for unequal ones on the safe side of the sandwich estimator.
    """
    g = sample.total.size
    spread = ((sample.left_out() - sample.mean) ** 2).sum()
    return StudentT(sample.mean, float(np.sqrt((g - 1) / g * spread)), g - 1)


@dataclass(frozen=True, slots=True)
class Bound:
    """A one-sided lower limit of the mean, and the p-value of "mean <= -tolerance"."""

    low: float
    p_value: float


def bca_bound(
    sample: Clustered,
    *,
    tolerance: float,
    alpha: float,
    resamples: int,
    rng: np.random.Generator,
) -> Bound | None:
    """Bias-corrected and accelerated bootstrap over clusters, as a lower bound.

    Returns:
        ``None`` where it is not defined: every resample falls on one side of the
        mean, or the acceleration folds the scale (a handful of clusters carry all
        the variance).
    """
    draws = np.sort(_bootstrap(sample, resamples, rng))
    mean = sample.mean
    z0 = _quantile_of(draws, mean)
    left = sample.left_out()
    pull = left.mean() - left
    spread = float((pull**2).sum())
    if spread <= 1e-24 or not np.isfinite(z0):
        return None
    acceleration = float((pull**3).sum()) / (6 * spread**1.5)
    shifted = z0 + float(ndtri(alpha))
    fold = 1 - acceleration * shifted
    at_edge = _quantile_of(draws, -tolerance) - z0
    unfold = 1 + acceleration * at_edge
    if fold <= 0.1:
        return None
    rank = int(np.clip(float(ndtr(z0 + shifted / fold)) * resamples, 0, resamples - 1))
    if np.isinf(at_edge) or unfold <= 0:
        # No resample, or every one, beyond the edge: as fine as the draws can tell.
        p = 1 / resamples if at_edge < 0 else 1.0
    else:
        p = max(float(ndtr(at_edge / unfold - z0)), 1 / resamples)
    return Bound(low=float(draws[rank]), p_value=p)


def _quantile_of(draws: NDArray[np.float64], value: float) -> float:
    """Normal quantile of the share of draws below ``value``, ties counted half."""
    below = np.searchsorted(draws, value - 1e-12, side="left")
    not_above = np.searchsorted(draws, value + 1e-12, side="right")
    return float(ndtri((below + not_above) / 2 / draws.size))


def worst_case_bound(
    sample: Clustered,
    *,
    tolerance: float,
    alpha: float,
    resamples: int,
    rng: np.random.Generator,
) -> Bound:
    """Lower bound that gives the unseen part of the distribution the worst value.

    The alpha quantile of a weighted mean with random weights (the spacings of a
    uniform sample), in which one more cluster of average size scores -1. With no
    flips at all it is ``-(1 - alpha^(1/g))``, the exact binomial bound, so a rare
    collapse that the sample happens not to show cannot be certified away.
    """
    value, size, times = _distinct(sample)
    typical = float(sample.count.mean())
    resamples = min(resamples, _MOST_WORST_CASE)
    draws = np.empty(resamples)
    step = max(1, _CHUNK // value.size)
    single = bool(times.max() == 1)
    for done in range(0, resamples, step):
        rows = min(step, resamples - done)
        shape = (rows, value.size)
        weight = (
            rng.standard_exponential(shape, dtype=np.float32)
            if single
            else rng.standard_gamma(times, size=shape)
        )
        unseen = rng.standard_exponential(rows) * typical
        draws[done : done + rows] = (weight @ value - unseen) / (weight @ size + unseen)
    p = (1 + np.count_nonzero(draws <= -tolerance)) / (1 + resamples)
    return Bound(low=float(np.quantile(draws, alpha)), p_value=float(p))


def betting(
    sample: Clustered, *, tolerance: float, alpha: float, rng: np.random.Generator
) -> tuple[float, Interval]:
    """The p-value of "the mean is at most -tolerance", and an interval at 1 - 2 alpha.

    Both by betting, valid at every size and for every distribution in [-1, 1]. Wealth
    ``prod(1 + bet * (d + tolerance))`` over cluster means in random order, averaged
    over a grid of bets, is a martingale under the null; the p-value is 1 / (its
    largest value). The interval holds the means whose own p-value, from either side,
    is above ``alpha``: ``-tolerance`` lies below it exactly when it is rejected.

    Waudby-Smith and Ramdas, "Estimating means of bounded random variables by betting",
    JRSS B 86 (2024).
    """
    means = rng.permutation(sample.total / sample.count)
    p = _betting_p_value(means, tolerance)
    low = -_smallest_rejected(means, alpha, start=(tolerance, p <= alpha))
    high = _smallest_rejected(-means, alpha)
    return p, Interval(low=low, high=high, level=1 - 2 * alpha, method="betting")


def _smallest_rejected(
    means: NDArray[np.float64], alpha: float, *, start: tuple[float, bool] | None = None
) -> float:
    """The least tolerance at which "the mean is at most -tolerance" is rejected.

    1 when none is; found by halving, on the safe side by 2e-6 at the most. ``start``
    is a tolerance whose answer is known.
    """
    kept, rejected = -1.0, 1.0
    if start is not None:
        kept, rejected = (-1.0, start[0]) if start[1] else (start[0], 1.0)
    for _ in range(_HALVINGS):
        middle = (kept + rejected) / 2
        if _betting_p_value(means, middle) <= alpha:
            rejected = middle
        else:
            kept = middle
    return rejected


def _betting_p_value(means: NDArray[np.float64], tolerance: float) -> float:
    bets = _BETS / (1.0 - tolerance)
    with np.errstate(divide="ignore"):
        gain = np.log1p(np.maximum(bets[:, None] * (means + tolerance), -1.0))
    wealth = _STAKES @ np.exp(np.minimum(np.cumsum(gain, axis=1), 600.0))
    return float(min(1.0, 1.0 / max(1.0, wealth.max(initial=1.0))))


def betting_minimum(tolerance: float, alpha: float) -> int:
    """Fewest clusters with which betting can certify, when none differs at all.

    A few more than the exact binomial's (318 for 299 at 1 %), the price of being
    valid for every distribution of scores.
    """
    bets = _BETS / (1.0 - tolerance)
    low, high = 0, 1
    while _STAKES @ (1 + bets * tolerance) ** high < 1 / alpha:
        low, high = high, high * 2
    while high - low > 1:
        middle = (low + high) // 2
        if _STAKES @ (1 + bets * tolerance) ** middle < 1 / alpha:
            low = middle
        else:
            high = middle
    return high


def sign_flip_p_value(
    sample: Clustered, *, resamples: int, rng: np.random.Generator
) -> float:
    """One-sided p-value of "no loss" by swapping the arms of whole clusters.

    For few clusters that differ at all, where the t-test sees significance in three
    small losses.
    """
    total = sample.total[sample.total != 0]
    if total.size == 0:
        return 1.0
    flips = rng.integers(0, 2, size=(resamples, total.size)) * 2 - 1
    as_low = np.count_nonzero(flips @ total <= total.sum() + 1e-12)
    return (1 + int(as_low)) / (1 + resamples)


def _distinct(
    sample: Clustered,
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Distinct (total, count) pairs and how often each occurs."""
    rows, times = np.unique(
        np.stack([sample.total, sample.count]), axis=1, return_counts=True
    )
    return rows[0], rows[1], times.astype(np.float64)


def _bootstrap(
    sample: Clustered, resamples: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Means of ``resamples`` draws of as many clusters, with replacement."""
    g = sample.total.size
    value, size, times = _distinct(sample)
    if value.size * _TIES <= g:
        counts = rng.multinomial(g, times / g, size=resamples)
        few: NDArray[np.float64] = (counts @ value) / (counts @ size)
        return few
    draws = np.empty(resamples)
    step = max(1, _CHUNK // g)
    even = bool(np.all(sample.count == sample.count[0]))
    for done in range(0, resamples, step):
        rows = min(step, resamples - done)
        pick = rng.integers(0, g, size=(rows, g), dtype=np.int32)
        total = sample.total[pick].sum(axis=1)
        count = g * sample.count[0] if even else sample.count[pick].sum(axis=1)
        draws[done : done + rows] = total / count
    return draws
