"""From the checks of a gate to the gate's own status."""

from collections.abc import Sequence

from routeproof.gates.facts import Row
from routeproof.gates.result import Check, Flag, GateName, GateResult, Status


def gate_result(
    gate: GateName,
    checks: Sequence[Check],
    *,
    passed: str,
    flags: Sequence[Flag] = (),
    hints: Sequence[str] = (),
    tables: dict[str, list[Row]] | None = None,
) -> GateResult:
    """Fold checks into one status: the worst required one.

    A failed check fails the gate whether it was required or not (what nobody asked
    for and is shown to be bad, is bad). Among the required ones inconclusive comes
    before not measured, unless nothing at all was measured. ``passed`` is the reason
    shown when nothing is open.
    """
    status = _status(checks)
    first = next(iter(_deciding(checks, status)), None)
    if status is Status.PASSED:
        reason = passed
    else:
        reason = "nothing was measured" if first is None else _told(first)
    return GateResult(
        gate=gate,
        status=status,
        reason=reason,
        checks=tuple(checks),
        flags=tuple(flags),
        hints=tuple(hints),
        tables=tables or {},
    )


def _status(checks: Sequence[Check]) -> Status:
    if any(check.status is Status.FAILED for check in checks):
        return Status.FAILED
    required = [check.status for check in checks if check.required]
    if not required or all(status is Status.NOT_MEASURED for status in required):
        return Status.NOT_MEASURED
    if all(status is Status.PASSED for status in required):
        return Status.PASSED
    return Status.INCONCLUSIVE


def _deciding(checks: Sequence[Check], status: Status) -> list[Check]:
    """The checks that make the status, the weightiest first.

    A gate is also inconclusive when some of it passed and the rest was not measured.
    """
    ordered = _by_weight(checks)
    found = [check for check in ordered if check.status is status]
    if status is Status.INCONCLUSIVE:
        unmeasured = [c for c in ordered if c.status is Status.NOT_MEASURED]
        open_and_asked = [c for c in (*found, *unmeasured) if c.required]
        return open_and_asked or found
    return found


def _by_weight(checks: Sequence[Check]) -> list[Check]:
    """Required checks first, order kept otherwise."""
    return sorted(checks, key=lambda check: not check.required)


def _told(check: Check) -> str:
    """A difference says which question it answers; other reasons are sentences."""
    return (
        f"{check.name}: {check.reason}"
        if check.slice or check.kind == "difference"
        else check.reason
    )
