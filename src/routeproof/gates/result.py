"""What a gate answers, with every number it judged on."""

from enum import StrEnum
from typing import Literal

import msgspec

from routeproof.stats.interval import Interval


class Status(StrEnum):
    """Status of a question. Nothing is a pass for lack of evidence."""

    PASSED = "passed"
    FAILED = "failed"
    INCONCLUSIVE = "inconclusive"
    NOT_MEASURED = "not_measured"


GateName = Literal[
    "inventory",
    "parity",
    "acceptance",
    "latency",
    "correctness",
    "memory_stability",
    "rollback",
]

Flag = Literal[
    "synthetic_acceptance",
    "parity_broken",
    "workload_differs",
    "client_saturated",
    "guard_tripped",
    "below_floor",
    "gain_proven",
    "slower",
    "slo_missed",
    "memory_over",
    "unstable",
    "maturity_low",
    "maturity_merged",
    "unverified_fields",
    "screening_inconclusive",
    "decode_gain_hidden",
    "not_drilled",
    "not_speculative",
]
"""Facts the decision table reads beside the statuses."""


class Check(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One question inside a gate.

    Attributes:
        name: Such as ``exact_match[class=factual_qa]``.
        reason: One sentence with the numbers, for people.
        baseline, candidate: Values of the two arms; ``None`` when unknown.
        estimate: Difference (candidate - baseline) or ratio (candidate / baseline), as
            ``kind`` says.
        limit: Tolerance, SLO, floor: what the estimate was held against.
        n: Units judged on.
        n_needed: Units needed in all; ``None`` when not a matter of more units.
    """

    name: str
    status: Status
    reason: str
    kind: Literal["difference", "ratio", "value", "fact"] = "fact"
    unit: str = ""
    baseline: float | None = None
    candidate: float | None = None
    estimate: float | None = None
    interval: Interval | None = None
    limit: float | None = None
    n: int | None = None
    n_needed: int | None = None
    p_value: float | None = None
    required: bool = True
    slice: dict[str, str] = {}
    notes: tuple[str, ...] = ()


class GateResult(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What one gate answers.

    Attributes:
        reason: The first thing a person should read of it.
        checks: Every question asked, in order.
        flags: Facts for the decision table.
        hints: Where to look first.
        tables: Named tables for the reports: rows of plain values.
    """

    gate: GateName
    status: Status
    reason: str
    checks: tuple[Check, ...] = ()
    flags: tuple[Flag, ...] = ()
    hints: tuple[str, ...] = ()
    tables: dict[str, list[dict[str, str | float | int | bool | None]]] = {}
