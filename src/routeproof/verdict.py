"""The fold: seven gate results to one verdict. Pure; the table is the docstring."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Literal

import msgspec

from routeproof.gates.result import GateResult


class Decision(StrEnum):
    """What to do with the candidate. ``NONE``: no verdict, mend something first."""

    ADOPT = "adopt"
    PILOT = "pilot"
    WAIT = "wait"
    AVOID = "avoid"
    NONE = "no_verdict"


StopUse = Literal[
    "low_acceptance", "correctness_drift", "memory_pressure", "unstable_runtime"
]


class Verdict(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The decision with its reasons.

    Attributes:
        reasons: In order of weight; the first one decided.
        stop_use: Which of the four stop-use conditions hold.
        would_change: What would change the verdict.
        retest: Conditions under which to run again.
    """

    decision: Decision
    reasons: tuple[str, ...]
    stop_use: tuple[StopUse, ...] = ()
    would_change: tuple[str, ...] = ()
    retest: tuple[str, ...] = ()


def decide(results: Sequence[GateResult]) -> Verdict:
    """Fold gate results into a verdict. To be written by the gates' owner."""
    raise NotImplementedError
