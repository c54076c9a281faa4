"""Is something more frequent on one arm than on the other, unpaired?"""

from math import exp, lgamma


def more_often(count: int, n: int, floor_count: int, floor_n: int) -> float:
    """One-sided p-value that ``count of n`` is more than ``floor_count of floor_n``.

    Fisher's exact test: given how often it happened in all, the chance that at least
    ``count`` of them fall among the ``n``. Assumes that the trials are independent;
    1.0 when either side has none.

    Example:
        >>> more_often(0, 10, 0, 10)
        1.0
        >>> more_often(3, 3, 0, 3)
        0.05
    """
    if n == 0 or floor_n == 0:
        return 1.0
    both = count + floor_count
    most = min(both, n)
    tail = sum(
        exp(_log_choose(n, k) + _log_choose(floor_n, both - k) - whole)
        for whole in (_log_choose(n + floor_n, both),)
        for k in range(count, most + 1)
    )
    return min(1.0, round(tail, 12))


def _log_choose(n: int, k: int) -> float:
    if k < 0 or k > n:
        return float("-inf")
    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)
