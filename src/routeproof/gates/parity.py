"""Gate 2: are the two routes, and what was sent to them, comparable?"""

from routeproof.gates.evidence import Evidence, Speed
from routeproof.gates.facts import ReusedRow
from routeproof.gates.fold import gate_result
from routeproof.gates.measure_speed import CACHED_SHARE_TOLERANCE
from routeproof.gates.more_often import more_often
from routeproof.gates.result import Check, Flag, GateResult, Status


def judge_parity(evidence: Evidence) -> GateResult:
    """Whether everything but what ``changes`` names is equal.

    Fails on an undeclared difference, on another workload, and on arms whose prompt
    caches did different shares of the work. Without interleaving or without an A/A
    control the noise of the stack is unknown: inconclusive.
    """
    if evidence.routes is None and evidence.workload_matches is None:
        return GateResult(
            gate="parity",
            status=Status.NOT_MEASURED,
            reason="the run tells neither its routes nor its workload",
        )
    checks = [
        *_same_routes(evidence),
        _same_workload(evidence.workload_matches),
        *_same_parameters(*evidence.asked_otherwise),
        _interleaved(evidence.is_interleaved),
        _control(evidence.has_control),
        *_same_cache(evidence.speed),
        *_same_baseline(evidence.reused, evidence.agreed.policy.alpha),
    ]
    failed = {check.name for check in checks if check.status is Status.FAILED}
    flags: list[Flag] = []
    if any(name.startswith(("same_routes", "same_baseline")) for name in failed):
        flags.append("parity_broken")
    if failed & {"same_workload", "same_parameters"}:
        flags.append("workload_differs")
    return gate_result(
        "parity",
        checks,
        flags=flags,
        passed="equal except for what is being tested, interleaved, with a control",
    )


def _same_routes(evidence: Evidence) -> list[Check]:
    if evidence.routes is None:
        reason = "the run holds no inventory of its routes"
        return [Check(name="same_routes", status=Status.NOT_MEASURED, reason=reason)]
    if not evidence.parity:
        intended = [c.field for c in evidence.routes.changes if c.intended]
        what = f"only {', '.join(intended)}" if intended else "nothing"
        reason = f"{what} differs, as declared"
        return [Check(name="same_routes", status=Status.PASSED, reason=reason)]
    return [
        Check(name=f"same_routes[{i}]", status=Status.FAILED, reason=problem)
        for i, problem in enumerate(evidence.parity)
    ]


def _same_workload(matches: bool | None) -> Check:
    if matches is None:
        status, reason = Status.INCONCLUSIVE, "the run does not tell what was sent"
    elif matches:
        status, reason = Status.PASSED, "both arms were sent the same cases"
    else:
        status, reason = Status.FAILED, "the arms were not sent the same cases"
    return Check(name="same_workload", status=status, reason=reason)


def _same_parameters(otherwise: int, known: int) -> list[Check]:
    if not known:
        return []
    status = Status.FAILED if otherwise else Status.PASSED
    reason = "both arms were sent the same parameters, request by request"
    if otherwise:
        reason = f"{otherwise} of {known} pairs were sent with other parameters"
    return [Check(name="same_parameters", status=status, reason=reason, n=known)]


def _interleaved(is_interleaved: bool | None) -> Check:
    if is_interleaved:
        status, reason = Status.PASSED, "blocks of the arms alternate in time"
    elif is_interleaved is None:
        status = Status.INCONCLUSIVE
        reason = "too few blocks to tell whether the arms took turns"
    else:
        status = Status.INCONCLUSIVE
        reason = "the arms did not take turns: drift looks like a difference"
    return Check(name="interleaved", status=status, reason=reason)


def _control(has_control: bool) -> Check:
    if has_control:
        status, reason = Status.PASSED, "the baseline ran against itself (A/A)"
    else:
        status = Status.INCONCLUSIVE
        reason = "no A/A control: the noise of the stack itself is unknown"
    return Check(name="control", status=status, reason=reason)


def _same_baseline(reused: ReusedRow | None, alpha: float) -> list[Check]:
    """Whether a baseline whose answers were taken over still gives the same ones."""
    if reused is None:
        return []
    taken = (
        f"{reused.requests} baseline answers are those of {reused.run_id} "
        f"({reused.measured})"
    )
    if not reused.again:
        status = Status.INCONCLUSIVE
        reason = f"{taken}, and nothing was asked again to compare"
        p = None
    else:
        p = more_often(
            reused.again_differs, reused.again, reused.before_differs, reused.before
        )
        told = f"{reused.again_differs} of {reused.again} asked again differ"
        status, reason = Status.PASSED, f"{taken}; {told}"
        if reused.again_differs and not reused.before:
            status = Status.INCONCLUSIVE
            reason += ", and without a control nobody knows whether that is noise"
        elif p <= alpha:
            status = Status.FAILED
            reason = f"the baseline answers otherwise now: {told}, of which the noise "
            reason += f"explains {reused.before_differs} of {reused.before}"
    return [
        Check(
            name="same_baseline",
            status=status,
            reason=reason,
            p_value=p,
            n=reused.again,
        )
    ]


def _same_cache(speed: Speed) -> list[Check]:
    shares = speed.cached_share
    baseline, candidate = shares.get("baseline"), shares.get("candidate")
    if baseline is None or candidate is None:
        return []
    difference = candidate - baseline
    is_close = abs(difference) <= CACHED_SHARE_TOLERANCE
    status = Status.PASSED if is_close else Status.FAILED
    reason = (
        f"prompt tokens from cache: {baseline:.0%} on the baseline, {candidate:.0%} on "
        "the candidate"
    )
    if speed.is_warmed_by_control:
        status = Status.INCONCLUSIVE
        reason += (
            "; the control filled the baseline's cache, so no time of the quality "
            "stage is judged: add a `latency` stage"
        )
    return [
        Check(
            name="same_cache",
            status=status,
            reason=reason,
            required=not speed.is_warmed_by_control,
            kind="difference",
            unit="1",
            baseline=baseline,
            candidate=candidate,
            estimate=difference,
            limit=CACHED_SHARE_TOLERANCE,
        )
    ]
