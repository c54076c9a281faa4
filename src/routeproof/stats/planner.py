"""How many pairs a tolerance costs, before anything is spent.

Power is computed by enumeration of the exact test, not by a normal formula: with few
flips the textbook ``(z_alpha + z_power)^2 * flips / tolerance^2`` promises too much.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, log, log1p, sqrt

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr, ndtri

from routeproof.stats.exact_paired import critical_region, probability
from routeproof.stats.mean_bounds import betting_minimum

_HOLD_STEPS = 5
"""Power is saw-toothed in n: an n counts only if the next five 1 % steps hold too."""


def zero_flip_minimum(tolerance: float, alpha: float) -> int:
    """Fewest pairs that certify ``tolerance`` when not a single pair flips.

    Smallest n with ``(1 - tolerance)^n <= alpha``: 299 for 1 %, 149 for 2 %, 99 for
    3 % and 59 for 5 % at alpha 0.05.
    """
    n = ceil(log(alpha) / log1p(-tolerance))
    return n if (1 - tolerance) ** n <= alpha else n + 1


def power(
    *, n: int, flips: float, tolerance: float, alpha: float, loss: float = 0.0
) -> float:
    """Probability that ``n`` pairs certify, by enumeration of the exact test.

    Args:
        n: Pairs.
        flips: True share of pairs whose verdict differs between the arms.
        tolerance: Loss still allowed, a share.
        alpha: One-sided error rate.
        loss: True net loss of the candidate, a share; 0 for equal routes.
    """
    return _power(n, flips, tolerance, alpha, loss)


def _power(n: int, flips: float, tolerance: float, alpha: float, loss: float) -> float:
    share = max(flips, abs(loss))
    # Beyond seven standard deviations no table matters.
    most = min(n, ceil(n * share + 7 * sqrt(n * share * (1 - share)) + 8))
    region = critical_region(n, tolerance, alpha, most)
    return float(probability(region, np.array([share]), loss)[0])


def approximate_pairs(
    *,
    flips: float,
    tolerance: float,
    alpha: float,
    power: float = 0.8,
    loss: float = 0.0,
) -> int:
    """Pairs needed by the large-sample power of Tango's test; never below the minimum.

    ``((z_alpha * sqrt(v0) + z_power * sqrt(v1)) / (tolerance - loss))^2`` with the
    variance ``v0`` under the null (at the shares most likely there) and ``v1`` as
    assumed. Good where exact enumeration is dear; too small by up to a few percent
    at small ``flips``.
    """
    m, d = tolerance, loss
    null_sd, true_sd = _spreads(flips, m, d)
    z_alpha, z_power = float(ndtri(1 - alpha)), float(ndtri(power))
    n = ((z_alpha * null_sd + z_power * true_sd) / (m - d)) ** 2
    return max(ceil(n), zero_flip_minimum(tolerance, alpha))


def approximate_power(
    n: int, *, flips: float, tolerance: float, alpha: float, loss: float = 0.0
) -> float:
    """Probability that ``n`` pairs certify, by the formula of `approximate_pairs`.

    0 below the fewest pairs that can certify, and there 1 or 0 without any flip.
    """
    if n < zero_flip_minimum(tolerance, alpha):
        return 0.0
    null_sd, true_sd = _spreads(flips, tolerance, loss)
    reach = sqrt(n) * (tolerance - loss) - float(ndtri(1 - alpha)) * null_sd
    if true_sd == 0:
        return 1.0 if reach >= 0 or flips == 0 else 0.0
    return float(ndtr(reach / true_sd))


def _spreads(flips: float, m: float, d: float) -> tuple[float, float]:
    """Spread of one difference: at the edge of the null, and as assumed."""
    share = max(flips, abs(d))
    linear = (2 - d) * m - share
    root = sqrt(linear**2 + 4 * (share - d) * m * (1 - m))
    gain = max(0.0, (root - linear) / 4)
    return sqrt(2 * gain + m * (1 - m)), sqrt(max(share - d * d, 0.0))


def pairs_needed(
    *,
    flips: float,
    tolerance: float,
    alpha: float,
    power: float = 0.8,
    loss: float = 0.0,
) -> int:
    """Smallest number of pairs with the power asked for, by enumeration.

    Smallest in steps of about 1 %, such that the next five steps hold as well. Takes
    up to seconds above 1,000 pairs, see :func:`approximate_pairs`.
    """

    def holds(n: int) -> bool:
        return _power(n, flips, tolerance, alpha, loss) >= power

    floor = zero_flip_minimum(tolerance, alpha)
    guess = approximate_pairs(
        flips=flips, tolerance=tolerance, alpha=alpha, power=power, loss=loss
    )
    low = n = max(floor, int(guess * 0.85))
    while not holds(n):
        low, n = n + 1, ceil(n * 1.04)
    # The coarse steps may have jumped over a few that hold already.
    n = min(low, n)
    run_start, held = n, 0
    while held <= _HOLD_STEPS:
        if holds(n):
            run_start = n if held == 0 else run_start
            held += 1
        else:
            held = 0
        n = max(n + 1, ceil(n * 1.01))
    return run_start


@dataclass(frozen=True, slots=True)
class Spread:
    """How far scores of one case differ between arms, split in two.

    Attributes:
        between: Variance over cases of a case's true difference.
        within: Variance of one trial's difference around its case's.
    """

    between: float
    within: float

    def variance(self, trials: int) -> float:
        """Variance of a case's mean difference over ``trials``."""
        return self.between + self.within / trials


def spread_of(differences: Sequence[ArrayLike]) -> Spread | None:
    """Split the variance of differences by case and trial (one-way random effects).

    Args:
        differences: One array per case, one difference per trial.

    Returns:
        ``None`` with fewer than two cases. ``within`` is 0 when no case was tried
        twice: then nothing is known of it and more trials promise nothing.
    """
    rows = [np.asarray(row, dtype=np.float64).ravel() for row in differences]
    rows = [row for row in rows if row.size]
    if len(rows) < 2:
        return None
    means = np.array([row.mean() for row in rows])
    free = sum(row.size - 1 for row in rows)
    squares = sum(float(((row - row.mean()) ** 2).sum()) for row in rows)
    within = squares / free if free else 0.0
    trials = 1 / float(np.mean([1 / row.size for row in rows]))
    between = max(0.0, float(means.var(ddof=1)) - within / trials)
    return Spread(between=between, within=within)


def graded_cases_needed(
    spread: Spread,
    *,
    trials: int,
    tolerance: float,
    alpha: float,
    power: float = 0.8,
    loss: float = 0.0,
) -> int:
    """Cases for a mean of graded scores, with ``trials`` of each.

    The fewest with ``q(n) + z_power * sqrt(v / n) <= tolerance - loss``, where ``v`` is
    ``between + within / trials`` and ``q`` the distance between the mean and the
    worst-case bound, the widest of the three: the alpha quantile of a normal with
    variance ``v / n`` less an exponential with mean ``1 / n`` (the unseen case), by
    Cornish and Fisher. At least what the betting test needs without any difference.
    More trials only lower the second part of ``v``.
    """
    z_power = float(ndtri(power))
    v, gap = spread.variance(trials), tolerance - loss

    def reach(n: int) -> float:
        return _worst_case_reach(v, n, alpha) + z_power * sqrt(v / n)

    low, high = 0, betting_minimum(tolerance, alpha)
    while reach(high) > gap:
        low, high = high, 2 * high
    while high - low > 1 and low:
        middle = (low + high) // 2
        low, high = (middle, high) if reach(middle) > gap else (low, middle)
    return high


def graded_power(
    n: int,
    spread: Spread,
    *,
    trials: int,
    tolerance: float,
    alpha: float,
    loss: float = 0.0,
) -> float:
    """Probability that ``n`` cases certify a mean, as in `graded_cases_needed`."""
    if n < betting_minimum(tolerance, alpha):
        return 0.0
    v = spread.variance(trials)
    gap = tolerance - loss - _worst_case_reach(v, n, alpha)
    if v == 0:
        return 1.0 if gap >= 0 else 0.0
    return float(ndtr(gap / sqrt(v / n)))


def _worst_case_reach(v: float, n: int, alpha: float) -> float:
    """Distance between a mean of ``n`` cases and its worst-case bound."""
    z = float(ndtri(1 - alpha))
    sd = sqrt(v / n + 1 / (n * n))
    skew = 2 / n**3 / sd**3
    return 1 / n + sd * (z + (z * z - 1) * skew / 6)
