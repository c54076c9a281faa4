"""How many pairs a tolerance costs, before anything is spent.

Power is computed by enumeration of the exact test, not by a normal formula: with few
flips the textbook ``(z_alpha + z_power)^2 * flips / tolerance^2`` promises too much.
"""

from math import ceil, log, log1p, sqrt

import numpy as np
from scipy.special import ndtri

from routeproof.stats.exact_paired import critical_region, probability

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
    region = critical_region(n, tolerance, alpha)
    share = max(flips, abs(loss))
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
    share = max(flips, abs(d))
    linear = (2 - d) * m - share
    root = sqrt(linear**2 + 4 * (share - d) * m * (1 - m))
    gain = max(0.0, (root - linear) / 4)
    null_sd = sqrt(2 * gain + m * (1 - m))
    true_sd = sqrt(max(share - d * d, 0.0))
    z_alpha, z_power = float(ndtri(1 - alpha)), float(ndtri(power))
    n = ((z_alpha * null_sd + z_power * true_sd) / (m - d)) ** 2
    return max(ceil(n), zero_flip_minimum(tolerance, alpha))


def pairs_needed(
    *,
    flips: float,
    tolerance: float,
    alpha: float,
    power: float = 0.8,
    loss: float = 0.0,
) -> int:
    """Smallest number of pairs with the power asked for, by enumeration.

    Smallest in steps of about 1 %, such that the next five steps hold as well.
    """
    target = power

    def holds(n: int) -> bool:
        region = critical_region(n, tolerance, alpha)
        share = np.array([max(flips, abs(loss))])
        return float(probability(region, share, loss)[0]) >= target

    guess = approximate_pairs(
        flips=flips, tolerance=tolerance, alpha=alpha, power=power, loss=loss
    )
    floor = zero_flip_minimum(tolerance, alpha)
    n = max(floor, int(guess * 0.85))
    run_start, held = n, 0
    while held <= _HOLD_STEPS:
        if holds(n):
            run_start = n if held == 0 else run_start
            held += 1
        else:
            held = 0
        n = max(n + 1, ceil(n * 1.01))
    return run_start
