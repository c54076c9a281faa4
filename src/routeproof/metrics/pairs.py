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
    partner = requests.partners.get(other)
    if partner is None:
        partner = partners(requests, other)
    keep = requests.at(phase=phase)
    if level is not None:
        keep &= requests.label("level").equal(level)
    arm = requests.label("arm")
    left = np.flatnonzero(keep & arm.equal("baseline"))
    right = partner[left]
    paired = right >= 0
    taken = np.zeros(requests.n, dtype=np.bool_)
    taken[right[paired]] = True
    alone = keep & arm.equal(other) & ~taken
    return Pairs(left[paired], right[paired], left[~paired], np.flatnonzero(alone))


def partners(requests: Requests, other: str) -> Index:
    """Row of ``other`` that belongs to each row of the baseline, -1 where none does."""
    keys, arm = _keys(requests), requests.label("arm")
    rows = [np.flatnonzero(arm.equal(name)) for name in ("baseline", other)]
    found = pair(keys[rows[0]], keys[rows[1]], (rows[0], rows[1]))
    partner = np.full(requests.n, -1, dtype=np.int64)
    partner[found.left] = found.right
    return partner


def with_partners(requests: Requests) -> Requests:
    """The same requests with the pairs of every arm worked out once."""
    arms = [a for a in requests.label("arm").names if a != "baseline"]
    return Requests(
        requests.n,
        requests.numbers,
        requests.labels,
        {arm: partners(requests, arm) for arm in arms},
    )


def _keys(requests: Requests) -> Index:
    """(phase, level, case, trial) as one whole number."""
    phase = requests.label("phase").codes.astype(np.int64) + 1
    level = requests.label("level").codes.astype(np.int64) + 1
    case = requests.label("case_id").codes.astype(np.int64) + 1
    trial = requests.number("trial").values.astype(np.int64)
    keys: Index = phase
    for column in (level, case, trial):
        keys = keys * (int(column.max(initial=0)) + 1) + column
    return keys
