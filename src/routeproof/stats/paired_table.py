"""Further readings of paired verdicts: McNemar's family, ratios, more than two routes.

The verdict uses none of these for passing: "not significantly different" is not "no
worse". They are for harm, for reports and for agreement with other tools.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.special import bdtr, betaincinv, chdtrc, ndtri

from routeproof.stats.interval import Interval
from routeproof.stats.proportion import wilson


def mcnemar_exact(losses: int, gains: int) -> float:
    """Two-sided exact p-value: twice the smaller binomial tail, at most 1."""
    flips = losses + gains
    if flips == 0:
        return 1.0
    return min(1.0, 2 * float(bdtr(min(losses, gains), flips, 0.5)))


def mcnemar_mid_p(losses: int, gains: int) -> float:
    """Two-sided mid-p: the exact one less the probability of the table seen."""
    flips, few = losses + gains, min(losses, gains)
    if flips == 0 or losses == gains:
        return 1.0
    point = float(bdtr(few, flips, 0.5))
    before = float(bdtr(few - 1, flips, 0.5)) if few else 0.0
    return min(1.0, point + before)


def mcnemar_chi_square(
    losses: int, gains: int, *, continuity: bool = False
) -> tuple[float, float]:
    """Chi-square statistic with one degree of freedom, and its p-value."""
    flips = losses + gains
    if flips == 0:
        return 0.0, 1.0
    gap = abs(losses - gains) - (1 if continuity else 0)
    statistic = max(gap, 0) ** 2 / flips
    return statistic, float(chdtrc(1, statistic))


def cochran_q(table: ArrayLike) -> tuple[float, int, float]:
    """Cochran's Q over several routes: statistic, degrees of freedom, p-value.

    Args:
        table: 0 or 1 per item and route, shape ``(items, routes)``.
    """
    verdicts = np.asarray(table, dtype=np.float64)
    k = verdicts.shape[1]
    columns, rows = verdicts.sum(axis=0), verdicts.sum(axis=1)
    spread = k * rows.sum() - (rows**2).sum()
    if spread == 0:
        return 0.0, k - 1, 1.0
    q = float((k - 1) * (k * (columns**2).sum() - columns.sum() ** 2) / spread)
    return q, k - 1, float(chdtrc(k - 1, q))


def bowker(table: ArrayLike) -> tuple[float, int, float]:
    """Bowker's test that paired grades move up as often as down.

    For a judge's ordinal score on two routes.

    Args:
        table: Pairs by baseline grade and candidate grade, shape ``(k, k)``.

    Returns:
        Statistic, degrees of freedom, p-value. As in other tools all ``k (k - 1) / 2``
        cells count as degrees of freedom, also those without a pair.
    """
    counts = np.asarray(table, dtype=np.float64)
    upper = np.triu_indices(counts.shape[0], 1)
    up, down = counts[upper], counts.T[upper]
    seen = up + down > 0
    statistic = float((((up - down) ** 2)[seen] / (up + down)[seen]).sum())
    return statistic, up.size, float(chdtrc(up.size, statistic))


def ratio_interval(
    *, both: int, losses: int, gains: int, n: int, level: float
) -> Interval:
    """Score interval of the ratio of two paired proportions, baseline / candidate.

    ``(both + losses) / (both + gains)``. Source: N.-S. Tang, M.-L. Tang and I. S. F.
    Chan, Statistics in Medicine 22 (2003) 1217-1233. Unbounded above when the
    candidate got nothing right.
    """
    z = float(ndtri(0.5 + level / 2))
    first, second = both + losses, both + gains

    def statistic(ratio: float) -> float:
        a = n * (1 + ratio)
        b = second * ratio**2 - (both + losses + 2 * gains)
        c = gains * (1 - ratio) * (both + losses + gains) / n
        root = max(b * b - 4 * a * c, 0.0) ** 0.5
        share = (root - b) / (2 * a)
        variance = n * (1 + ratio) * share + (both + losses + gains) * (ratio - 1)
        if variance <= 0:
            return 0.0 if first == second * ratio else float("inf")
        return float((first - second * ratio) / variance**0.5)

    low = _scan(lambda r: statistic(r) - z, first / second if second else 1.0, True)
    high = _scan(lambda r: statistic(r) + z, first / second if second else 1.0, False)
    return Interval(low=low, high=high, level=level, method="tang_score")


def _scan(function: Callable[[float], float], start: float, down: bool) -> float | None:
    """Root on the far side of ``start``, stepping by factors of 1.5 until bracketed."""
    if start == 0:
        if down:
            return 0.0
        start = 1e-9
    near = far = start
    for _ in range(120):
        far = near / 1.5 if down else near * 1.5
        if function(near) * function(far) <= 0:
            return float(brentq(function, min(near, far), max(near, far), xtol=1e-12))
        near = far
    return 0.0 if down else None


def odds_ratio_interval(*, losses: int, gains: int, level: float) -> Interval:
    """Interval of the conditional odds ratio losses / gains by transformed Wilson."""
    share = wilson(losses, losses + gains, level)
    return _odds(share, "transformed_wilson")


def odds_ratio_interval_exact(*, losses: int, gains: int, level: float) -> Interval:
    """The same from the exact binomial interval of the share of losses."""
    tail = (1 - level) / 2
    low = float(betaincinv(losses, gains + 1, tail)) if losses else 0.0
    high = float(betaincinv(losses + 1, gains, 1 - tail)) if gains else 1.0
    share = Interval(low=low, high=high, level=level, method="clopper_pearson")
    return _odds(share, "clopper_pearson")


def _odds(share: Interval, method: str) -> Interval:
    low, high = share.low or 0.0, 1.0 if share.high is None else share.high
    return Interval(
        low=low / (1 - low) if low < 1 else None,
        high=high / (1 - high) if high < 1 else None,
        level=share.level,
        method=method,
    )
