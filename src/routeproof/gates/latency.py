"""Gate 4: is it faster where it counts, inside the SLOs?"""

from routeproof.gates.correctness import tripped
from routeproof.gates.evidence import Evidence
from routeproof.gates.fold import gate_result
from routeproof.gates.gain import gain_checks, is_hidden, is_proven
from routeproof.gates.result import Check, Flag, GateResult, Status
from routeproof.gates.slo import slo_checks
from routeproof.gates.slower import slower_checks


def judge_latency(evidence: Evidence) -> GateResult:
    """Whether the candidate is faster at the target load and meets every SLO there.

    Not measured when the client was saturated (then there is no verdict at all) and
    when the degeneration guard tripped (looping answers are fast). Fails when an SLO
    is missed, when a time is shown to be worse at any declared load (also "fast when
    idle, slower at peak"), and when the gain asked for is shown to be absent.
    """
    invalid = [row.reason for row in evidence.validity if row.is_ok is False]
    if invalid:
        return _void(f"the client was the bottleneck: {invalid[0]}", "client_saturated")
    void = tripped(evidence)
    if void:
        return _void(f"void, the degeneration guard tripped: {void[0]}")
    if not evidence.speed.latencies:
        return _void("no request with a time was recorded")
    slower = slower_checks(evidence)
    gain = gain_checks(evidence)
    slo = slo_checks(evidence)
    checks = [*slo, *gain, *slower]
    found: tuple[tuple[Flag, bool], ...] = (
        ("gain_proven", is_proven(gain)),
        ("slower", any(check.status is Status.FAILED for check in slower)),
        ("slo_missed", any(check.status is Status.FAILED for check in slo)),
        ("decode_gain_hidden", is_hidden(evidence) and not is_proven(gain)),
    )
    return gate_result(
        "latency",
        checks,
        flags=[flag for flag, holds in found if holds],
        hints=_hints(evidence),
        passed=_passed(gain, slo),
    )


def _void(reason: str, *flags: Flag) -> GateResult:
    return GateResult(
        gate="latency", status=Status.NOT_MEASURED, reason=reason, flags=flags
    )


def _passed(gain: list[Check], slo: list[Check]) -> str:
    met = f"; {len(slo)} SLOs met" if slo else ""
    return f"{gain[0].reason}{met}"


def _hints(evidence: Evidence) -> list[str]:
    speed, hints = evidence.speed, []
    if speed.prefill_share is not None and speed.prefill_share > 0.5:
        hints.append(
            f"prefill takes {speed.prefill_share:.0%} of the request: a faster decode "
            "can show little here, judge it on a workload with longer answers"
        )
    median = speed.median_output_tokens
    if median is not None and median < 16:
        hints.append(
            f"half of the answers have at most {median:.0f} tokens: too short for a "
            "decode gain to show"
        )
    return hints
