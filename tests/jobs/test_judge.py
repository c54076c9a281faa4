"""A run folder to its judgement: the whole chain on real files.

The known-bad runs are the product's promise: each must end in AVOID or WAIT, for the
reason that is true of it.
"""

import shutil
from dataclasses import replace

import numpy as np
import pytest
from builders import (
    SAME,
    Behaviour,
    Plan,
    a_case,
    a_proof,
    a_route_diff,
    a_run,
    a_speculative_diff,
    healthy,
    with_,
)

from routeproof.errors import StoredRunError
from routeproof.gates.result import Status
from routeproof.jobs.judge import judge
from routeproof.proof.policy import (
    GainSpec,
    PerformanceSpec,
    PolicySpec,
    QualityGateSpec,
)
from routeproof.proof.workload import WorkloadSpec
from routeproof.records.columns import Column
from routeproof.records.manifest import ClientHealth
from routeproof.records.store import RunFolder
from routeproof.reports.judgement import decode
from routeproof.scorers.score import Score
from routeproof.scorers.scored import read_scores, score_records, write_scores
from routeproof.verdict import Decision
from routeproof.workloads.cases import read_cases

FASTER = Behaviour(speed=1.5)

pytestmark = pytest.mark.slow


def judged(path, **run):
    return judge(a_run(path, **run))


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    """A run of a faster candidate that answers the same; do not write to it."""
    path = a_run(tmp_path_factory.mktemp("good") / "run", candidate=FASTER)
    return path, judge(path)


def test_a_faster_candidate_that_answers_the_same_is_a_pilot_without_telemetry(good):
    _, found = good
    assert found.verdict.decision is Decision.PILOT
    assert found.gate("correctness").status is Status.PASSED
    assert "gain_proven" in found.gate("latency").flags
    assert found.gate("memory_stability").status is Status.NOT_MEASURED


def test_judging_again_gives_the_same_bytes(good, tmp_path):
    path, _ = good
    first = (path / "judgement.json").read_bytes()
    copy = tmp_path / "elsewhere"
    shutil.copytree(path, copy)
    (copy / "judgement.json").unlink()
    (copy / "scores.parquet").unlink()
    judge(copy)
    assert (copy / "judgement.json").read_bytes() == first


def test_what_is_written_is_read_back(good):
    path, _ = good
    body = (path / "judgement.json").read_bytes()
    again = decode(body)
    assert again.verdict.decision is Decision.PILOT
    assert again.provenance.requests == 960
    assert again.provenance.cases == 160


def test_the_judgement_holds_what_reports_show(good):
    _, found = good
    evidence = found.evidence
    speed = evidence.speed
    assert {row.arm for row in speed.latencies} == {"baseline", "candidate", "control"}
    assert all(len(row.ecdf) <= 120 for row in speed.latencies)
    assert {row.arm for row in speed.loads} == {"baseline", "candidate", "control"}
    assert sum(sum(b.outcomes.values()) for b in evidence.stability.timeline) == 960
    assert {row.arm for row in evidence.quality.lengths} >= {"baseline", "candidate"}
    assert {row.pair for row in evidence.quality.equality} == {"candidate", "control"}
    assert found.atrt.decision == "pilot"
    assert found.atrt.route["kv_cache"] == "fp8_e4m3"
    assert found.atrt.baseline["kv_cache"] == "bf16"
    assert found.atrt.latency["gain_ratio"] == pytest.approx(1.5, rel=0.1)


def test_the_same_route_twice_fails_no_gate(tmp_path):
    diff = a_route_diff(candidate=a_route_diff().baseline, changes=())
    found = judged(tmp_path / "r", route_diff=with_(diff, change_class="lossless"))
    assert all(gate.status is not Status.FAILED for gate in found.gates)
    assert found.evidence.quality.flips_total == 0
    assert found.verdict.decision is Decision.PILOT


def test_cases_that_are_sampled_need_not_be_equal(tmp_path):
    hot = {"temperature": 0.8}
    cases = tuple(a_case(i, parameters=hot if i < 60 else {}) for i in range(160))
    other = Behaviour(speed=1.5, text=lambda n: f"It is {n}." if n < 60 else f"= {n}.")
    found = judged(tmp_path / "r", candidate=other, plan=Plan(cases=cases))
    row = next(r for r in found.evidence.quality.equality if r.pair == "candidate")
    assert (row.pairs, row.equal) == (100, 0)


def test_a_loss_of_quality_is_avoided_with_pairs_to_read(tmp_path):
    found = judged(
        tmp_path / "r",
        candidate=Behaviour(speed=3.0, wrong=frozenset(range(0, 160, 8))),
    )
    assert found.verdict.decision is Decision.AVOID
    assert found.verdict.stop_use == ("correctness_drift",)
    assert found.evidence.quality.flips_total == 20
    flip = found.worst.examples[0]
    assert flip.direction == "loss"
    assert flip.baseline_text != flip.candidate_text
    assert flip.candidate_text[flip.first_divergence :].startswith("unknown")
    assert flip.baseline_trace.startswith("contains: ")
    assert flip.candidate_trace.startswith("contains: ")
    assert flip.baseline_trace != flip.candidate_trace


def test_empty_answers_are_avoided(tmp_path):
    found = judged(tmp_path / "r", candidate=Behaviour(outcome=lambda n: "empty"))
    assert found.verdict.decision is Decision.AVOID
    failed = [c.name for c in found.gate("correctness").checks if c.status == "failed"]
    assert "not_empty" in failed
    assert "contains" in failed


def test_a_dead_engine_that_answers_200_is_avoided(tmp_path):
    dead = Behaviour(outcome=lambda n: "stream_error")
    found = judged(tmp_path / "r", candidate=dead)
    assert found.verdict.decision is Decision.AVOID
    assert "no_errors" in found.verdict.reasons[0]


def test_a_dead_engine_under_load_alone_is_avoided(tmp_path):
    dead = Behaviour(outcome=lambda n: "stream_error", failing_phases=("latency",))
    found = judged(tmp_path / "r", candidate=dead)
    assert found.verdict.decision is Decision.AVOID
    assert "no_errors[level=c1,phase=latency]" in found.verdict.reasons[0]


def test_truncated_answers_are_avoided(tmp_path):
    cut = Behaviour(outcome=lambda n: "truncated", text=lambda n: "The answer to")
    found = judged(tmp_path / "r", candidate=cut)
    assert found.verdict.decision is Decision.AVOID
    failed = [c.name for c in found.gate("correctness").checks if c.status == "failed"]
    assert "not_truncated" in failed


def test_loops_with_splendid_acceptance_are_avoided_and_their_speed_is_void(tmp_path):
    looping = Behaviour(
        speed=4.0,
        text=lambda n: f"The number is {n}. " + "and so on " * 60,
        changes={
            "drafted": 40,
            "accepted": 39,
            "spec_passes": 8,
            "plain_passes": 0,
        },
    )
    found = judged(tmp_path / "r", candidate=looping, route_diff=a_speculative_diff())
    assert found.verdict.decision is Decision.AVOID
    assert "guard_tripped" in found.gate("correctness").flags
    assert found.gate("latency").status is Status.NOT_MEASURED
    assert found.gate("acceptance").status is Status.NOT_MEASURED


def test_a_slower_candidate_is_avoided(tmp_path):
    found = judged(tmp_path / "r", candidate=Behaviour(speed=0.7))
    assert found.verdict.decision is Decision.AVOID
    assert "slower" in found.gate("latency").flags


def test_a_gain_that_is_not_there_waits(tmp_path):
    proof = a_proof(performance=PerformanceSpec(gain=GainSpec(at_least=1.3)))
    found = judged(tmp_path / "r", candidate=Behaviour(speed=1.1), proof=proof)
    assert found.verdict.decision is Decision.WAIT
    assert "not there" in found.headline


def test_fewer_pairs_than_the_tolerance_needs_wait_and_say_how_many(tmp_path):
    few = Plan(cases=tuple(a_case(i) for i in range(40)))
    found = judged(tmp_path / "r", candidate=FASTER, plan=few)
    assert found.verdict.decision is Decision.WAIT
    need = {each.question: each.need for each in found.more_evidence}
    assert need["contains"] == 99


def test_a_required_class_that_is_too_small_waits_and_is_named(tmp_path):
    proof = a_proof(workload=WorkloadSpec(classes_required={"arithmetic": 80}))
    found = judged(tmp_path / "r", candidate=FASTER, proof=proof)
    assert found.verdict.decision is Decision.WAIT
    assert "arithmetic" in found.headline
    assert "80 are required" in found.headline


def test_a_candidate_that_lost_requests_is_not_certified_on_the_rest(tmp_path):
    lost = frozenset(("candidate", "quality", n) for n in range(0, 160, 16))
    found = judged(tmp_path / "r", candidate=FASTER, plan=Plan(drop=lost))
    assert found.verdict.decision is Decision.WAIT
    assert "10 missing pairs" in found.headline


def test_an_undeclared_difference_gets_no_verdict(tmp_path):
    change = a_route_diff().changes[0]
    diff = a_route_diff(changes=(with_(change, intended=False),))
    found = judged(tmp_path / "r", candidate=FASTER, route_diff=diff)
    assert found.verdict.decision is Decision.NONE


def test_a_swapped_template_shows_in_the_prompt_tokens(tmp_path):
    swapped = Behaviour(speed=1.5, changes={"prompt_tokens": 31})
    found = judged(tmp_path / "r", candidate=swapped)
    assert found.verdict.decision is Decision.NONE
    assert "prompt tokens of the same case differ" in found.headline


def test_a_client_that_could_not_keep_up_gets_no_verdict(tmp_path):
    slow = ClientHealth(valid=False, reasons=("the event loop lagged by 80 ms",))
    found = judged(tmp_path / "r", candidate=FASTER, health=slow)
    assert found.verdict.decision is Decision.NONE
    assert "80 ms" in found.headline


def test_without_a_control_the_verdict_is_capped(tmp_path):
    plan = Plan(arms=("baseline", "candidate"))
    found = judged(tmp_path / "r", candidate=FASTER, plan=plan)
    assert found.verdict.decision is Decision.PILOT
    assert found.gate("parity").status is Status.INCONCLUSIVE


def test_trials_of_a_case_are_one_unit(tmp_path):
    cases = tuple(a_case(i) for i in range(80))
    plan = Plan(cases=cases, trials=3, stages=(("quality", "c1", 1),))
    found = judged(tmp_path / "r", candidate=SAME, plan=plan)
    row = next(r for r in found.evidence.quality.rows if r.question == "contains")
    assert row.units == 80


def test_a_proof_without_quality_questions_is_asked_for_its_headline(tmp_path):
    found = judged(tmp_path / "r", candidate=FASTER, proof=a_proof(quality=()))
    row = found.evidence.quality.rows[0]
    assert (row.question, row.origin) == ("headline", "default")
    assert found.gate("correctness").status is Status.PASSED


def test_pass_at_k_is_one_value_for_the_samples_of_a_case(tmp_path):
    cases = tuple(a_case(i, scorers=("code",)) for i in range(6))
    plan = Plan(cases=cases, trials=4, stages=(("quality", "c1", 1),))
    asked = (QualityGateSpec(metric="pass_at_k", k=2, tolerance=0.2),)
    path = a_run(tmp_path / "r", plan=plan, proof=a_proof(quality=asked))
    write_scores(path / "scores.parquet", half_right(path))
    row = judge(path).evidence.quality.rows[0]
    assert row.question == "pass_at_k@2"
    assert row.units == 6
    assert row.means.baseline == pytest.approx(1 - 1 / 6)


def half_right(path):
    """Scores of a run in which every second trial passes."""
    cases = read_cases(path / "cases.jsonl")
    parts = list(RunFolder.open(path).parts())
    scores = score_records(cases, parts, batch={"code": nothing})
    passed = (scores.trial % 2).astype(float)
    return replace(scores, value=Column(passed, np.ones(scores.n, dtype=bool)))


def nothing(asked):
    return [Score(class_="wrong", value=0.0) for _ in asked]


def test_more_samples_than_were_taken_are_said_and_leave_the_question_open(tmp_path):
    asked = (QualityGateSpec(metric="pass_at_k", k=9, tolerance=0.2),)
    path = a_run(
        tmp_path / "r",
        plan=Plan(
            cases=(a_case(0, scorers=("code",)),), stages=(("quality", "c1", 1),)
        ),
        proof=a_proof(quality=asked),
    )
    write_scores(path / "scores.parquet", half_right(path))
    found = judge(path)
    assert any("pass@9 cannot be estimated" in n for n in found.evidence.notes)
    assert found.gate("correctness").status is Status.INCONCLUSIVE


def test_a_metric_no_case_is_scored_by_is_open_not_passed(tmp_path):
    asked = (QualityGateSpec(metric="pass_at_k", tolerance=0.05),)
    found = judged(tmp_path / "r", candidate=FASTER, proof=a_proof(quality=asked))
    assert found.gate("correctness").status is Status.INCONCLUSIVE


def test_tolerance_zero_forbids_new_failures(tmp_path):
    asked = (QualityGateSpec(metric="contains", tolerance=0.0),)
    one_lost = Behaviour(speed=1.5, wrong=frozenset({7}))
    proof = a_proof(quality=asked)
    assert (
        judged(tmp_path / "a", candidate=FASTER, proof=proof).gate("correctness").status
        is Status.PASSED
    )
    assert (
        judged(tmp_path / "b", candidate=one_lost, proof=proof)
        .gate("correctness")
        .status
        is Status.FAILED
    )


def test_a_harmed_class_nobody_asked_for_fails_the_gate(tmp_path):
    class_of = {i: a_case(i).class_ for i in range(160)}
    hurt = [i for i in range(160) if class_of[i] == "copy_edit"][:12]
    asked = (QualityGateSpec(metric="contains", tolerance=0.2),)
    found = judged(
        tmp_path / "r",
        candidate=Behaviour(speed=1.5, wrong=frozenset(hurt)),
        proof=a_proof(quality=asked),
    )
    assert found.gate("correctness").status is Status.FAILED
    assert "copy_edit" in found.headline


def test_a_run_that_was_cut_short_is_judged_on_what_is_there(tmp_path):
    path = a_run(tmp_path / "r", candidate=FASTER)
    folder = RunFolder.open(path)
    manifest = folder.read_manifest()
    folder.write_manifest(with_(manifest, finished=False))
    assert "the run was not finished" in judge(path).evidence.notes


def test_requests_that_came_after_the_scores_are_scored_too(tmp_path):
    path = a_run(
        tmp_path / "r",
        candidate=FASTER,
        plan=Plan(stages=(("quality", "c1", 1),)),
    )
    judge(path)
    before = read_scores(path / "scores.parquet").n
    later = a_run(tmp_path / "later", plan=Plan(stages=(("latency", "c1", 1),)))
    part = next((later / "records").iterdir())
    shutil.copy(part, path / "records" / "part-001-000001.parquet")
    judge(path)
    assert read_scores(path / "scores.parquet").n == 2 * before


def test_a_folder_that_is_no_run_is_said_plainly(tmp_path):
    with pytest.raises(StoredRunError, match="not a run folder"):
        judge(tmp_path)


def test_a_looser_alpha_is_used_as_agreed(tmp_path):
    few = Plan(cases=tuple(a_case(i) for i in range(80)))
    strict = judged(tmp_path / "a", candidate=FASTER, plan=few)
    loose = judged(
        tmp_path / "b",
        candidate=FASTER,
        plan=few,
        proof=a_proof(policy=PolicySpec(alpha=0.1)),
    )
    assert strict.gate("correctness").status is Status.INCONCLUSIVE
    assert loose.gate("correctness").status is Status.PASSED


def test_health_is_shown_check_by_check(good):
    _, found = good
    assert [row.name for row in found.evidence.validity] == [
        check.name for check in healthy().checks
    ]
