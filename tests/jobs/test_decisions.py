"""From a run folder to the decision: what is to be stopped, what waits, what is told.

Each run has one thing wrong; the verdict must say that thing.
"""

import numpy as np
import pytest
from builders import (
    SPECULATIVE,
    Behaviour,
    Plan,
    a_case,
    a_proof,
    a_route_diff,
    a_run,
    a_speculative_diff,
    an_inventory,
    with_,
)

from routeproof.gates.result import Status
from routeproof.jobs.judge import judge
from routeproof.proof.policy import (
    AcceptanceSpec,
    GainSpec,
    MemorySpec,
    PerformanceSpec,
)
from routeproof.proof.route import EngineSpec
from routeproof.records.columns import Column
from routeproof.records.store import RunFolder
from routeproof.reports.terminal import render
from routeproof.verdict import Decision

pytestmark = pytest.mark.slow

FASTER = Behaviour(speed=1.5)
DRAFTING = {"drafted": 40, "spec_passes": 10, "plain_passes": 0, "output_tokens": 40}


def telemetry(path, **series):
    """Samples ``name={arm: values}``, one a second."""
    rows = [
        (float(at), arm, name, float(value))
        for name, arms in series.items()
        for arm, values in arms.items()
        for at, value in enumerate(values)
    ]
    at_s, arms, names, values = zip(*rows, strict=True)
    known = np.ones(len(rows), dtype=np.bool_)
    RunFolder.open(path).write_telemetry(
        {
            "at_s": Column(np.array(at_s), known),
            "arm": np.array(arms, dtype=object),
            "name": np.array(names, dtype=object),
            "value": Column(np.array(values), known),
        }
    )
    return path


def test_a_route_with_everything_measured_is_adopted(tmp_path):
    path = a_run(tmp_path / "r", candidate=FASTER)
    level = {"baseline": [1e9] * 8, "candidate": [1e9] * 8}
    telemetry(path, device_memory_bytes=level)
    found = judge(path)
    assert found.verdict.decision is Decision.ADOPT, found.verdict.reasons
    assert found.verdict.stop_use == ()
    assert "retest when the model" in found.verdict.retest[0]


def test_low_acceptance_without_a_gain_is_a_reason_to_stop(tmp_path):
    asked = PerformanceSpec(
        gain=GainSpec(at_least=1.3), acceptance=AcceptanceSpec(acceptance_rate_min=0.5)
    )
    low = Behaviour(speed=1.0, changes={**DRAFTING, "accepted": 4})
    proof = a_proof(performance=asked)
    candidate = with_(
        proof.candidate,
        kv_cache="bf16",
        speculation=SPECULATIVE,
        changes=("speculation",),
    )
    found = judge(
        a_run(
            tmp_path / "r",
            candidate=low,
            proof=with_(proof, candidate=candidate),
            route_diff=a_speculative_diff(),
        )
    )
    assert found.verdict.decision is Decision.AVOID
    assert "low_acceptance" in found.verdict.stop_use
    assert found.gate("acceptance").status is Status.FAILED
    assert any("draft" in line for line in found.verdict.retest)


def test_memory_over_its_limit_is_a_reason_to_stop(tmp_path):
    proof = a_proof(memory=MemorySpec(peak_bytes_ratio_max=1.05))
    path = a_run(tmp_path / "r", candidate=FASTER, proof=proof)
    over = {"baseline": [1e9] * 8, "candidate": [1.3e9] * 8}
    found = judge(telemetry(path, device_memory_bytes=over))
    assert found.verdict.decision is Decision.AVOID
    assert found.verdict.stop_use == ("memory_pressure",)


def test_a_restart_is_a_reason_to_stop(tmp_path):
    path = a_run(tmp_path / "r", candidate=FASTER)
    level = {"baseline": [1e9] * 8, "candidate": [1e9] * 8}
    starts = {"baseline": [5.0] * 8, "candidate": [5.0] * 4 + [90.0] * 4}
    found = judge(telemetry(path, device_memory_bytes=level, process_start_s=starts))
    assert found.verdict.decision is Decision.AVOID
    assert found.verdict.stop_use == ("unstable_runtime",)


def test_preemptions_of_the_candidate_alone_are_a_reason_to_stop(tmp_path):
    path = a_run(tmp_path / "r", candidate=FASTER)
    level = {"baseline": [1e9] * 8, "candidate": [1e9] * 8}
    counts = {"baseline": [0.0] * 8, "candidate": [20.0 * i for i in range(8)]}
    found = judge(telemetry(path, device_memory_bytes=level, preemptions_total=counts))
    checks = {c.name: c for c in found.gate("memory_stability").checks}
    assert checks["preemptions"].status is Status.FAILED
    assert found.verdict.stop_use == ("memory_pressure",)


@pytest.mark.parametrize(
    ("maturity", "decision"),
    [
        ("open_pr", Decision.WAIT),
        ("branch", Decision.WAIT),
        ("private", Decision.WAIT),
        ("merged", Decision.PILOT),
    ],
)
def test_an_immature_runtime_waits_and_says_when_to_look_again(
    tmp_path, maturity, decision
):
    engine = EngineSpec(name="vllm", version="0.32.0", maturity=maturity)
    proof = a_proof()
    proof = with_(proof, candidate=with_(proof.candidate, engine=engine))
    found = judge(a_run(tmp_path / "r", candidate=FASTER, proof=proof))
    assert found.verdict.decision is decision
    if decision is Decision.WAIT:
        assert "merged" in " ".join(found.verdict.retest)


def test_short_answers_hide_a_decode_gain_and_make_a_pilot(tmp_path):
    proof = a_proof(performance=PerformanceSpec(gain=GainSpec(at_least=1.3)))
    short = {"tokens": 4}
    path = a_run(
        tmp_path / "r",
        baseline=Behaviour(**short),
        candidate=Behaviour(speed=1.3, **short),
        proof=proof,
    )
    found = judge(path)
    assert "decode_gain_hidden" in found.gate("latency").flags
    assert found.verdict.decision is Decision.PILOT


def test_faster_only_because_shorter_is_told_and_not_adopted(tmp_path):
    path = a_run(tmp_path / "r", candidate=Behaviour(speed=0.95, tokens=24))
    found = judge(path)
    assert found.verdict.decision is not Decision.ADOPT
    checks = [c for g in found.gates for c in g.checks]
    named = {c.name for c in checks if c.status is Status.FAILED}
    assert named & {"not_because_shorter", "guard[output_length]"}


def test_an_open_verdict_says_what_would_change_it_with_counts(tmp_path):
    few = Plan(cases=tuple(a_case(i) for i in range(80)))
    found = judge(a_run(tmp_path / "r", candidate=FASTER, plan=few))
    assert found.verdict.decision is Decision.WAIT
    assert any("more needed" in line for line in found.verdict.would_change)
    assert found.more_evidence[0].need > found.more_evidence[0].have == 80
    row = next(r for r in found.evidence.quality.rows if r.question == "contains")
    assert row.power == 0.0


def test_the_worst_class_comes_with_two_pairs_and_a_hint(tmp_path):
    hurt = frozenset(i for i in range(160) if a_case(i).class_ == "copy_edit")
    found = judge(a_run(tmp_path / "r", candidate=Behaviour(speed=1.5, wrong=hurt)))
    assert "copy_edit" in found.worst.question
    assert len(found.worst.examples) == 2
    assert all(flip.class_ == "copy_edit" for flip in found.worst.examples)
    hints = [hint for gate in found.gates for hint in gate.hints]
    assert any("copy_edit" in hint and "template" in hint for hint in hints)
    screen = render(found)
    for flip in found.worst.examples:
        assert f"{flip.case_id}: '" in screen


def test_kv_capacity_that_only_the_inventory_states_is_judged(tmp_path):
    def stated(tokens, **more):
        return an_inventory(**{"observed.kv_capacity_tokens": str(tokens), **more})

    diff = a_route_diff(
        baseline=stated(10_000), candidate=stated(6_000, kv_cache="fp8_e4m3")
    )
    proof = a_proof(memory=MemorySpec(kv_capacity_ratio_min=0.8))
    path = a_run(tmp_path / "r", candidate=FASTER, proof=proof, route_diff=diff)
    found = judge(path)
    checks = {c.name: c for c in found.gate("memory_stability").checks}
    assert checks["kv_capacity"].status is Status.FAILED
    assert found.verdict.stop_use == ("memory_pressure",)


@pytest.mark.parametrize("stages", ["quality alone", "latency too"])
def test_a_cache_filled_by_the_control_voids_times_and_breaks_parity_only_where_timed(
    tmp_path, stages
):
    warm, cold = {"cached_tokens": 16}, {"cached_tokens": 2}
    both = (("quality", "c1", 1), ("latency", "c1", 1))
    path = a_run(
        tmp_path / "r",
        baseline=Behaviour(changes=warm),
        candidate=Behaviour(speed=1.5, changes=cold),
        plan=Plan(stages=both[:1] if stages == "quality alone" else both),
    )
    found = judge(path)
    checks = {c.name: c.status for c in found.gate("parity").checks}
    if stages == "quality alone":
        assert checks["same_cache"] is Status.INCONCLUSIVE
        assert found.evidence.speed.ratios == ()
        assert "gain_proven" not in found.gate("latency").flags
        assert found.gate("correctness").status is Status.PASSED
    else:
        assert checks["same_cache"] is Status.FAILED
