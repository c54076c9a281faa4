"""Programs as answers in a whole run: executed, judged, the sandbox on record."""

import json

import msgspec
import pytest
from builders import Behaviour, Plan, a_case, a_proof, a_run

from routeproof.errors import StoredRunError
from routeproof.gates.result import Status
from routeproof.jobs.gathering.agreed import check_questions
from routeproof.jobs.judge import judge
from routeproof.proof.policy import QualityGateSpec
from routeproof.proof.workload import WorkloadSpec

pytestmark = pytest.mark.slow

GOOD = "```python\ndef add(a, b):\n    return a + b\n```"
BAD = "```python\ndef add(a, b):\n    return a - b\n```"
TASK = {
    "entry_point": "add",
    "tests": "def check(candidate):\n    assert candidate(2, 3) == 5",
    "solution": "def add(a, b):\n    return a + b",
}
N = 60


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Every fifth program of the candidate is wrong, in all of its samples."""
    cases = tuple(a_case(i, scorers=("code",), reference=TASK) for i in range(N))
    proof = a_proof(
        quality=(
            QualityGateSpec(metric="code", tolerance=0.1),
            QualityGateSpec(metric="pass_at_k", tolerance=0.1, k=2),
            QualityGateSpec(metric="pass_hat_k", tolerance=0.1, k=2, required=False),
        ),
        workload=WorkloadSpec(trials=2),
    )
    check_questions(proof, cases)
    path = a_run(
        tmp_path_factory.mktemp("code") / "r",
        baseline=Behaviour(text=lambda number: GOOD),
        candidate=Behaviour(text=lambda number: BAD if number % 5 == 0 else GOOD),
        plan=Plan(cases=cases, stages=(("quality", "c1", 1),), trials=2),
        proof=proof,
    )
    return path, judge(path)


def test_programs_are_run_and_pass_rates_judged(run):
    checks = {check.name: check for check in run[1].gate("correctness").checks}
    for name in ("code", "pass_at_k@2", "pass_hat_k@2"):
        assert checks[name].status is Status.FAILED
        assert checks[name].baseline == 1.0
        assert checks[name].candidate == pytest.approx(0.8)
        assert checks[name].n == N


def test_the_self_test_of_the_sandbox_is_kept_and_said(run):
    path, found = run
    kept = json.loads((path / "sandbox.json").read_text())
    assert kept["tier"] in ("T3", "T2") and not kept["open"]
    assert len(kept["held"]) > 10
    assert any(
        kept["tier"] in note and "stopped" in note for note in found.evidence.notes
    )
    assert msgspec.json.encode(judge(path)) == msgspec.json.encode(found)


def test_a_damaged_self_test_is_named(run):
    path, _ = run
    kept = path / "sandbox.json"
    before = kept.read_bytes()
    kept.write_text("[]")
    with pytest.raises(StoredRunError, match=r"sandbox\.json"):
        judge(path)
    kept.write_bytes(before)
