"""Which request of one arm belongs to which of another."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from routeproof.metrics.requests import Requests

Index = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Pairs:
    """Pairs of two arms by (case, trial), as row numbers.

    Attributes:
        left: Rows of the first arm, shape ``(n,)``.
        right: Rows of the second arm, same shape and order.
        only_left: Rows of the first arm that have no partner.
        only_right: Rows of the second arm that have no partner.
    """

    left: Index
    right: Index
    only_left: Index
    only_right: Index

    @property
    def n(self) -> int:
        """Number of pairs."""
        return int(self.left.size)

    @property
    def missing(self) -> int:
        """Requests of either arm without a partner."""
        return int(self.only_left.size + self.only_right.size)


def pair(keys_left: Index, keys_right: Index, rows: tuple[Index, Index]) -> Pairs:
    """Pair rows by equal keys; the first of each key counts.

    Args:
        keys_left: Key of each row of the first arm.
        keys_right: Key of each row of the second arm.
        rows: The row numbers of both arms, in the order of the keys.
    """
    left_keys, left_first = np.unique(keys_left, return_index=True)
    right_keys, right_first = np.unique(keys_right, return_index=True)
    both, in_left, in_right = np.intersect1d(
        left_keys, right_keys, assume_unique=True, return_indices=True
    )
    left, right = rows[0][left_first], rows[1][right_first]
    alone_left = np.setdiff1d(np.arange(left.size), in_left, assume_unique=True)
    alone_right = np.setdiff1d(np.arange(right.size), in_right, assume_unique=True)
    del both
    return Pairs(left[in_left], right[in_right], left[alone_left], right[alone_right])


def pair_arms(
    requests: Requests, *, phase: str, level: str | None = None, other: str
) -> Pairs:
    """Pairs of the baseline with ``other`` in one phase (and level).

    With ``level`` ``None`` every level of the phase is paired within itself.
    """
    keep = requests.at(phase=phase)
    if level is not None:
        keep &= requests.label("level").equal(level)
    keys = _keys(requests)
    arm = requests.label("arm")
    rows = [np.flatnonzero(keep & arm.equal(name)) for name in ("baseline", other)]
    return pair(keys[rows[0]], keys[rows[1]], (rows[0], rows[1]))


def _keys(requests: Requests) -> Index:
    """(level, case, trial) as one whole number."""
    level = requests.label("level").codes.astype(np.int64) + 1
    case = requests.label("case_id").codes.astype(np.int64) + 1
    trial = requests.number("trial").values.astype(np.int64)
    trials, cases = int(trial.max(initial=0)) + 1, int(case.max(initial=0)) + 1
    keys: Index = (level * cases + case) * trials + trial
    return keys
