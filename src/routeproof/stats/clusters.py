"""Differences per case, and cases that belong together.

The unit of analysis is the case or, where cases share a document or a conversation,
their cluster. Trials of one case are averaged: they tell about that case, not about
further cases.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True, slots=True)
class Differences:
    """Score differences candidate - baseline, one per case, in [-1, 1].

    Attributes:
        value: Mean over the trials known in both arms, shape ``(n,)``; 0 where
            ``known`` is false.
        known: Whether any trial was known in both arms, shape ``(n,)``.
        worst: The same mean with every unknown score at its worst for the candidate,
            shape ``(n,)``.
        cluster: Cluster of each case, ``0 .. g - 1``, shape ``(n,)``.
        missing_pairs: Trials in which an arm has no score.
    """

    value: NDArray[np.float64]
    known: NDArray[np.bool_]
    worst: NDArray[np.float64]
    cluster: NDArray[np.int64]
    missing_pairs: int

    @classmethod
    def of(cls, values: ArrayLike, clusters: ArrayLike | None = None) -> "Differences":
        """Differences of complete cases.

        Raises:
            ValueError: A difference is NaN or outside [-1, 1], or shapes differ.
        """
        value = np.asarray(values, dtype=np.float64)
        if not np.all(np.abs(value) <= 1.0):
            raise ValueError("a difference is NaN or outside [-1, 1]")
        cluster = _index(clusters, value.size)
        return cls(value, np.ones(value.shape, dtype=bool), value, cluster, 0)


def case_differences(
    *,
    case: ArrayLike,
    baseline: ArrayLike,
    candidate: ArrayLike,
    baseline_known: ArrayLike,
    candidate_known: ArrayLike,
    cluster: ArrayLike | None = None,
) -> Differences:
    """Differences per case from one row per (case, trial).

    An unknown candidate score is at worst 0, an unknown baseline score at worst 1.

    Args:
        case: Case of each row, any values that compare equal for one case.
        baseline: Scores in [0, 1]; any number where not known.
        candidate: The same.
        baseline_known: Whether the baseline's score is known.
        candidate_known: Whether the candidate's score is known.
        cluster: Cluster of each row; a case's first row counts. Each case its own
            when absent.

    Raises:
        ValueError: A known score is NaN or outside [0, 1], or shapes differ.
    """
    a, b = np.asarray(baseline, dtype=float), np.asarray(candidate, dtype=float)
    knows_a, knows_b = (
        np.asarray(baseline_known, bool),
        np.asarray(candidate_known, bool),
    )
    for scores, knows in ((a, knows_a), (b, knows_b)):
        if scores.shape != knows.shape or not np.all(
            (scores[knows] >= 0) & (scores[knows] <= 1)
        ):
            raise ValueError("a score is NaN or outside [0, 1], or shapes differ")
    _, first, index = np.unique(
        np.asarray(case), return_index=True, return_inverse=True
    )
    trials = np.bincount(index, minlength=first.size)
    both = knows_a & knows_b
    pairs = np.bincount(index, both, minlength=first.size)
    known = pairs > 0
    total = np.bincount(index, np.where(both, b - a, 0.0), minlength=first.size)
    worst = np.where(knows_b, b, 0.0) - np.where(knows_a, a, 1.0)
    return Differences(
        value=np.where(known, total / np.maximum(pairs, 1), 0.0),
        known=known,
        worst=np.bincount(index, worst, minlength=first.size) / np.maximum(trials, 1),
        cluster=_index(
            None if cluster is None else np.asarray(cluster)[first], first.size
        ),
        missing_pairs=int(np.count_nonzero(~both)),
    )


@dataclass(frozen=True, slots=True)
class Clustered:
    """Sums and sizes of clusters; the estimate is ``sum(total) / sum(count)``.

    Attributes:
        total: Sum of the differences of a cluster, shape ``(g,)``.
        count: Cases in it, shape ``(g,)``.
    """

    total: NDArray[np.float64]
    count: NDArray[np.float64]

    @property
    def mean(self) -> float:
        """Mean difference over cases."""
        return float(self.total.sum() / self.count.sum())

    def left_out(self) -> NDArray[np.float64]:
        """Means with one cluster left out, shape ``(g,)``."""
        left: NDArray[np.float64] = (self.total.sum() - self.total) / (
            self.count.sum() - self.count
        )
        return left


def clustered(values: NDArray[np.float64], cluster: NDArray[np.int64]) -> Clustered:
    """Sums and sizes per cluster; clusters without a case are left out."""
    count = np.bincount(cluster).astype(np.float64)
    total = np.bincount(cluster, values).astype(np.float64)
    return Clustered(total=total[count > 0], count=count[count > 0])


def _index(labels: ArrayLike | None, n: int) -> NDArray[np.int64]:
    if labels is None:
        return np.arange(n)
    _, index = np.unique(np.asarray(labels), return_inverse=True)
    if index.shape != (n,):
        raise ValueError(f"{index.size} clusters for {n} cases")
    return index.astype(np.int64)
