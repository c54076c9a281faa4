"""Whether those who score can be believed: how often they failed, and on whose answers.

A scorer that fails on the candidate's answers alone hides exactly what it is there to
see. What it could not score is unknown, never good, and counts here.
"""

import threading
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field

from routeproof.canary.deciding.state import SignalOutcome
from routeproof.canary.splitting.split import LiveArm
from routeproof.canary.weighing.evidence import Trouble

RECENT = 400
LEAST_FAILURES = 3
"""One answer that breaks a scorer says little, and callers could write such answers."""

LEAST_PER_ARM = 30


@dataclass(frozen=True, slots=True)
class Limits:
    """What is still bearable.

    Attributes:
        failed_share: Of the latest answers, in both arms together.
        difference: Between the arms' failed shares.
    """

    failed_share: float = 0.02
    difference: float = 0.02


SCORER = Limits()
OPINION = Limits(failed_share=0.2, difference=0.1)
"""For models that are asked: their silence is more usual."""


@dataclass(slots=True)
class Ledger:
    """Successes and failures by signal and arm, and what they mean.

    Attributes:
        taken, failed: Counts by (signal, arm) since the start.
    """

    limits: Callable[[str], Limits]
    taken: Counter[tuple[str, str]] = field(default_factory=Counter, init=False)
    failed: Counter[tuple[str, str]] = field(default_factory=Counter, init=False)
    _recent: dict[str, deque[tuple[str, bool]]] = field(
        default_factory=dict, init=False
    )
    _last: dict[str, str] = field(default_factory=dict, init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)

    def note(self, name: str, arm: LiveArm, problem: str | None) -> None:
        """A signal was scored, or could not be: ``problem`` says why."""
        with self._lock:
            self.taken[name, arm] += 1
            recent = self._recent.setdefault(name, deque(maxlen=RECENT))
            recent.append((arm, problem is not None))
            if problem is not None:
                self.failed[name, arm] += 1
                self._last[name] = problem

    def troubles(self) -> dict[str, Trouble]:
        """Signals that cannot be believed now, and why."""
        with self._lock:
            names = list(self._recent)
            found = {name: self._trouble(name) for name in names}
        return {name: each for name, each in found.items() if each is not None}

    def _trouble(self, name: str) -> Trouble | None:
        recent, limits = self._recent[name], self.limits(name)
        failed = sum(is_failed for _, is_failed in recent)
        if failed < LEAST_FAILURES:
            return None
        if failed > limits.failed_share * len(recent):
            why = f"{failed} of the last {len(recent)} could not be scored"
            return SignalOutcome.ERROR, f"{why}: {self._last[name]}"
        shares = []
        for arm in ("control", "canary"):
            own = [is_failed for each, is_failed in recent if each == arm]
            if len(own) < LEAST_PER_ARM:
                return None
            shares.append(sum(own) / len(own))
        if abs(shares[0] - shares[1]) > limits.difference:
            why = (
                f"could not be scored in {shares[0]:.1%} of the control's and "
                f"{shares[1]:.1%} of the canary's"
            )
            return SignalOutcome.STALE, why
        return None


@dataclass(slots=True)
class Budget:
    """So many a minute, saved up for at most one minute.

    Attributes:
        clock: Monotonic seconds.
    """

    per_minute: float
    clock: Callable[[], float]
    _saved: float = field(default=1.0, init=False)
    _at_s: float | None = field(default=None, init=False)

    def take(self) -> bool:
        """Spend one; false when nothing is left."""
        now_s = self.clock()
        if self._at_s is not None:
            grown = (now_s - self._at_s) * self.per_minute / 60.0
            self._saved = min(max(1.0, self.per_minute), self._saved + max(0.0, grown))
        self._at_s = now_s
        if self._saved < 1.0:
            return False
        self._saved -= 1.0
        return True
