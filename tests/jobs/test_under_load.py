"""Faults that show under load alone: seen on the answers of the sweep, and named."""

from dataclasses import dataclass

import pytest
from builders import (
    SENTENCE,
    Behaviour,
    Plan,
    a_case,
    a_proof,
    a_run,
    a_speculative_diff,
)

from routeproof.gates.result import Status
from routeproof.jobs.judge import judge
from routeproof.proof.policy import QualityGateSpec

pytestmark = pytest.mark.slow

STAGES = (("quality", "c1", 1), ("sweep", "c2", 1), ("sweep", "c8", 1))


@dataclass(frozen=True)
class UnderLoad(Behaviour):
    """Answers some cases with another one's text, in the sweep alone."""

    leaks: object = lambda number: False

    def answer(self, number, phase):
        if phase == "sweep" and self.leaks(number):
            text = SENTENCE.format(number + 5_000)
            return {"outcome": "completed", "text": text, "finish_reason": "stop"}
        return super().answer(number, phase)


def judged(path, leaks, *, quality=None, route_diff=None):
    asked = quality or (QualityGateSpec(metric="contains", tolerance=0.03),)
    run = a_run(
        path,
        candidate=UnderLoad(leaks=leaks),
        plan=Plan(cases=tuple(a_case(i) for i in range(150)), stages=STAGES),
        proof=a_proof(quality=asked),
        route_diff=route_diff,
    )
    return judge(run).gate("correctness")


def failed(gate):
    return {check.name for check in gate.checks if check.status is Status.FAILED}


def test_text_of_other_requests_under_load_is_seen_at_its_level(tmp_path):
    gate = judged(tmp_path / "r", lambda number: number % 10 == 0)
    assert "headline[level=c8,phase=sweep]" in failed(gate)
    assert next(c for c in gate.checks if c.name == "contains").status is Status.PASSED
    worst = judge(tmp_path / "r").worst
    assert "phase=sweep" in worst.question and len(worst.examples) == 2
    assert {flip.phase for flip in worst.examples} == {"sweep"}
    assert all("50" in flip.candidate_text for flip in worst.examples)


def test_one_class_that_breaks_under_load_is_named(tmp_path):
    """Ten of the fifty cases of one class: 7 % of all answers at a level."""
    gate = judged(tmp_path / "r", lambda number: number % 15 == 1)
    assert "headline[class=arithmetic,phase=sweep]" in failed(gate)
    assert "headline[class=copy_edit,phase=sweep]" not in failed(gate)


def test_a_sound_route_under_load_is_not_accused(tmp_path):
    assert failed(judged(tmp_path / "r", lambda number: False)) == set()


@pytest.mark.parametrize(
    "where", [{"phase": "sweep", "level": "c8"}, {"concurrency": "8"}]
)
def test_a_load_can_be_asked_for_by_the_proof(tmp_path, where):
    asked = (QualityGateSpec(metric="contains", tolerance=0.05, slice=where),)
    sound = judged(tmp_path / "a", lambda number: False, quality=asked)
    assert sound.checks[0].required and sound.checks[0].status is Status.PASSED
    assert sound.checks[0].n == 150
    broken = judged(tmp_path / "b", lambda number: number % 5 == 0, quality=asked)
    assert broken.checks[0].status is Status.FAILED


def test_greedy_texts_of_a_lossless_change_are_held_against_each_level(tmp_path):
    gate = judged(
        tmp_path / "r",
        lambda number: number % 10 == 0,
        route_diff=a_speculative_diff(),
    )
    status = {c.name: c.status for c in gate.checks if c.name.startswith("greedy")}
    assert status == {
        "greedy_equality": Status.PASSED,
        "greedy_equality[level=c2,phase=sweep]": Status.INCONCLUSIVE,
        "greedy_equality[level=c8,phase=sweep]": Status.INCONCLUSIVE,
    }
