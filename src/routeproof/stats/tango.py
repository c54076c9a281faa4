"""Tango's score for a difference of two paired proportions, and its interval.

Source: T. Tango, Equivalence test and confidence interval for the difference in
proportions for the paired-sample design, Statistics in Medicine 17 (1998) 891-908.

Throughout, ``losses`` are pairs only the baseline got right, ``gains`` pairs only the
candidate got right, and a *loss* is the share ``(losses - gains) / n``.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq
from scipy.special import ndtri

from routeproof.stats.interval import Interval


def score(
    losses: ArrayLike, gains: ArrayLike, n: int, loss_share: float
) -> NDArray[np.float64]:
    """Score statistic of the null "the true loss is ``loss_share``".

    ``(losses - gains - n * d) / sqrt(n * (2 q + d (1 - d)))``, where ``d`` is
    ``loss_share`` and ``q`` is the share of gains that makes the table most likely
    under the null. Standard normal in large samples; negative when the sample lost
    less than ``loss_share``. 0 where the null leaves no variance at all (no flips and
    ``d = 0``).
    """
    b = np.asarray(losses, dtype=np.float64)
    c = np.asarray(gains, dtype=np.float64)
    d = float(loss_share)
    linear = (2 * n - b + c) * d - b - c
    root = np.sqrt(np.maximum(linear**2 + 8 * n * c * d * (1 - d), 0.0))
    # Of the two forms of the quadratic's root, the one without cancellation.
    with np.errstate(divide="ignore", invalid="ignore"):
        q = np.where(
            linear <= 0,
            (root - linear) / (4 * n),
            2 * c * d * (1 - d) / np.maximum(root + linear, 1e-300),
        )
    variance = n * (2 * np.maximum(q, 0.0) + d * (1 - d))
    gap = b - c - n * d
    safe = np.where(variance > 0, variance, 1.0)
    flat = np.where(gap == 0, 0.0, np.copysign(np.inf, gap))
    return np.where(variance > 1e-12, gap / np.sqrt(safe), flat)


def tango_interval(*, losses: int, gains: int, n: int, level: float) -> Interval:
    """Score interval of the difference candidate - baseline, a share in [-1, 1].

    All differences that the two-sided score test at ``1 - level`` does not reject.
    Asymptotic: at zero flips and a one-sided 5 % it certifies up to 6.8 % of routes
    that lose exactly the tolerance, which is why small samples are decided by
    :func:`routeproof.stats.exact_paired.exact_p_value` and this interval is shown.
    """
    z = float(ndtri(0.5 + level / 2))
    centre = (losses - gains) / n

    def beyond(sign: float) -> Callable[[float], float]:
        return lambda d: sign * float(score(losses, gains, n, d)) - z

    low = _root(beyond(1.0), -1.0, centre)
    high = _root(beyond(-1.0), centre, 1.0)
    return Interval(low=0.0 - high, high=0.0 - low, level=level, method="tango")


def _root(function: Callable[[float], float], low: float, high: float) -> float:
    """Where ``function`` is 0 between ``low`` and ``high``, else the open end."""
    edge = 1e-12
    left, right = max(low, -1 + edge), min(high, 1 - edge)
    at_left, at_right = function(left), function(right)
    if at_left * at_right > 0:
        # The statistic never reaches the quantile on this side.
        return low if abs(low) == 1 else high
    if left == right:
        return left
    return float(brentq(function, left, right, xtol=1e-10))
