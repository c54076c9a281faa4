"""The fold: seven gate results to one verdict. Pure; the table is the docstring."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Literal

import msgspec

from routeproof.gates.result import Flag, GateName, GateResult, Status


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


Gates = Mapping[GateName, GateResult]
_GATES: tuple[GateName, ...] = (
    "inventory",
    "parity",
    "correctness",
    "memory_stability",
    "acceptance",
    "latency",
    "rollback",
)


def decide(results: Sequence[GateResult]) -> Verdict:
    """Fold gate results into a verdict.

    The first row that holds decides; the rows below it that hold too become further
    reasons. A gate that is missing from ``results`` counts as not measured.

    ==  ====================================================  ==========
    #   if                                                    verdict
    ==  ====================================================  ==========
    1   synthetic acceptance, parity broken, workload         no_verdict
        differs, or client saturated
    2   correctness failed, or the degeneration guard tripped avoid
    3   memory or stability failed                            avoid
    4   correctness is not passed (inconclusive, not          wait
        measured)
    5   acceptance failed and no gain is proven               avoid
    6   latency failed and slower than the baseline           avoid
    7   latency failed otherwise (SLO missed, gain not there) wait
    8   acceptance failed although a gain is proven           wait
    9   maturity below ``merged``                             wait
    10  inventory or parity failed or not measured, latency   wait
        not passed, or the rollback drill failed
    11  anything else that is not passed, or a cap: maturity  pilot
        ``merged``, unverified fields, rollback not drilled,
        a screening slice inconclusive, decode gain hidden
    12  all seven passed (acceptance need not on a route      adopt
        without speculation)
    ==  ====================================================  ==========

    Row 4 stands above every row that reads latency or acceptance: no performance
    result changes the verdict while correctness has not passed. Row 11 does not
    apply to an inconclusive latency gate whose only lack is that the workload hides a
    decode gain (flag ``decode_gain_hidden``): that is a pilot, not a wait.
    """
    gates = {result.gate: result for result in results}
    whole = {name: gates.get(name) or _absent(name) for name in _GATES}
    held = [(row, text) for row in _ROWS if (text := row.holds(whole))]
    if not held:
        return Verdict(
            decision=Decision.ADOPT,
            reasons=("all gates passed",),
            retest=_RETEST_ADOPTED,
        )
    return Verdict(
        decision=held[0][0].decision,
        reasons=_unique(line for _, lines in held for line in lines),
        stop_use=_stop_use(whole),
        would_change=_would_change(whole),
        retest=_unique(row.retest for row, _ in held),
    )


class _Row(msgspec.Struct, frozen=True):
    decision: Decision
    holds: Callable[[Gates], tuple[str, ...]]
    retest: str


_RETEST_ADOPTED = (
    "retest when the model, draft, engine version, template or hardware changes",
)


def _absent(name: GateName) -> GateResult:
    return GateResult(
        gate=name, status=Status.NOT_MEASURED, reason=f"{name} was not judged"
    )


def _unique(lines: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(lines))


def _flagged(gates: Gates, *flags: Flag) -> tuple[str, ...]:
    """Reasons of the gates that raised one of the flags."""
    return tuple(
        _reason(result)
        for result in gates.values()
        if any(flag in result.flags for flag in flags)
    )


def _reason(result: GateResult) -> str:
    return f"{result.gate.replace('_', ' and ', 1)}: {result.reason}"


def _is(gates: Gates, name: GateName, *statuses: Status) -> tuple[str, ...]:
    result = gates[name]
    return (_reason(result),) if result.status in statuses else ()


def _has_gain(gates: Gates) -> bool:
    return bool(_flagged(gates, "gain_proven"))


def _not_comparable(gates: Gates) -> tuple[str, ...]:
    return _flagged(
        gates,
        "synthetic_acceptance",
        "parity_broken",
        "workload_differs",
        "client_saturated",
    )


def _incorrect(gates: Gates) -> tuple[str, ...]:
    failed = _is(gates, "correctness", Status.FAILED)
    return failed or _flagged(gates, "guard_tripped")


def _unstable(gates: Gates) -> tuple[str, ...]:
    return _is(gates, "memory_stability", Status.FAILED)


def _correctness_open(gates: Gates) -> tuple[str, ...]:
    return _is(gates, "correctness", Status.INCONCLUSIVE, Status.NOT_MEASURED)


def _low_acceptance(gates: Gates) -> tuple[str, ...]:
    return () if _has_gain(gates) else _is(gates, "acceptance", Status.FAILED)


def _slower(gates: Gates) -> tuple[str, ...]:
    slower = "slower" in gates["latency"].flags
    return _is(gates, "latency", Status.FAILED) if slower else ()


def _no_gain(gates: Gates) -> tuple[str, ...]:
    return _is(gates, "latency", Status.FAILED)


def _low_acceptance_with_gain(gates: Gates) -> tuple[str, ...]:
    return _is(gates, "acceptance", Status.FAILED) if _has_gain(gates) else ()


def _immature(gates: Gates) -> tuple[str, ...]:
    return _flagged(gates, "maturity_low")


def _groundless(gates: Gates) -> tuple[str, ...]:
    open_latency = () if _is_hidden(gates) else (Status.INCONCLUSIVE,)
    return (
        *_is(gates, "inventory", Status.FAILED, Status.NOT_MEASURED),
        *_is(gates, "parity", Status.FAILED, Status.NOT_MEASURED),
        *_is(gates, "latency", *open_latency, Status.NOT_MEASURED),
        *_is(gates, "rollback", Status.FAILED),
    )


def _is_hidden(gates: Gates) -> bool:
    return "decode_gain_hidden" in gates["latency"].flags


def _capped(gates: Gates) -> tuple[str, ...]:
    applies = [
        name
        for name in gates
        if not (name == "acceptance" and "not_speculative" in gates[name].flags)
    ]
    unsettled = (Status.INCONCLUSIVE, Status.NOT_MEASURED)
    return (
        *(line for name in applies for line in _is(gates, name, *unsettled)),
        *_flagged(
            gates,
            "maturity_merged",
            "unverified_fields",
            "screening_inconclusive",
            "decode_gain_hidden",
            "not_drilled",
        ),
    )


_ROWS = (
    _Row(
        Decision.NONE,
        _not_comparable,
        "measure again once the two routes can be compared",
    ),
    _Row(Decision.AVOID, _incorrect, "retest when the loss of quality is mended"),
    _Row(
        Decision.AVOID,
        _unstable,
        "retest when memory and stability hold over the soak",
    ),
    _Row(
        Decision.WAIT,
        _correctness_open,
        "retest with enough pairs to decide every required quality question",
    ),
    _Row(
        Decision.AVOID,
        _low_acceptance,
        "retest with a draft that is accepted above the floor on this workload",
    ),
    _Row(Decision.AVOID, _slower, "retest when the candidate is no longer slower"),
    _Row(
        Decision.WAIT,
        _no_gain,
        "retest when the SLOs are met and the gain asked for is there",
    ),
    _Row(
        Decision.WAIT,
        _low_acceptance_with_gain,
        "retest when acceptance holds its floor in every slice",
    ),
    _Row(Decision.WAIT, _immature, "retest when the runtime change has been merged"),
    _Row(
        Decision.WAIT,
        _groundless,
        "retest when the open gates have been measured and pass",
    ),
    _Row(
        Decision.PILOT,
        _capped,
        "retest when what caps the verdict is settled (see the reasons)",
    ),
)


def _stop_use(gates: Gates) -> tuple[StopUse, ...]:
    memory = gates["memory_stability"]
    failed = memory.status is Status.FAILED
    over = "memory_over" in memory.flags
    conditions: tuple[tuple[StopUse, bool], ...] = (
        ("low_acceptance", gates["acceptance"].status is Status.FAILED),
        ("correctness_drift", bool(_incorrect(gates))),
        ("memory_pressure", failed and over),
        ("unstable_runtime", failed and ("unstable" in memory.flags or not over)),
    )
    return tuple(name for name, holds in conditions if holds)


def _would_change(gates: Gates) -> tuple[str, ...]:
    """The open or failed required checks, gate by gate, in the order of the fold."""
    lines = []
    for result in gates.values():
        if result.status is Status.PASSED or "not_speculative" in result.flags:
            continue
        lacking = {result.status}
        if result.status is Status.INCONCLUSIVE:
            lacking.add(Status.NOT_MEASURED)
        named = [c for c in result.checks if c.required and c.status in lacking]
        if not named:
            lines.append(_reason(result))
        for check in named[:5]:
            more = check.n_needed and check.n_needed - (check.n or 0)
            tail = f" ({more} more needed)" if more and more > 0 else ""
            lines.append(f"{check.name}: {check.reason}{tail}")
    return _unique(lines)
