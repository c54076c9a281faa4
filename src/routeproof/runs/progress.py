"""How far a run is, and when too much of it fails."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from routeproof.errors import MeasurementError
from routeproof.records.outcome import SERVED
from routeproof.records.record import Record
from routeproof.runs.blocks import Plan

FEWEST_FOR_FAILURE_RULE = 20
"""Requests of an arm before its share of failures is judged."""


@dataclass(frozen=True, slots=True)
class Progress:
    """Where the run is.

    Attributes:
        done: Requests of this stage with a record, warm-up included.
        planned: Requests of this stage; ``None`` when it runs by the clock.
        failed: Requests of the whole call that brought no answer.
        left_s: Estimated time left of the whole run; ``None`` until it can be said.
    """

    phase: str
    level: str
    arm: str
    done: int
    planned: int | None
    failed: int
    left_s: float | None


@dataclass(frozen=True, slots=True)
class Conducted:
    """What one call of ``conduct`` did.

    Attributes:
        sent: Requests that got a record.
        skipped: Requests that had one already.
        failed: Of those sent, the ones that brought no answer.
    """

    sent: int
    skipped: int
    failed: int
    seconds: float


class Joined:
    """What several processes that send one plan tell of themselves, as one.

    Attributes:
        told: What each told last, by its number.
    """

    def __init__(self, count: int, show: Callable[[Progress], None] | None) -> None:
        """``show`` is called with the whole each time that one of ``count`` tells."""
        self.told: dict[int, Progress] = {}
        self._count = count
        self._show = show

    @property
    def failed(self) -> int:
        """Requests of all processes that brought no answer."""
        return sum(told.failed for told in self.told.values())

    def hear(self, index: int, told: Progress) -> None:
        """Take what one process tells, and show the whole."""
        if self.told.get(index) == told:
            return
        self.told[index] = told
        if self._show is None:
            return
        place = (told.phase, told.level)
        same = [t for t in self.told.values() if (t.phase, t.level) == place]
        # Each reckons with the whole plan and sends its share.
        lefts = [t.left_s for t in self.told.values() if t.left_s is not None]
        self._show(
            replace(
                told,
                done=sum(t.done for t in same),
                failed=self.failed,
                left_s=max(lefts) / self._count if lefts else None,
            )
        )


class Tally:
    """Counts the records of one call of ``conduct``."""

    def __init__(self, plan: Plan, done: set[str]) -> None:
        """``done`` are the ids that have a record already."""
        self.skipped = _already(plan, done)
        self._planned = plan.planned
        self._allowed_share = plan.workload.load.max_failure_share
        self._sent: dict[str, int] = {}
        self._failed: dict[str, int] = {}
        self._last_words = ""
        self._began_s = time.monotonic()

    @property
    def failed(self) -> int:
        """Requests that brought no answer."""
        return sum(self._failed.values())

    def count(self, record: Record) -> None:
        """Take one record."""
        arm = record.key.arm
        self._sent[arm] = self._sent.get(arm, 0) + 1
        if record.answer.outcome not in SERVED:
            self._failed[arm] = self._failed.get(arm, 0) + 1
            self._last_words = f"{record.answer.outcome}: {record.answer.error}"

    def check_failures(self) -> None:
        """Apply the failure rule of the workload.

        Raises:
            MeasurementError: An arm fails more often than is allowed.
        """
        for arm, failed in self._failed.items():
            sent = self._sent[arm]
            too_many = failed / sent > self._allowed_share
            if sent >= FEWEST_FOR_FAILURE_RULE and too_many:
                raise MeasurementError(
                    f"{failed} of {sent} requests to {arm} failed, more than the "
                    f"share of {self._allowed_share:g} that is allowed; the last one: "
                    f"{self._last_words}",
                    hint="mend the endpoint and go on with --resume, or raise "
                    "`workload.load.max_failure_share`",
                )

    def left_s(self) -> float | None:
        """Estimated time left, from the pace so far; ``None`` until it can be said."""
        sent = sum(self._sent.values())
        if self._planned is None or sent == 0:
            return None
        spent_s = time.monotonic() - self._began_s
        return spent_s / sent * max(self._planned - self.skipped - sent, 0)

    def result(self) -> Conducted:
        """The counts so far."""
        return Conducted(
            sent=sum(self._sent.values()),
            skipped=self.skipped,
            failed=self.failed,
            seconds=time.monotonic() - self._began_s,
        )


def _already(plan: Plan, done: set[str]) -> int:
    """Requests of a plan that have a record, as far as it knows its requests."""
    if not done:
        return 0
    counted = (b for s in plan.stages for b in s.blocks if b.count is not None)
    return sum(p.request_id in done for block in counted for p in block.requests())
