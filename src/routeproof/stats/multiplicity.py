"""Many questions at once: p-values adjusted so that the answers stay honest."""

import numpy as np
from numpy.typing import ArrayLike, NDArray


def holm(p_values: ArrayLike) -> NDArray[np.float64]:
    """Adjusted p-values that bound the chance of any false alarm, in any dependence.

    Step-down: the i-th smallest is multiplied by ``k - i + 1``, then made monotone.
    Source: S. Holm, Scandinavian Journal of Statistics 6 (1979) 65-70.
    """
    p, order = _sorted(p_values)
    factors = np.arange(p.size, 0, -1)
    stepped = np.minimum(np.maximum.accumulate(p[order] * factors), 1.0)
    return _unsorted(stepped, order)


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
