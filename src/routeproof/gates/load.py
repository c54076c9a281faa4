"""The requests of a run with what is needed to judge their speed."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from routeproof.gates.evidence import Agreed
from routeproof.metrics.histogram import LogHistogram
from routeproof.metrics.requests import Requests
from routeproof.records.columns import Bools

GapsByLoad = Mapping[tuple[str, str, str], LogHistogram]
"""Chunk gaps by (arm, phase, level)."""


@dataclass(frozen=True, slots=True)
class Load:
    """All that speed is measured from.

    Attributes:
        requests: Every request of the run.
        gaps: Chunk gaps by load.
        correct: True for answers scored correct, shape ``(n,)``; ``None`` = no scores.
        timeout_s: What a failed request counts as in a mean.
        seed: Of the bootstrap.
        is_reused: Whether quality answers are of an earlier run: their times are void.
    """

    requests: Requests
    agreed: Agreed
    gaps: GapsByLoad = field(default_factory=dict)
    correct: Bools | None = None
    timeout_s: float = 120.0
    seed: int = 0
    is_reused: bool = False
