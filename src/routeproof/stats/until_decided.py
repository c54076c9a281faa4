"""Spend requests only until the question is settled, at unchanged error rates.

Cases are sent in random order, so that each is a fresh draw from the workload's
population. A share of alpha is spent on e-processes that may stop after every case,
the rest on the fixed-size test if all cases are used up. Together a route at the
tolerance is certified with probability at most alpha, and a route without a loss is
called harmed with probability at most alpha. (Betting against what is left in the
finite set would stop sooner, but it certifies the set, not the population: a route that
loses exactly the tolerance would pass on every lucky set, see decision 12.)
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import bdtr

from routeproof.stats.exact_paired import critical_region
from routeproof.stats.interval import Interval
from routeproof.stats.sequential import Direction, betting_path

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


class PValues(NamedTuple):
    """One-sided p-values of "the loss is at least the tolerance" and of "no loss"."""

    tolerance: float
    harm: float


@dataclass(frozen=True, slots=True)
class Settling:
    """How a question stands after the units seen so far.

    Attributes:
        settled: The decision; ``None`` while more units are wanted.
        after: Units after which it was settled.
        p_values: Valid however often they were looked at; the share of alpha is in
            them, so each is held against the whole alpha.
    """

    settled: Settled | None
    after: int | None
    p_values: PValues


def settle(
    at_worst: ArrayLike,
    as_seen: ArrayLike,
    rule: StoppingRule,
    *,
    at_ceiling: Callable[[], PValues],
) -> Settling:
    """Settle one question from its units in the order in which they were drawn.

    Args:
        at_worst: Differences candidate - baseline in [-1, 1], shape ``(n,)``, with
            every missing score at its worst: what is certified must hold for them.
        as_seen: The same with a missing pair as no difference: what is missing shows
            no harm.
        rule: When it may stop. Units beyond its ceiling are not looked at.
        at_ceiling: The fixed-size test over all units; asked once, at the ceiling, if
            nothing was settled before. Each of its p-values gets what is left of alpha.
    """
    worst, seen = (
        np.asarray(x, dtype=np.float64)[: rule.ceiling] for x in (at_worst, as_seen)
    )
    safe = _p_path(worst, "safe", rule.tolerance) / rule.early_share
    harm = _p_path(seen, "harm", 0.0) / rule.early_harm_share
    first = {
        "certified": _first_below(safe, rule),
        "harmed": _first_below(harm, rule),
    }
    early = {name: at for name, at in first.items() if at is not None}
    is_looked_at = worst.size >= rule.floor
    p_safe = float(min(1.0, safe[-1])) if is_looked_at else 1.0
    p_harm = float(min(1.0, harm[-1])) if is_looked_at else 1.0
    if early:
        # At a tie the certificate counts, as it does at the ceiling.
        name = min(early, key=lambda each: (early[each], each != "certified"))
        answer: Settled = "certified" if name == "certified" else "harmed"
        return Settling(answer, early[name], PValues(p_safe, p_harm))
    if worst.size < rule.ceiling:
        return Settling(None, None, PValues(p_safe, p_harm))
    late = at_ceiling()
    p_safe = min(p_safe, late.tolerance / (1 - rule.early_share))
    p_harm = min(p_harm, late.harm / (1 - rule.early_harm_share))
    if p_safe <= rule.alpha:
        answer = "certified"
    else:
        answer = "harmed" if p_harm <= rule.alpha else "undecided"
    return Settling(answer, rule.ceiling, PValues(p_safe, p_harm))


def _p_path(
    x: NDArray[np.float64], direction: Direction, tolerance: float
) -> NDArray[np.float64]:
    """Anytime-valid p-values after each unit."""
    if not x.size:
        return np.ones(1)
    path = betting_path(x, direction, tolerance=tolerance)
    peak: NDArray[np.float64] = np.maximum(np.maximum.accumulate(path), 0.0)
    return np.exp(-peak)


def _first_below(p: NDArray[np.float64], rule: StoppingRule) -> int | None:
    """Units after which ``p`` is at most alpha, not before the floor."""
    hit = np.flatnonzero(p[rule.floor - 1 :] <= rule.alpha)
    return int(hit[0]) + rule.floor if hit.size else None


def sequential_interval(
    at_worst: ArrayLike, as_seen: ArrayLike, rule: StoppingRule
) -> Interval:
    """Interval of the mean that holds at every moment at once (two-sided 1 - 2 alpha).

    Each end is where the betting test of :func:`settle` would just not reject, at the
    share of alpha spent early: the lower end lies above ``-tolerance`` exactly when
    the question is certified early. Found by halving to 1/4,096.
    """
    worst, seen = (np.asarray(x, dtype=np.float64) for x in (at_worst, as_seen))
    low = -_edge(worst, rule.alpha * rule.early_share)
    high = _edge(-seen, rule.alpha * rule.early_harm_share)
    return Interval(
        low=low, high=high, level=1 - 2 * rule.alpha, method="betting_sequence"
    )


def _edge(x: NDArray[np.float64], alpha: float) -> float:
    """Smallest shift in [-1, 1] at which "mean <= -shift" is rejected."""
    low, high = -1.0, 1.0
    for _ in range(13):
        middle = (low + high) / 2
        if _excludes(x, middle, alpha):
            high = middle
        else:
            low = middle
    return high


def _excludes(x: NDArray[np.float64], shift: float, alpha: float) -> bool:
    """Whether "mean <= -shift" is rejected; a negative shift asks for a gain."""
    if not x.size:
        return False
    if shift >= 0:
        return bool(_p_path(x, "safe", min(shift, 0.999))[-1] <= alpha)
    # mean <= g, g > 0, of x is mean >= -g of -x: the other direction.
    return bool(_p_path(-x, "harm", -shift)[-1] <= alpha)


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
