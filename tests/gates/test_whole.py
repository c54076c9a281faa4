"""All seven gates over one evidence, and what each single fault does to the verdict."""

import pytest
from builders import a_speculative_diff, with_
from gate_cases import a_quality_row, a_ratio, changed, evidence, speed

from routeproof.gates.evidence import Acceptance, Quality
from routeproof.gates.facts import ValidityRow
from routeproof.gates.result import Status
from routeproof.gates.table import GATES, judge
from routeproof.proof.policy import RollbackSpec
from routeproof.verdict import Decision, decide


def decided(found):
    return decide(judge(found)).decision


def test_a_candidate_with_everything_proven_is_adopted():
    results = judge(evidence())
    assert [result.gate for result in results] == list(GATES)
    assert decide(results).decision is Decision.ADOPT


def test_nothing_measured_is_never_a_pass():
    empty = with_(
        evidence(),
        routes=None,
        workload_matches=None,
        is_interleaved=None,
        has_control=False,
        validity=(),
        quality=Quality(),
        speed=speed(latencies=(), ratios=(), loads=()),
    )
    statuses = {result.gate: result.status for result in judge(empty)}
    assert statuses["inventory"] is Status.NOT_MEASURED
    assert statuses["parity"] is Status.NOT_MEASURED
    assert statuses["latency"] is Status.NOT_MEASURED
    assert statuses["correctness"] is Status.NOT_MEASURED
    assert decided(empty) is Decision.WAIT


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"parity": ("`weights` differs",)}, Decision.NONE),
        ({"workload_matches": False}, Decision.NONE),
        ({"has_control": False}, Decision.PILOT),
        ({"is_interleaved": False}, Decision.PILOT),
        ({"maturity": "merged"}, Decision.PILOT),
        ({"maturity": "open_pr"}, Decision.WAIT),
        ({"launch_declared": False}, Decision.ADOPT),
    ],
)
def test_one_fault_of_the_comparison(changes, expected):
    assert decided(with_(evidence(), **changes)) is expected


def test_a_saturated_client_gets_no_verdict():
    slow = ValidityRow(
        name="loop_lag", value=1.0, limit=0.01, unit="s", is_ok=False, reason="lag"
    )
    assert decided(with_(evidence(), validity=(slow,))) is Decision.NONE


def test_harm_beats_any_speed():
    fast = with_(evidence(), speed=speed(a_ratio("output_token_throughput", 9.0)))
    rows = (a_quality_row(decision="harmed"),)
    assert decided(with_(fast, quality=Quality(rows=rows))) is Decision.AVOID


def test_a_route_that_was_never_taken_back_is_a_pilot():
    undrilled = changed(evidence(), "agreed", rollback=RollbackSpec())
    assert decided(undrilled) is Decision.PILOT


def test_loops_void_the_speed_and_the_acceptance():
    guard = {
        "check": "degenerate",
        "baseline": 0.0,
        "candidate": 0.9,
        "pairs": 100,
        "p_value": 1e-9,
        "tripped": True,
        "reason": "90% of the candidate's answers are degenerate",
    }
    looping = with_(
        evidence(),
        routes=a_speculative_diff(),
        quality=Quality(rows=(a_quality_row(),), guard=(guard,)),
        acceptance=Acceptance(overall={"tokens_per_pass": 6.0}, source="per_request"),
    )
    results = {result.gate: result for result in judge(looping)}
    assert results["latency"].status is Status.NOT_MEASURED
    assert results["acceptance"].status is Status.NOT_MEASURED
    assert "guard_tripped" in results["correctness"].flags
    assert decided(looping) is Decision.AVOID
