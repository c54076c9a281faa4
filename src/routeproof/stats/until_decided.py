"""Spend requests only until the question is settled, at unchanged error rates.

Cases are sent in random order, so that each is a fresh draw from the workload's
population. A share of alpha is spent on e-processes that may stop after every case,
the rest on the fixed-size test if all cases are used up. Together a route at the
tolerance is certified with probability at most alpha, and a route without a loss is
called harmed with probability at most alpha. (Betting against what is left in the
finite set would stop sooner, but it certifies the set, not the population: a route that
loses exactly the tolerance would pass on every lucky set, see decision 12.)
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import bdtr

from routeproof.stats.clusters import Differences
from routeproof.stats.exact_paired import critical_region
from routeproof.stats.paired_binary import harm_p_value, tolerance_p_value
from routeproof.stats.paired_graded import graded_non_inferiority
from routeproof.stats.sequential import Betting, betting_path

Settled = Literal["certified", "harmed", "undecided"]


@dataclass(frozen=True, slots=True)
class StoppingRule:
    """When a question may stop.

    Attributes:
        tolerance: Mean loss still allowed, in (0, 1).
        alpha: One-sided error rate of both directions.
        floor: Fewest cases before any stop.
        ceiling: Most cases; then the fixed-size test decides at its share of alpha.
        early_share: Share of alpha spent on certifying early.
        early_harm_share: Share of alpha spent on finding harm early.
    """

    tolerance: float
    alpha: float
    floor: int
    ceiling: int
    early_share: float = 0.5
    early_harm_share: float = 0.8

    def __post_init__(self) -> None:
        shares = (self.tolerance, self.alpha, self.early_share, self.early_harm_share)
        if not all(0 < share < 1 for share in shares):
            raise ValueError("tolerance, alpha and its shares must lie between 0 and 1")
        if not 1 <= self.floor <= self.ceiling:
            raise ValueError(f"floor {self.floor} and ceiling {self.ceiling}")


Fixed = Callable[[NDArray[np.float64], NDArray[np.float64], StoppingRule], Settled]
"""The test at the ceiling, at what is left of alpha: differences with missing cases as
losses, the same with them as no difference, rule."""


def fixed_binary(
    at_worst: NDArray[np.float64], as_seen: NDArray[np.float64], rule: StoppingRule
) -> Settled:
    """The exact paired tests of right/wrong verdicts."""
    gains = int(np.count_nonzero(as_seen > 0))
    p = tolerance_p_value(
        losses=int(np.count_nonzero(at_worst < 0)),
        gains=gains,
        n=at_worst.size,
        tolerance=rule.tolerance,
    )
    if p <= rule.alpha * (1 - rule.early_share):
        return "certified"
    harm = harm_p_value(losses=int(np.count_nonzero(as_seen < 0)), gains=gains)
    late = harm <= rule.alpha * (1 - rule.early_harm_share)
    return "harmed" if late else "undecided"


def fixed_graded(
    at_worst: NDArray[np.float64], as_seen: NDArray[np.float64], rule: StoppingRule
) -> Settled:
    """The three bounds of a graded mean, each case a cluster of its own."""
    late = rule.alpha * (1 - rule.early_share)
    certified = graded_non_inferiority(
        Differences.of(at_worst), tolerance=rule.tolerance, alpha=late
    ).mean.decision
    if certified == "certified":
        return "certified"
    late = rule.alpha * (1 - rule.early_harm_share)
    seen = graded_non_inferiority(
        Differences.of(as_seen), tolerance=rule.tolerance, alpha=late
    ).mean
    is_harm = seen.harm_p_value is not None and seen.harm_p_value <= late
    return "harmed" if is_harm else "undecided"


class Question:
    """One question that is asked case after case.

    A case without a verdict in both arms counts as a full loss for the certificate
    and as no difference for harm.
    """

    def __init__(self, rule: StoppingRule, *, fixed: Fixed = fixed_binary) -> None:
        self.rule = rule
        self._fixed = fixed
        self._safe = Betting("safe", tolerance=rule.tolerance)
        self._harm = Betting("harm", tolerance=0.0)
        self._seen: list[float | None] = []
        self._settled: Settled | None = None

    def update(self, difference: float | None) -> Settled | None:
        """Take in candidate - baseline of the next case; ``None`` when missing.

        Returns:
            The decision once there is one, which then stays; ``None`` before.
        """
        if self._settled is not None:
            return self._settled
        self._safe.update(-1.0 if difference is None else difference)
        self._harm.update(0.0 if difference is None else difference)
        self._seen.append(difference)
        rule = self.rule
        if self.n >= rule.floor:
            if self._safe.p_value <= rule.alpha * rule.early_share:
                self._settled = "certified"
            elif self._harm.p_value <= rule.alpha * rule.early_harm_share:
                self._settled = "harmed"
        if self._settled is None and self.n >= rule.ceiling:
            worst, seen = (
                np.array([missing if x is None else x for x in self._seen])
                for missing in (-1.0, 0.0)
            )
            self._settled = self._fixed(worst, seen, rule)
        return self._settled

    @property
    def n(self) -> int:
        """Cases taken in."""
        return len(self._seen)

    @property
    def settled(self) -> Settled | None:
        """The decision, or ``None`` while more cases are wanted."""
        return self._settled


def all_settled(questions: Sequence[Question]) -> bool:
    """Whether sending can stop: every required question has its answer."""
    return all(q.settled is not None for q in questions)


@dataclass(frozen=True, slots=True)
class Stopped:
    """Where paths stopped, for planning.

    Attributes:
        used: Cases used, shape ``(paths,)``.
        certified, harmed: Decisions, shape ``(paths,)``.
    """

    used: NDArray[np.int64]
    certified: NDArray[np.bool_]
    harmed: NDArray[np.bool_]


def simulate(
    rule: StoppingRule, *, losses: float, gains: float, paths: int, seed: int
) -> Stopped:
    """Play the rule on right/wrong cases with known shares of losses and gains."""
    rng = np.random.default_rng(seed)
    u = rng.random((paths, rule.ceiling))
    x = np.where(u < losses, -1.0, np.where(u < losses + gains, 1.0, 0.0))
    return stop_paths(x, rule)


def stop_paths(differences: ArrayLike, rule: StoppingRule) -> Stopped:
    """Where each row of ``differences``, shape ``(paths, ceiling)``, stops."""
    x = np.asarray(differences, dtype=np.float64)
    safe = _first(
        betting_path(x, "safe", tolerance=rule.tolerance),
        rule.alpha * rule.early_share,
        rule,
    )
    harm = _first(
        betting_path(x, "harm", tolerance=0.0), rule.alpha * rule.early_harm_share, rule
    )
    used = np.minimum(np.minimum(safe, harm), rule.ceiling)
    certified = (safe <= harm) & (safe <= rule.ceiling)
    harmed = (harm < safe) & (harm <= rule.ceiling)
    left = np.flatnonzero(~certified & ~harmed)
    region = critical_region(
        rule.ceiling, rule.tolerance, rule.alpha * (1 - rule.early_share)
    )
    losses = np.count_nonzero(x[left] < 0, axis=1)
    flips = losses + np.count_nonzero(x[left] > 0, axis=1)
    most = region.most_losses[np.minimum(flips, region.most_losses.size - 1)]
    certified[left] = (losses <= most) & (flips < region.most_losses.size)
    late = bdtr(flips - losses, flips, 0.5) <= rule.alpha * (1 - rule.early_harm_share)
    harmed[left] = late & ~certified[left]
    return Stopped(used=used, certified=certified, harmed=harmed)


def _first(
    path: NDArray[np.float64], alpha: float, rule: StoppingRule
) -> NDArray[np.int64]:
    """Case at which each path reached ``1 / alpha``; beyond the ceiling if never."""
    hit = np.maximum.accumulate(path, axis=1) >= -np.log(alpha)
    hit[:, : rule.floor - 1] = False
    return np.where(hit.any(axis=1), hit.argmax(axis=1) + 1, rule.ceiling + 1)
