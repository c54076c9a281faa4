"""Gate 3: does the draft earn its keep?"""

from routeproof.gates.correctness import tripped
from routeproof.gates.evidence import Evidence
from routeproof.gates.fold import gate_result
from routeproof.gates.result import Check, Flag, GateResult, Status


def judge_acceptance(evidence: Evidence) -> GateResult:
    """Whether acceptance is above its floors, and its counts agree with each other.

    Not measured on a route without speculation, when the engine exports nothing, and
    when the degeneration guard tripped (loops are accepted splendidly).
    """
    if evidence.routes is not None and not evidence.routes.is_speculative:
        return _not_measured("the route does not speculate", "not_speculative")
    void = tripped(evidence)
    if void:
        return _not_measured(f"void, the degeneration guard tripped: {void[0]}")
    if evidence.acceptance.source == "none":
        return _not_measured("the engine does not export its acceptance")
    floors = evidence.agreed.performance.acceptance
    checks = [
        *_identities(evidence),
        _floor(evidence, "tokens_per_pass", floors.tokens_per_pass_min),
        _floor(evidence, "acceptance_rate", floors.acceptance_rate_min),
    ]
    below = any(check.status is Status.FAILED for check in checks)
    return gate_result(
        "acceptance",
        checks,
        flags=("below_floor",) if below else (),
        passed="; ".join(c.reason for c in checks if c.kind == "value"),
    )


def _not_measured(reason: str, *flags: Flag) -> GateResult:
    return GateResult(
        gate="acceptance", status=Status.NOT_MEASURED, reason=reason, flags=flags
    )


def _identities(evidence: Evidence) -> list[Check]:
    broken = [
        name for name, holds in evidence.acceptance.identities.items() if not holds
    ]
    if not broken:
        return []
    reason = f"the engine's counts contradict each other: {', '.join(sorted(broken))}"
    return [Check(name="identities", status=Status.INCONCLUSIVE, reason=reason)]


def _floor(evidence: Evidence, name: str, floor: float | None) -> Check:
    value = evidence.acceptance.overall.get(name)
    words = name.replace("_", " ")
    if value is None:
        status, reason = Status.NOT_MEASURED, f"{words} is not known"
    elif floor is None:
        status, reason = Status.PASSED, f"{words} {value:.3g}, no floor is agreed"
    elif value < floor:
        status, reason = Status.FAILED, f"{words} {value:.3g} is below {floor:g}"
    else:
        status, reason = (
            Status.PASSED,
            f"{words} {value:.3g}, at least {floor:g} agreed",
        )
    return Check(
        name=name,
        status=status,
        reason=reason,
        kind="value",
        candidate=value,
        limit=floor,
        required=value is not None or floor is not None,
    )
