"""When did it change? One shift of level in a series, found by ranks.

For acceptance or quality over uptime and over weekly reports: a slope says that
something creeps, a change point says when it jumped.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

FEWEST_SAMPLES = 10


@dataclass(frozen=True, slots=True)
class ChangePoint:
    """The likeliest shift of level.

    Attributes:
        index: First sample after the shift; ``None`` with too few samples.
        p_value: That there is no shift anywhere.
        before, after: Median on either side.
    """

    index: int | None
    p_value: float | None
    before: float | None
    after: float | None


def change_point(
    values: ArrayLike, *, permutations: int = 999, block: int = 1, seed: int = 0
) -> ChangePoint:
    """Find one shift by Pettitt's rank statistic, with a permutation p-value.

    ``max over t of |2 * (sum of the first t ranks) - t (n + 1)|``, divided by its
    standard deviation at t so that early and late shifts are seen as well. Source: A.
    N. Pettitt, Applied Statistics 28 (1979) 126-135.

    Args:
        values: In order of time, shape ``(n,)``.
        permutations: Random orders; the p-value is at least 1 / (this + 1).
        block: Neighbours kept together when permuting: above 1 for a series whose
            neighbours resemble each other.
        seed: Of the permutations.
    """
    x = np.asarray(values, dtype=np.float64).ravel()
    if not np.isfinite(x).all():
        raise ValueError("a value is not finite")
    n = x.size
    if n < FEWEST_SAMPLES or n < 4 * block:
        return ChangePoint(None, None, None, None)
    order = np.argsort(np.argsort(x, kind="stable"), kind="stable").astype(np.float64)
    _, tie = np.unique(x, return_inverse=True)
    ranks = (np.bincount(tie, order) / np.bincount(tie))[tie] + 1
    seen = _statistic(ranks[None, :])[0]
    rng = np.random.default_rng(seed)
    pieces = np.array_split(np.arange(n), n // block)
    orders = np.stack(
        [
            np.concatenate([pieces[i] for i in rng.permutation(len(pieces))])
            for _ in range(permutations)
        ]
    )
    null = _statistic(ranks[orders]).max(axis=1)
    top = float(seen.max())
    p = (1 + int(np.count_nonzero(null >= top - 1e-12))) / (1 + permutations)
    index = int(seen.argmax()) + 1
    return ChangePoint(
        index, p, float(np.median(x[:index])), float(np.median(x[index:]))
    )


def _statistic(ranks: NDArray[np.float64]) -> NDArray[np.float64]:
    """Standardised absolute statistic after each sample but the last."""
    n = ranks.shape[1]
    t = np.arange(1, n)
    gap = 2 * np.cumsum(ranks, axis=1)[:, :-1] - t * (n + 1)
    spread: NDArray[np.float64] = np.abs(gap) / np.sqrt(t * (n - t) * (n + 1) / 3)
    return spread
