"""Gate 7: does the way back exist, and was it walked?"""

from routeproof.gates.evidence import Evidence
from routeproof.gates.fold import gate_result
from routeproof.gates.result import Check, Flag, GateResult, Status


def judge_rollback(evidence: Evidence) -> GateResult:
    """Whether a drill has shown the way back.

    ``rollback.drilled`` is written by ``routeproof canary drill``; a text that begins
    with ``failed`` fails the gate, none at all caps the verdict at pilot.
    """
    rollback = evidence.agreed.rollback
    drilled = (rollback.drilled or "").strip()
    flags: tuple[Flag, ...] = ()
    if not drilled:
        flags = ("not_drilled",)
        check = Check(
            name="drilled",
            status=Status.NOT_MEASURED,
            reason=f"the way back to {rollback.to} was never drilled",
        )
    elif drilled.lower().startswith("failed"):
        check = Check(
            name="drilled",
            status=Status.FAILED,
            reason=f"the drill of the way back to {rollback.to} failed: {drilled}",
        )
    else:
        check = Check(
            name="drilled",
            status=Status.PASSED,
            reason=f"the way back to {rollback.to} was drilled: {drilled}",
        )
    return gate_result("rollback", [check], flags=flags, passed=check.reason)
