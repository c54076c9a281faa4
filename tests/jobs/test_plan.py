"""The plan of a proof: what it needs, what it costs, what it says plainly."""

import json

import msgspec
import pytest
from builders import SPECULATIVE, Plan, a_case, a_proof, a_run, with_
from click.testing import CliRunner

from routeproof.cli.plan import command
from routeproof.jobs.plan import plan
from routeproof.jobs.qualifying.run_options import Options
from routeproof.proof.policy import QualityGateSpec
from routeproof.proof.workload import LoadSpec, SamplingSpec, WorkloadSpec
from routeproof.workloads.cases import write_cases

PROOF = """
baseline: {endpoint: "http://127.0.0.1:1/v1", model: m, revision: r}
candidate: {like: baseline, kv_cache: fp8_e4m3, changes: [kv_cache]}
workload: {cases: cases.jsonl}
quality:
  - {metric: contains, tolerance: 0.05}
  - {metric: contains, tolerance: 0.0, slice: {class: copy_edit}}
"""


def planned(tmp_path, n, *gates, changes=None, **options):
    write_cases([a_case(i, **(changes or {})) for i in range(n)], tmp_path / "c.jsonl")
    proof = a_proof(
        quality=gates or (QualityGateSpec(metric="contains", tolerance=0.05),),
        workload=WorkloadSpec(cases=("c.jsonl",), load=LoadSpec(latency=None)),
    )
    return plan(proof, base=tmp_path, **options)


@pytest.mark.slow
def test_a_workload_below_the_minimum_cannot_decide(tmp_path):
    question = planned(tmp_path, 58).questions[0]
    assert (question.units, question.minimum) == (58, 59)
    assert question.answer == "cannot_decide"
    assert question.finest["0"] == pytest.approx(0.051)


@pytest.mark.slow
def test_at_the_minimum_it_decides_only_between_routes_that_do_not_flip(tmp_path):
    question = planned(tmp_path, 60).questions[0]
    assert question.answer == "only_if_few_flips"
    assert question.decides_up_to_flips == 0.0


@pytest.mark.slow
def test_with_the_planned_number_it_decides(tmp_path):
    first = planned(tmp_path, 60).questions[0]
    enough = max(need.units for need in first.needs)
    assert planned(tmp_path, enough).questions[0].answer == "decides"
    assert 155 <= enough <= 165


def test_a_slice_counts_its_own_cases_and_tolerance_zero_needs_no_number(tmp_path):
    whole, part = planned(
        tmp_path,
        60,
        QualityGateSpec(metric="contains", tolerance=0.05),
        QualityGateSpec(metric="contains", tolerance=0.0, slice={"class": "copy_edit"}),
    ).questions
    assert (whole.units, part.units) == (60, 20)
    assert (part.kind, part.minimum) == ("no_new_failures", None)


def test_cases_of_one_conversation_count_once(tmp_path):
    question = planned(tmp_path, 60, changes={"cluster": "one"}).questions[0]
    assert (question.kind, question.units) == ("graded", 1)
    assert question.answer == "cannot_decide"


def test_trials_do_not_replace_cases(tmp_path):
    write_cases([a_case(i) for i in range(40)], tmp_path / "c.jsonl")
    workload = WorkloadSpec(
        cases=("c.jsonl",), trials=5, sampling=SamplingSpec(temperature=0.7)
    )
    found = plan(a_proof(workload=workload), base=tmp_path)
    assert found.questions[0].units == 40
    assert found.notes


def test_cost_grows_with_what_an_answer_takes(tmp_path):
    short = planned(tmp_path, 60, answer_tokens=100, tokens_per_s=50)
    long = planned(tmp_path, 60, answer_tokens=200, tokens_per_s=50)
    assert short.cost.duration_s == 2.0
    assert long.prices[0].minutes == pytest.approx(2 * short.prices[0].minutes)
    assert short.prices[0].requests == 3 * short.prices[0].cases
    assert short.stages[0].requests > 3 * 60


def test_an_earlier_run_tells_what_requests_cost(tmp_path):
    run = a_run(tmp_path / "run", plan=Plan(cases=tuple(a_case(i) for i in range(30))))
    found = planned(tmp_path, 60, like=run)
    assert found.cost.source == str(run)
    assert found.cost.output_tokens == 40
    assert 0 < found.cost.duration_s < 60


@pytest.mark.slow
def test_the_command_prints_a_plan_and_the_same_as_json(tmp_path):
    (tmp_path / "proof.yaml").write_text(PROOF)
    write_cases([a_case(i) for i in range(90)], tmp_path / "cases.jsonl")
    text = CliRunner().invoke(command, [str(tmp_path / "proof.yaml")])
    assert text.exit_code == 0, text.output
    assert "contains[class=copy_edit]" in text.output
    assert "up to 0% flips" in text.output
    assert "--until-decided" in text.output
    document = CliRunner().invoke(command, [str(tmp_path / "proof.yaml"), "--json"])
    found = json.loads(document.output)
    assert found["cases"] == 90
    assert {row["tolerance"] for row in found["prices"]} == {0.01, 0.02, 0.03, 0.05}


def test_the_power_of_every_question_is_told(tmp_path):
    few, many = (planned(tmp_path, n).questions[0].power for n in (60, 160))
    assert few["0"] == many["0"] == 1.0
    assert few["0.05"] < 0.5 < 0.75 < many["0.05"] < many["0.01"]
    assert planned(tmp_path, 58).questions[0].power["0"] == 0.0


@pytest.mark.slow
def test_floor_and_ceiling_of_stopping_early_are_told(tmp_path):
    found = planned(tmp_path, 200, options=Options(until_decided=True))
    bounds = found.bounds[0]
    assert (bounds.floor, bounds.ceiling) == (50, 200)
    assert 50 < bounds.earliest < 200
    assert found.stops_early
    small = planned(tmp_path, 60).bounds[0]
    assert small.earliest > small.ceiling == 60


def test_a_spot_check_is_planned_where_the_change_is_lossless(tmp_path):
    write_cases([a_case(i) for i in range(400)], tmp_path / "c.jsonl")
    proof = a_proof(workload=WorkloadSpec(cases=("c.jsonl",)))
    speculative = with_(
        proof.candidate,
        kv_cache=proof.baseline.kv_cache,
        speculation=SPECULATIVE,
        changes=("speculation",),
    )
    spot = plan(with_(proof, candidate=speculative), base=tmp_path)
    assert spot.cases < 400
    assert "spot check" in spot.notes[0]
    assert plan(proof, base=tmp_path).cases == 400


def test_a_plan_survives_json(tmp_path):
    found = planned(tmp_path, 60)
    assert msgspec.json.decode(msgspec.json.encode(found), type=type(found)) == found


@pytest.mark.slow
def test_a_trace_is_planned_with_as_many_requests_as_it_has(tmp_path):
    (tmp_path / "proof.yaml").write_text(
        PROOF.replace(
            "{cases: cases.jsonl}",
            "{cases: cases.jsonl, load: {latency: null, sweep: {trace: t.jsonl}}}",
        )
    )
    write_cases([a_case(i) for i in range(12)], tmp_path / "cases.jsonl")
    lines = [
        {"offset_s": i / 10, "input_tokens": 20, "output_tokens": 5} for i in range(9)
    ]
    (tmp_path / "t.jsonl").write_text("\n".join(map(json.dumps, lines)))
    stages = {s.phase: s for s in plan(tmp_path / "proof.yaml").stages}
    assert stages["sweep"].requests >= 3 * 9
