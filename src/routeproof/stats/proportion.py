"""Intervals of a share, and of the difference of two independent shares.

Pairs have their own (:mod:`routeproof.stats.tango`); these are for rates of one arm and
for live traffic, where the arms serve different requests.
"""

from collections.abc import Callable
from typing import Literal

from scipy.optimize import brentq
from scipy.special import bdtr, betaincinv, ndtri

from routeproof.stats.interval import Interval


def clopper_pearson(successes: int, n: int, level: float = 0.95) -> Interval:
    """Exact interval of a binomial share; covers at least ``level`` for every n."""
    tail = (1 - level) / 2
    low = float(betaincinv(successes, n - successes + 1, tail)) if successes else 0.0
    high = (
        float(betaincinv(successes + 1, n - successes, 1 - tail))
        if successes < n
        else 1.0
    )
    return Interval(low=low, high=high, level=level, method="clopper_pearson")


def mid_p(successes: int, n: int, level: float = 0.95) -> Interval:
    """Exact interval with half the probability of the count seen in each tail.

    Shorter than Clopper-Pearson; covers ``level`` on average, not for every share.
    """
    tail = (1 - level) / 2

    def below(p: float) -> float:
        before = float(bdtr(successes - 1, n, p)) if successes else 0.0
        return (before + float(bdtr(successes, n, p))) / 2

    low = high = 0.0
    if successes:
        low = float(brentq(lambda p: 1 - below(p) - tail, 0, 1, xtol=1e-12))
    high = 1.0
    if successes < n:
        high = float(brentq(lambda p: below(p) - tail, 0, 1, xtol=1e-12))
    return Interval(low=low, high=high, level=level, method="mid_p")


def wilson(successes: int, n: int, level: float = 0.95) -> Interval:
    """Wilson's score interval of a binomial share."""
    if n == 0:
        return Interval(low=0.0, high=1.0, level=level, method="wilson")
    z2 = float(ndtri(0.5 + level / 2)) ** 2
    share = successes / n
    centre = (share + z2 / (2 * n)) / (1 + z2 / n)
    reach = (z2 * (share * (1 - share) / n + z2 / (4 * n * n))) ** 0.5 / (1 + z2 / n)
    return Interval(
        low=max(0.0, centre - reach),
        high=min(1.0, centre + reach),
        level=level,
        method="wilson",
    )


def independent_difference(
    first: tuple[int, int],
    second: tuple[int, int],
    *,
    level: float = 0.95,
    method: Literal["miettinen_nurminen", "mee", "newcombe"] = "miettinen_nurminen",
) -> Interval:
    """Interval of ``first - second`` for shares of two independent groups.

    Args:
        first: Successes and size of the one group.
        second: Successes and size of the other.
        level: Two-sided confidence.
        method: Score intervals (Miettinen and Nurminen, Statistics in Medicine 4
            (1985) 213-226; Mee's leaves out the factor N / (N - 1)) or Newcombe's
            square-and-add of two Wilson intervals, ibid. 17 (1998) 873-890.
    """
    x1, n1, x2, n2 = *first, *second
    d = x1 / n1 - x2 / n2
    if method == "newcombe":
        one, two = wilson(x1, n1, level), wilson(x2, n2, level)
        l1, u1, l2, u2 = (
            value or 0.0 for value in (one.low, one.high, two.low, two.high)
        )
        down = ((x1 / n1 - l1) ** 2 + (u2 - x2 / n2) ** 2) ** 0.5
        up = ((u1 - x1 / n1) ** 2 + (x2 / n2 - l2) ** 2) ** 0.5
        return Interval(low=d - down, high=d + up, level=level, method=method)
    inflate = (n1 + n2) / (n1 + n2 - 1) if method == "miettinen_nurminen" else 1.0
    z2 = float(ndtri(0.5 + level / 2)) ** 2

    def excess(delta: float) -> float:
        p2 = _constrained(x1, n1, x2, n2, delta)
        p1 = p2 + delta
        variance = (p1 * (1 - p1) / n1 + p2 * (1 - p2) / n2) * inflate
        return (d - delta) ** 2 - z2 * max(variance, 1e-300)

    return Interval(
        low=_edge(excess, -1.0, d),
        high=_edge(excess, 1.0, d),
        level=level,
        method=method,
    )


def _edge(excess: Callable[[float], float], outer: float, inner: float) -> float:
    bound = outer * (1 - 1e-12)
    if excess(bound) <= 0:
        return outer
    return float(brentq(excess, min(bound, inner), max(bound, inner), xtol=1e-12))


def _constrained(x1: int, n1: int, x2: int, n2: int, delta: float) -> float:
    """Likeliest share of the second group when the first's is ``delta`` larger.

    The likelihood is concave between the ends, so its slope has one root there.
    """
    low, high = max(0.0, -delta), min(1.0, 1.0 - delta)
    edge = 1e-13

    def slope(p: float) -> float:
        q = p + delta
        parts = (
            (x1, q),
            (-(n1 - x1), 1 - q),
            (x2, p),
            (-(n2 - x2), 1 - p),
        )
        return sum(count / max(share, 1e-300) for count, share in parts if count)

    left, right = low + edge, high - edge
    if left >= right or slope(left) <= 0:
        return low
    if slope(right) >= 0:
        return high
    return float(brentq(slope, left, right, xtol=1e-15))
