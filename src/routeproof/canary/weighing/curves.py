"""The past of the evidence, thinned so that any span fits one picture."""

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec

from routeproof.canary.weighing.evidence import Standing

POINTS_MAX = 240


class Point(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The evidence at one moment.

    Attributes:
        at_s: Unix seconds.
        weight, share: What the candidate may get, and gets; ``None`` unknown.
        log_e: Signal name to log e-values of harm and of safety, each over the value
            that settles it: 1 is the threshold.
    """

    at_s: float
    weight: float
    share: float | None
    log_e: dict[str, tuple[float, float]]


@dataclass(slots=True)
class Curves:
    """Points at an even distance that doubles whenever there are too many."""

    every_s: float = 1.0
    _points: list[Point] = field(default_factory=list, init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)

    def add(
        self,
        at_s: float,
        standings: Sequence[Standing],
        *,
        weight: float,
        share: float | None,
    ) -> None:
        """Take in how things stand, if enough time went by since the last point."""
        with self._lock:
            if self._points and at_s - self._points[-1].at_s < self.every_s:
                return
            log_e = {
                s.name: (s.harm_log_e / s.harm_at, s.safe_log_e / s.safe_at)
                for s in standings
            }
            self._points.append(
                Point(at_s=at_s, weight=weight, share=share, log_e=log_e)
            )
            if len(self._points) > POINTS_MAX:
                self._points = self._points[::2]
                self.every_s *= 2

    def since(self, at_s: float) -> list[Point]:
        """Points after a moment, in order."""
        with self._lock:
            return [point for point in self._points if point.at_s > at_s]
