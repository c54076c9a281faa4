"""The exact unconditional test of "the loss is at least the tolerance".

The probability of every table at least as favourable as the one seen, in the order of
Tango's score, is taken at the worst value of the nuisance (the share of pairs that
flip). Nothing is approximated, so the error rate is at most alpha for every n, also at
zero flips, where normal approximations break. Source of the design: J. Berger and K.
Sidik, Exact unconditional tests for a 2x2 matched-pairs design, Statistical Methods in
Medical Research 12 (2003) 91-108.

Two things are worth knowing, argued in ``docs/decisions/010-exact-paired-test.md``:

* The nuisance is searched where the number of flips seen leaves it, in an exact
  interval that misses it once in a million, and that millionth is added to the
  p-value (R. Berger and D. Boos, JASA 89 (1994) 1012-1016). A pair of routes with no
  flip is so not judged by how the test would do if half of all pairs flipped.
* The supremum needs only the boundary "loss = tolerance": for a given number of flips
  the favourable tables are those with few losses, and a larger true loss makes few
  losses less likely.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betainc, betaincinv, gammaln, ndtri

from routeproof.stats.tango import score

_TIE = 1e-9
_WINDOW_SD = 9.0
"""Standard deviations of the number of flips kept: leaves out less than 1e-15."""
MISSED = 1e-6
"""Chance that the interval of the nuisance misses it; added to every p-value."""


@dataclass(frozen=True, slots=True)
class Region:
    """Tables in favour of the candidate: ``losses <= most_losses[flips]``.

    Attributes:
        n: Pairs.
        most_losses: Shape ``(largest number of flips + 1,)``; -1 where no number of
            losses is few enough.
    """

    n: int
    most_losses: NDArray[np.int64]


def favourable_region(
    n: int, tolerance: float, at_most: ArrayLike, *, most_flips: int | None = None
) -> Region:
    """Tables whose score at ``tolerance`` is at most ``at_most``.

    For a given number of flips the score grows with the losses among them: bisection
    finds the edge for all numbers of flips at once.

    Args:
        n: Pairs.
        tolerance: Loss of the null.
        at_most: One limit, or one per number of flips.
        most_flips: Tables with more flips are left out; ``n`` when absent.
    """
    flips = np.arange((n if most_flips is None else min(n, most_flips)) + 1)
    inside = np.full(flips.size, -1, dtype=np.int64)
    outside = flips + 1
    limit = np.asarray(at_most, dtype=np.float64) + _TIE
    while np.any(outside - inside > 1):
        middle = np.maximum((inside + outside) // 2, 0)
        good = score(middle, flips - middle, n, tolerance) <= limit
        open_ = outside - inside > 1
        inside = np.where(open_ & good, middle, inside)
        outside = np.where(open_ & ~good, middle, outside)
    return Region(n=n, most_losses=inside)


def probability(
    region: Region, flips: NDArray[np.float64], loss: float
) -> NDArray[np.float64]:
    """Probability of the region for true shares of flips and a true net loss.

    ``sum over t of P(T = t) * P(losses <= most_losses[t] | T = t)``: the number of
    flips is binomial, and each flip is a loss with probability
    ``(flips + loss) / (2 * flips)``.

    Args:
        region: The tables counted.
        flips: True share of pairs that flip, shape ``(k,)``, at least ``abs(loss)``.
        loss: True share of losses less that of gains.

    Returns:
        Shape ``(k,)``.
    """
    n = region.n
    mean, sd = n * flips, np.sqrt(n * flips * (1 - flips))
    first = np.clip(np.floor(mean - _WINDOW_SD * sd - 10), 0, None).astype(np.int64)
    last = np.ceil(mean + _WINDOW_SD * sd + 10).astype(np.int64)
    width = np.maximum(np.minimum(last, region.most_losses.size - 1) - first + 1, 0)
    row = np.repeat(np.arange(flips.size), width)
    t = np.arange(row.size) + np.repeat(first - (np.cumsum(width) - width), width)
    used = region.most_losses[t] >= 0
    row, t = row[used], t[used]
    with np.errstate(divide="ignore", invalid="ignore"):
        log_share = np.where(flips > 0, np.log(flips), 0.0)[row]
        log_rest = np.where(flips < 1, np.log1p(-flips), 0.0)[row]
        is_loss = np.where(flips > 0, (flips + loss) / (2 * flips), 0.5)
    log_n = _log_factorial(n)
    log_mass = log_n[n] - log_n[t] - log_n[n - t] + t * log_share + (n - t) * log_rest
    impossible = ((flips[row] <= 0) & (t > 0)) | ((flips[row] >= 1) & (t < n))
    mass = np.where(impossible, 0.0, np.exp(log_mass))
    mass *= _at_most(region.most_losses[t], t, np.clip(is_loss, 0.0, 1.0)[row])
    return np.bincount(row, weights=mass, minlength=flips.size).astype(np.float64)


def _at_most(
    most: NDArray[np.int64], trials: NDArray[np.int64], p: NDArray[np.float64]
) -> NDArray[np.float64]:
    """``P(Binomial(trials, p) <= most)`` for ``most >= 0``."""
    whole = most >= trials
    inner: NDArray[np.float64] = betainc(
        np.where(whole, 1, trials - most), most + 1.0, 1.0 - p
    )
    return np.where(whole, 1.0, inner)


@lru_cache(maxsize=64)
def _log_factorial(n: int) -> NDArray[np.float64]:
    table: NDArray[np.float64] = gammaln(np.arange(n + 1) + 1.0)
    table.flags.writeable = False
    return table


def size(region: Region, tolerance: float, flips_between: tuple[float, float]) -> float:
    """Largest probability of the region over the nuisance, at a loss of ``tolerance``.

    The nuisance, the share of flips, is searched on a grid even in its square root
    (where the curve is about equally smooth everywhere, with a step of about a third
    of a standard deviation), then on ever finer grids around the three best points.
    """
    low, high = _roots(flips_between, tolerance)
    count = 12 + int(3 * np.sqrt(region.n) * (high - low))
    roots = np.linspace(low, high, count)
    values = _at(region, tolerance, roots)
    best = roots[np.argsort(values)[-3:]]
    top = float(values.max())
    step = (high - low) / (count - 1)
    while step > 1e-5 and top > 0:
        fine = (best[:, None] + step * np.linspace(-1, 1, 9)[None, :]).ravel()
        fine = np.unique(np.clip(fine, low, high))
        values = _at(region, tolerance, fine)
        best = fine[np.argsort(values)[-1:]]
        top = max(top, float(values.max()))
        step /= 4
    return min(top, 1.0)


def _roots(flips_between: tuple[float, float], tolerance: float) -> tuple[float, float]:
    """Limits of the share of flips, on the scale that is searched."""
    low, high = (max(share - tolerance, 0.0) for share in flips_between)
    return (low / (1 - tolerance)) ** 0.5, (high / (1 - tolerance)) ** 0.5


def _at(
    region: Region, tolerance: float, roots: NDArray[np.float64]
) -> NDArray[np.float64]:
    return probability(region, tolerance + (1.0 - tolerance) * roots**2, tolerance)


def flips_left(flips: ArrayLike, n: int) -> NDArray[np.float64]:
    """Exact limits of the true share of flips given those seen, shape ``(2, ...)``.

    Clopper-Pearson at a level of ``1 - MISSED``.
    """
    t = np.asarray(flips, dtype=np.float64)
    tail = MISSED / 2
    low = np.where(t > 0, betaincinv(np.maximum(t, 1), n - t + 1, tail), 0.0)
    high = np.where(t < n, betaincinv(t + 1, np.maximum(n - t, 1), 1 - tail), 1.0)
    return np.stack([low, high])


@lru_cache(maxsize=4096)
def exact_p_value(losses: int, gains: int, n: int, tolerance: float) -> float:
    """One-sided exact p-value of the null "the true loss is at least ``tolerance``".

    Args:
        losses: Pairs only the baseline got right.
        gains: Pairs only the candidate got right.
        n: All pairs, with and without a flip; they must be independent.
        tolerance: Loss still allowed, a share in (0, 1).
    """
    seen = float(score(losses, gains, n, tolerance))
    low, high = flips_left(losses + gains, n)
    region = favourable_region(n, tolerance, seen)
    return min(1.0, size(region, tolerance, (float(low), float(high))) + MISSED)


_SCORES = 40


@lru_cache(maxsize=1024)
def critical_region(
    n: int, tolerance: float, alpha: float, most_flips: int | None = None
) -> Region:
    """The tables that certify at ``alpha``, from the safe side.

    The size is tabulated for 40 scores around the normal quantile (the nearer the more
    pairs) and a grid of the nuisance; each number of flips takes the largest score
    whose size stays below alpha where that number leaves the nuisance. A table between
    two scores is left out, which costs less than 0.003 of power.

    Args:
        n: Pairs.
        tolerance: Loss of the null.
        alpha: One-sided error rate.
        most_flips: Tables with more flips are left out; saves time where the true
            share of flips makes them improbable.
    """
    flips = np.arange((n if most_flips is None else min(n, most_flips)) + 1)
    low, high = flips_left(flips, n)
    top = _roots((0.0, float(high[-1])), tolerance)[1]
    roots = np.linspace(0.0, top, 24 + int(4 * np.sqrt(n) * top))
    reach = min(0.55, 0.1 + 5 / n**0.5)
    scores = float(ndtri(alpha)) + np.linspace(-reach, reach, _SCORES)
    share = tolerance + (1 - tolerance) * roots**2
    # One point more on either side, so that the grid covers the interval.
    first = np.maximum(np.searchsorted(share, low) - 1, 0)
    last = np.minimum(np.searchsorted(share, high), roots.size - 1)
    limit = np.full(flips.size, -np.inf)
    for at_most in scores:
        region = favourable_region(n, tolerance, at_most)
        small = _at(region, tolerance, roots) + MISSED <= alpha
        large_before = np.concatenate([[0], np.cumsum(~small)])
        fits = large_before[last + 1] == large_before[first]
        if not fits.any():
            break
        limit = np.where(fits, at_most, limit)
    return favourable_region(n, tolerance, limit, most_flips=most_flips)
