"""Bad references, schemas and answers in a whole run: named, never a silent 0 or 1."""

import json
from math import exp

import pytest
from builders import Behaviour, Plan, a_case, a_proof, a_run

from routeproof.errors import ConfigError
from routeproof.gates.result import Status
from routeproof.jobs.gathering.agreed import check_questions
from routeproof.jobs.judge import judge
from routeproof.proof.policy import QualityGateSpec
from routeproof.scorers.scored import read_scores

pytestmark = pytest.mark.slow

N = 100


def judged(path, scorer, *, reference=None, options=None, text="The answer is 7."):
    cases = tuple(
        a_case(i, scorers=(scorer,), reference=reference, options=options or {})
        for i in range(N)
    )
    same = Behaviour(text=lambda number: text)
    run = a_run(
        path,
        baseline=same,
        candidate=same,
        plan=Plan(cases=cases, stages=(("quality", "c1", 1),)),
        proof=a_proof(quality=(QualityGateSpec(metric=scorer, tolerance=0.05),)),
    )
    found = judge(run)
    scores = read_scores(run / "scores.parquet")
    check = found.gate("correctness").checks[0]
    return check, set(scores.class_.tolist()), set(scores.trace.tolist())


@pytest.mark.parametrize(
    "scorer, given, words",
    [
        ("numeric", {"reference": "no number"}, "reference"),
        ("regex", {"reference": "(unclosed"}, "pattern"),
        ("json_schema", {"options": {"schema": {"type": "no such type"}}}, "schema"),
        ("ndcg", {"reference": {}}, "relevance judgements"),
        ("code", {"reference": {"tests": "def check(:"}}, ""),
        ("grounded", {"reference": None}, "source"),
        ("reference_likelihood", {"reference": "x"}, "log-probabilities"),
    ],
)
def test_what_cannot_be_scored_is_unscored_and_its_question_open(
    tmp_path, scorer, given, words
):
    check, classes, traces = judged(tmp_path / "r", scorer, **given)
    assert classes == {"unscored"}
    assert all(words in trace for trace in traces)
    assert check.status is Status.INCONCLUSIVE
    assert "no pair could be scored, 100 were answered by neither arm" in check.reason


@pytest.mark.parametrize(
    "text", ["half a pair \ud800 and 7", "\x00 7", "7 " + "x" * 300_000]
)
def test_odd_answers_are_stored_and_scored(tmp_path, text):
    check, classes, _ = judged(tmp_path / "r", "contains", reference="7", text=text)
    assert classes == {"correct"} and check.status is Status.PASSED


def test_a_class_without_cases_and_pass_rates_without_code_are_refused():
    empty = QualityGateSpec(metric="contains", tolerance=0.1, slice={"class": "copy"})
    with pytest.raises(ConfigError, match="no case has the class `copy`") as caught:
        check_questions(a_proof(quality=(empty,)), [a_case(0)])
    assert caught.value.key == "quality[0].slice"
    rate = QualityGateSpec(metric="pass_hat_k", tolerance=0.1, k=3)
    with pytest.raises(ConfigError, match="scored by `pass_hat_k`"):
        check_questions(a_proof(quality=(rate,)), [a_case(0)])


def test_likelihood_of_references_reaches_the_page_beside_a_task_metric(tmp_path):
    """Prompts echoed with their log probabilities: read only where a case asks."""

    def told(logprob):
        rows = [["Say", None, []], [" seven", logprob, []]]
        return Behaviour(
            text=lambda number: "7", changes={"logprobs": json.dumps(rows)}
        )

    cases = tuple(
        a_case(
            i,
            scorers=("contains", "reference_likelihood"),
            reference="7",
            options={"reference_likelihood": {"reference": " seven"}},
        )
        for i in range(N)
    )
    run = a_run(
        tmp_path / "r",
        baseline=told(-0.1),
        candidate=told(-0.7),
        plan=Plan(cases=cases, stages=(("quality", "c1", 1),)),
        proof=a_proof(quality=(QualityGateSpec(metric="contains", tolerance=0.05),)),
    )
    rows = {row.question: row for row in judge(run).evidence.quality.rows}
    seen = rows["reference_likelihood"]
    assert (seen.origin, seen.is_required) == ("screening", False)
    assert seen.means.baseline == pytest.approx(exp(-0.1))
    assert seen.means.candidate == pytest.approx(exp(-0.7))
