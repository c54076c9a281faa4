"""Evidence that may be looked at after every observation.

An e-process starts at 1 and is, under its null, a wager that nobody can expect to win:
the chance that it ever reaches ``1 / alpha`` is at most ``alpha`` (Ville), however
often it is looked at and whenever one stops. Sources: I. Waudby-Smith and A. Ramdas,
Estimating means of bounded random variables by betting, JRSS B 86 (2024) 1-27; G.
Shafer, JRSS A 184 (2021) 407-431.

Every update costs O(grid) and the state is a handful of numbers that survive a
restart (:meth:`Betting.state`).
"""

from collections.abc import Iterable, Mapping
from math import exp, log
from typing import Literal

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

Direction = Literal["harm", "safe"]

_SHARES = np.array([0.01, 0.02, 0.04, 0.08, 0.15, 0.25, 0.4, 0.6, 0.8, 0.95])
"""Bets as shares of the largest one that cannot lose more than everything."""
_LOG_STAKES = np.log([0.02, 0.02, 0.02, 0.04, 0.1, 0.15, 0.15, 0.15, 0.15, 0.2])
"""Log of the stake on each: the best bet is about ``mean / flips``, so the large ones
serve routes that rarely flip, which is the normal case; the small ones keep the test
alive where answers are noisy."""


class BettingState(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """What a betting test has to remember.

    Attributes:
        log_wealth: Log wealth of each bet of the grid.
        n: Observations seen.
        log_peak: Log of the largest e-value so far.
    """

    log_wealth: tuple[float, ...]
    n: int = 0
    log_peak: float = 0.0


class Betting:
    """E-process about the mean of differences candidate - baseline in [-1, 1].

    ``harm`` has the null "mean >= -tolerance" and grows when the candidate is worse
    than that; ``safe`` has the null "mean <= -tolerance" and grows when a loss of
    ``tolerance`` is excluded. The wealth is averaged over a grid of bets, which costs
    little against the best bet and needs no tuning. Assumes only that, given the
    past, each difference has a mean on the null's side; differences may depend on the
    past otherwise.
    """

    def __init__(
        self,
        direction: Direction,
        *,
        tolerance: float,
        state: BettingState | None = None,
    ) -> None:
        if not 0 <= tolerance < 1:
            raise ValueError(f"tolerance {tolerance} outside [0, 1)")
        self._edge = -tolerance
        self._bets = bets(direction, tolerance)
        self._wealth = np.zeros(self._bets.size)
        self._n, self._peak = 0, 0.0
        if state is not None:
            self._wealth = np.array(state.log_wealth)
            self._n, self._peak = state.n, state.log_peak
            if self._wealth.shape != self._bets.shape:
                raise ValueError("the state belongs to another grid of bets")

    def update(self, difference: float) -> float:
        """Take one difference in; returns the e-value now."""
        if not -1 <= difference <= 1:
            raise ValueError(f"difference {difference} is NaN or outside [-1, 1]")
        self._wealth += np.log1p(self._bets * (difference - self._edge))
        self._n += 1
        value = self.log_e_value
        self._peak = max(self._peak, value)
        return exp(min(value, 700.0))

    @property
    def log_e_value(self) -> float:
        """Natural logarithm of the e-value now."""
        return float(np.logaddexp.reduce(self._wealth + _LOG_STAKES))

    @property
    def p_value(self) -> float:
        """Anytime-valid p-value: 1 / (largest e-value so far)."""
        return exp(-self._peak)

    @property
    def n(self) -> int:
        """Observations seen."""
        return self._n

    def state(self) -> BettingState:
        """What is needed to go on after a restart."""
        return BettingState(
            log_wealth=tuple(self._wealth.tolist()), n=self._n, log_peak=self._peak
        )


def bets(direction: Direction, tolerance: float) -> NDArray[np.float64]:
    """Signed grid of bets; each keeps its wealth above 0 for differences in [-1, 1]."""
    most = 1 / (1 - tolerance) if direction == "safe" else -1 / (1 + tolerance)
    return _SHARES * most


def betting_path(
    differences: ArrayLike, direction: Direction, *, tolerance: float
) -> NDArray[np.float64]:
    """Log e-values after each observation, for whole paths at once.

    Args:
        differences: Shape ``(..., t)``, in [-1, 1].
        direction: See :class:`Betting`.
        tolerance: See :class:`Betting`.

    Returns:
        Shape ``(..., t)``.
    """
    x = np.asarray(differences, dtype=np.float64)
    total = np.full(x.shape, -np.inf)
    for bet, stake in zip(bets(direction, tolerance), _LOG_STAKES, strict=True):
        grown = np.cumsum(np.log1p(bet * (x + tolerance)), axis=-1)
        np.logaddexp(total, grown + stake, out=total)
    return total


def average(
    log_e_values: Mapping[str, float], weights: Mapping[str, float] | None = None
) -> float:
    """Log of the weighted mean of e-values: one e-value for several signals.

    Valid whatever the dependence between the signals; under alpha in all, one signal
    with weight ``w`` alone raises the alarm when its e-value reaches ``1 / (w alpha)``.
    """
    if not log_e_values:
        return 0.0
    names = list(log_e_values)
    share = {name: 1.0 for name in names} if weights is None else weights
    logs = np.array([log_e_values[name] for name in names])
    mass = np.array([share[name] for name in names], dtype=np.float64)
    if not np.all(mass > 0):
        raise ValueError("weights must be positive")
    return float(np.logaddexp.reduce(logs + np.log(mass / mass.sum())))


class AssignmentState(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """What the assignment test has to remember: counts and log e-values."""

    counts: tuple[int, ...]
    log_e: float = 0.0
    log_peak: float = 0.0


class AssignmentTest:
    """E-process of "traffic is split as configured" (sample-ratio mismatch).

    The odds of a Dirichlet mixture against the configured shares. Source: M. Lindon
    and A. Malek, Anytime-valid inference for multinomial count data, arXiv:2011.03567.
    """

    def __init__(
        self,
        shares: Iterable[float],
        *,
        strength: float = 100.0,
        state: AssignmentState | None = None,
    ) -> None:
        """Shares as configured; ``strength``: how near them the mixture is centred."""
        self._shares = tuple(shares)
        if min(self._shares) <= 0 or abs(sum(self._shares) - 1) > 1e-9:
            raise ValueError("shares must be positive and sum to 1")
        self._strength = strength
        self._counts = [0] * len(self._shares)
        self._log_e = self._peak = 0.0
        if state is not None:
            self._counts = list(state.counts)
            self._log_e, self._peak = state.log_e, state.log_peak

    def update(self, arm: int) -> float:
        """Take in that a request went to ``arm``; returns the e-value now."""
        prior = self._strength * self._shares[arm]
        total = self._strength + sum(self._counts)
        predicted = (prior + self._counts[arm]) / total
        self._log_e += log(predicted) - log(self._shares[arm])
        self._counts[arm] += 1
        self._peak = max(self._peak, self._log_e)
        return exp(min(self._log_e, 700.0))

    @property
    def log_e_value(self) -> float:
        """Natural logarithm of the e-value now."""
        return self._log_e

    @property
    def p_value(self) -> float:
        """Anytime-valid p-value."""
        return exp(-self._peak)

    def state(self) -> AssignmentState:
        """What is needed to go on after a restart."""
        return AssignmentState(
            counts=tuple(self._counts), log_e=self._log_e, log_peak=self._peak
        )
