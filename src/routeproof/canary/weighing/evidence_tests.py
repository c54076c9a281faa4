"""The two kinds of test behind a signal, with the same face.

Rates: answers of control and canary to different requests, in strata. Pairs: both
arms' answers to the same prompt; what counts is how much the canary was worse.
"""

import msgspec

from routeproof.stats.sequential import Betting, BettingState
from routeproof.stats.sequential_rates import RatesState, RatesTest

Sides = tuple[float, float]


class SignalState(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """What a signal has to remember across restarts.

    ``bad`` and ``seen`` count over the canary's life, ``step_seen`` since the step was
    entered; control first, canary second. For pairs ``bad`` is by how much each arm
    was the worse one.
    """

    harm: RatesState = RatesState()
    safe: RatesState = RatesState()
    pairs_harm: BettingState | None = None
    pairs_safe: BettingState | None = None
    bad: Sides = (0, 0)
    seen: tuple[int, int] = (0, 0)
    step_seen: tuple[int, int] = (0, 0)


class Rates:
    """Bad answers of two arms, in strata."""

    def __init__(self, forgiven: float, tolerance: float, state: SignalState) -> None:
        self._tolerance = tolerance
        self.harm = RatesTest("harm", tolerance=forgiven, state=state.harm)
        self.safe = RatesTest("safe", tolerance=tolerance, state=state.safe)
        self.bad, self.seen = list(state.bad), list(state.seen)
        self.step_seen = list(state.step_seen)

    def observe(self, is_canary: bool, bad: bool, stratum: str) -> None:
        """Take in one answer."""
        side = 1 if is_canary else 0
        self.bad[side] += int(bad)
        self.seen[side] += 1
        self.step_seen[side] += 1
        for test in (self.harm, self.safe):
            test.update(stratum, "canary" if is_canary else "baseline", bad)

    def enter_step(self) -> None:
        """Ask for safety anew; harm goes on."""
        self.safe = RatesTest("safe", tolerance=self._tolerance)
        self.step_seen = [0, 0]

    def words(self) -> str:
        """Bad and seen of both arms."""
        return (
            f"bad on {self.bad[1]:g} of {self.seen[1]} against "
            f"{self.bad[0]:g} of {self.seen[0]}"
        )

    def state(self) -> SignalState:
        """Counts and both e-processes."""
        return SignalState(
            harm=self.harm.state(),
            safe=self.safe.state(),
            bad=(self.bad[0], self.bad[1]),
            seen=(self.seen[0], self.seen[1]),
            step_seen=(self.step_seen[0], self.step_seen[1]),
        )


class Pairs:
    """Differences inside pairs: candidate minus control, -1 (worse) to 1."""

    def __init__(self, forgiven: float, tolerance: float, state: SignalState) -> None:
        self._tolerance = tolerance
        self.harm = Betting("harm", tolerance=forgiven, state=state.pairs_harm)
        self.safe = Betting("safe", tolerance=tolerance, state=state.pairs_safe)
        self.bad, self.seen = list(state.bad), list(state.seen)
        self.step_seen = list(state.step_seen)

    def observe(self, difference: float) -> None:
        """Take in one pair."""
        self.bad[0] += max(0.0, difference)
        self.bad[1] += max(0.0, -difference)
        for counts in (self.seen, self.step_seen):
            counts[0] += 1
            counts[1] += 1
        self.harm.update(difference)
        self.safe.update(difference)

    def enter_step(self) -> None:
        """Ask for safety anew; harm goes on."""
        self.safe = Betting("safe", tolerance=self._tolerance)
        self.step_seen = [0, 0]

    def words(self) -> str:
        """By how much each arm was the worse one."""
        return (
            f"of {self.seen[1]} pairs the canary was worse in {self.bad[1]:g}, "
            f"the control in {self.bad[0]:g}"
        )

    def state(self) -> SignalState:
        """Counts and both wagers."""
        return SignalState(
            pairs_harm=self.harm.state(),
            pairs_safe=self.safe.state(),
            bad=(self.bad[0], self.bad[1]),
            seen=(self.seen[0], self.seen[1]),
            step_seen=(self.step_seen[0], self.step_seen[1]),
        )
