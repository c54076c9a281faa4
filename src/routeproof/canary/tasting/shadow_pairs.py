"""Two answers to one prompt: what each signal says of the pair."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from routeproof.canary.samples.spool import Sample
from routeproof.canary.tasting.tee import Copy
from routeproof.canary.weighing.policies import PAIRED, SHADOW

NO_PAIR_STATUS = frozenset({401, 403, 404, 408, 409, 429, 503})
"""Answers that say the replay itself was not wanted; they tell nothing of quality."""


@dataclass(frozen=True, slots=True)
class CopiedPair:
    """A live exchange and its replay on the other arm, not read yet."""

    live: Copy
    replay: Copy


@dataclass(frozen=True, slots=True)
class TastedPair:
    """Both answers with their signals. The prompt is in memory only.

    Attributes:
        live, replay: Texts redacted.
        body: The request.
    """

    live: Sample
    replay: Sample
    body: Mapping[str, Any]

    @property
    def control(self) -> Sample:
        """The side that is not the canary."""
        return self.replay if self.live.arm == "canary" else self.live

    @property
    def canary(self) -> Sample:
        """The canary's side."""
        return self.live if self.live.arm == "canary" else self.replay


def why_no_pair(live: Sample, replay: Sample) -> str | None:
    """Why two exchanges are not comparable; ``None`` when they are."""
    if "cancelled" in (live.record.answer.outcome, replay.record.answer.outcome):
        return "cancelled"
    if replay.record.answer.http_status in NO_PAIR_STATUS:
        return "not_served"
    return None


def differences(pair: TastedPair) -> dict[str, float]:
    """Canary minus control by shadow signal: -1 the canary is worse, 1 it is better.

    Signals that do not apply to both answers are left out.
    """
    found = {}
    for name in PAIRED:
        control = (pair.control.signals or {}).get(name)
        canary = (pair.canary.signals or {}).get(name)
        if control is not None and canary is not None:
            found[SHADOW + name] = float(control) - float(canary)
    return found
