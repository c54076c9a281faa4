"""Anytime-valid comparison of two failure rates in unpaired live traffic.

Baseline and canary serve different requests, in strata (tenant, route, hour). Requests
of a stratum are gathered into blocks of a fixed number per arm; each block multiplies
the e-value by the likelihood of a guess made from the past, over the likelihood of the
nearest pair of rates the null allows. Source: R. Turner, A. Ly and P. Grünwald,
Generic E-variables for exact sequential k-sample tests that allow for optional
stopping, arXiv:2106.02693; strata: arXiv:2302.11401.
"""

from math import exp, log
from typing import Literal

import msgspec

from routeproof.stats.sequential import Direction

Arm = Literal["baseline", "canary"]
_PRIOR = 0.18
"""Failures and successes before the first; the value of the source, section 4."""


class StratumState(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """Counts of a stratum.

    Attributes:
        failures, totals: Of finished blocks, baseline then canary.
        waiting: Failures (1) and successes (0) not yet in a block, by arm.
    """

    failures: tuple[int, int] = (0, 0)
    totals: tuple[int, int] = (0, 0)
    waiting: tuple[tuple[int, ...], tuple[int, ...]] = ((), ())


class RatesState(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a test of rates has to remember."""

    strata: dict[str, StratumState] = {}
    log_e: float = 0.0
    log_peak: float = 0.0


class RatesTest:
    """E-process about two failure rates, over strata.

    ``harm`` has the null "canary <= baseline + tolerance in every stratum", ``safe``
    the null "canary >= baseline + tolerance in every stratum". A block bets only when
    the past points against the null. Assumes that inside a stratum and block an arm's
    requests fail independently at one rate; rates may move between blocks.
    """

    def __init__(
        self,
        direction: Direction,
        *,
        tolerance: float = 0.0,
        block: tuple[int, int] = (1, 1),
        state: RatesState | None = None,
    ) -> None:
        """``block``: requests of baseline and canary in a block, (19, 1) for 5 %."""
        if not 0 <= tolerance < 1 or min(block) < 1:
            raise ValueError(
                f"tolerance {tolerance} or block {block} outside its range"
            )
        self._sign = 1 if direction == "harm" else -1
        self._tolerance = tolerance
        self._block = block
        self._state = state or RatesState()

    def update(self, stratum: str, arm: Arm, failed: bool) -> float:
        """Take in one request; returns the e-value now."""
        seen = self._state.strata.get(stratum, StratumState())
        waiting = [list(seen.waiting[0]), list(seen.waiting[1])]
        waiting[0 if arm == "baseline" else 1].append(int(failed))
        log_e, failures, totals = self._state.log_e, seen.failures, seen.totals
        na, nb = self._block
        if len(waiting[0]) >= na and len(waiting[1]) >= nb:
            xa, xb = sum(waiting[0][:na]), sum(waiting[1][:nb])
            waiting = [waiting[0][na:], waiting[1][nb:]]
            log_e += self._factor(failures, totals, xa, xb)
            failures = (failures[0] + xa, failures[1] + xb)
            totals = (totals[0] + na, totals[1] + nb)
        after = StratumState(
            failures=failures,
            totals=totals,
            waiting=(tuple(waiting[0]), tuple(waiting[1])),
        )
        self._state = RatesState(
            strata={**self._state.strata, stratum: after},
            log_e=log_e,
            log_peak=max(self._state.log_peak, log_e),
        )
        return exp(min(log_e, 700.0))

    def _factor(
        self, failures: tuple[int, int], totals: tuple[int, int], xa: int, xb: int
    ) -> float:
        """Log of the factor of a block with ``xa`` and ``xb`` failures."""
        na, nb = self._block
        guess_a, guess_b = (
            (x + _PRIOR) / (n + 2 * _PRIOR)
            for x, n in zip(failures, totals, strict=True)
        )
        if self._sign * (guess_b - guess_a - self._tolerance) <= 0:
            return 0.0
        null_a = nearest_null(guess_a, guess_b, na, nb, self._tolerance)
        null_b = null_a + self._tolerance
        return (
            xa * log(guess_a / null_a)
            + (na - xa) * log((1 - guess_a) / (1 - null_a))
            + xb * log(guess_b / null_b)
            + (nb - xb) * log((1 - guess_b) / (1 - null_b))
        )

    @property
    def log_e_value(self) -> float:
        """Natural logarithm of the e-value now."""
        return self._state.log_e

    @property
    def p_value(self) -> float:
        """Anytime-valid p-value."""
        return exp(-self._state.log_peak)

    def state(self) -> RatesState:
        """What is needed to go on after a restart."""
        return self._state


def nearest_null(a: float, b: float, na: int, nb: int, tolerance: float) -> float:
    """Baseline rate of the point ``canary = baseline + tolerance`` nearest a guess.

    Nearest in the Kullback-Leibler sense for ``na`` and ``nb`` requests; with
    tolerance 0 the mean weighted by them. The divergence is convex along the line,
    its slope is bisected.
    """
    if tolerance == 0:
        return (na * a + nb * b) / (na + nb)
    low, high = 0.0, 1.0 - tolerance
    for _ in range(60):
        p = (low + high) / 2
        q = p + tolerance
        slope = na * (p - a) / (p * (1 - p)) + nb * (q - b) / (q * (1 - q))
        if slope < 0:
            low = p
        else:
            high = p
    return (low + high) / 2
