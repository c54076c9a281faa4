"""Many questions at once: p-values adjusted so that the answers stay honest."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import bdtrc


def holm(p_values: ArrayLike) -> NDArray[np.float64]:
    """Adjusted p-values that bound the chance of any false alarm, in any dependence.

    Step-down: the i-th smallest is multiplied by ``k - i + 1``, then made monotone.
    Source: S. Holm, Scandinavian Journal of Statistics 6 (1979) 65-70.
    """
    p, order = _sorted(p_values)
    factors = np.arange(p.size, 0, -1)
    stepped = np.minimum(np.maximum.accumulate(p[order] * factors), 1.0)
    return _unsorted(stepped, order)


def holm_of_flips(
    p_values: ArrayLike, flips: Sequence[int | None]
) -> NDArray[np.float64]:
    """Holm's adjustment that knows which p-values a McNemar test can have at all.

    With three flips the smallest is 1/8: such a test can raise no false alarm at 1 %,
    and to correct for it would cost power for nothing. Each p-value is raised by the
    largest attainable one, not above it, of every test that is still open, instead of
    by itself once for each. Bounds the chance of any false alarm, in any dependence,
    given the flips. Source: P. Westfall and R. Wolfinger, The American Statistician 51
    (1997) 3-8, stepped down as Holm does.

    Args:
        p_values: Exact one-sided McNemar p-values, or any others.
        flips: Flips of each McNemar test; ``None`` for another p-value.
    """
    p, order = _sorted(p_values)
    if len(flips) != p.size:
        raise ValueError(f"{len(flips)} counts of flips for {p.size} p-values")
    attainable = [None if n is None else bdtrc(np.arange(-1, n), n, 0.5) for n in flips]
    largest = 0.0
    adjusted = np.empty_like(p)
    for step, at in enumerate(order):
        others = order[step + 1 :]
        whole = p[at] + sum(_at_most(attainable[j], p[at]) for j in others)
        largest = max(largest, min(1.0, float(whole)))
        adjusted[at] = largest
    return adjusted


def _at_most(attainable: NDArray[np.float64] | None, p: float) -> float:
    """Largest attainable p-value that is not above ``p``; 0 when none is."""
    if attainable is None:
        return p
    # The values fall from 1; equal ones differ by rounding at most.
    place = int(np.searchsorted(-attainable, -p * (1 + 1e-12)))
    return float(attainable[place]) if place < attainable.size else 0.0


def benjamini_hochberg(p_values: ArrayLike) -> NDArray[np.float64]:
    """Adjusted p-values that bound the expected share of false alarms among alarms.

    Step-up: the i-th smallest is multiplied by ``k / i``, then made monotone from the
    largest down. Holds for independent or positively dependent tests. Source: Y.
    Benjamini and Y. Hochberg, JRSS B 57 (1995) 289-300.
    """
    p, order = _sorted(p_values)
    factors = p.size / np.arange(1, p.size + 1)
    stepped = np.minimum.accumulate((p[order] * factors)[::-1])[::-1]
    return _unsorted(np.minimum(stepped, 1.0), order)


def _sorted(p_values: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    p = np.asarray(p_values, dtype=np.float64).ravel()
    if not np.all((p >= 0) & (p <= 1)):
        raise ValueError("a p-value is NaN or outside [0, 1]")
    return p, np.argsort(p, kind="stable")


def _unsorted(
    values: NDArray[np.float64], order: NDArray[np.intp]
) -> NDArray[np.float64]:
    result = np.empty_like(values)
    result[order] = values
    return result
