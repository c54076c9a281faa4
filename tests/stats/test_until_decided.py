"""Stopping early: unchanged error rates, fewer requests where the case is clear."""

import numpy as np
import pytest

from routeproof.stats.planner import approximate_pairs
from routeproof.stats.until_decided import (
    Question,
    StoppingRule,
    all_settled,
    fixed_graded,
    simulate,
    stop_paths,
)

RULE = StoppingRule(tolerance=0.02, alpha=0.05, floor=50, ceiling=800)


def limit(runs):
    return 0.05 + 3 * (0.05 * 0.95 / runs) ** 0.5


@pytest.mark.slow
@pytest.mark.parametrize("gains", [0.0, 0.01, 0.05])
def test_a_route_at_the_tolerance_is_certified_at_most_at_alpha(gains):
    stopped = simulate(RULE, losses=0.02 + gains, gains=gains, paths=1000, seed=1)
    assert stopped.certified.mean() <= limit(1000)


@pytest.mark.slow
@pytest.mark.parametrize("flips", [0.02, 0.1])
def test_an_equal_route_is_called_harmed_at_most_at_alpha(flips):
    half = flips / 2
    stopped = simulate(RULE, losses=half, gains=half, paths=1000, seed=2)
    assert stopped.harmed.mean() <= limit(1000)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("losses", "gains", "decision"),
    [(0.0, 0.0, "certified"), (0.004, 0.004, "certified"), (0.06, 0.01, "harmed")],
)
def test_clear_cases_need_at_most_half_of_the_fixed_plan(losses, gains, decision):
    planned = approximate_pairs(flips=0.05, tolerance=0.02, alpha=0.05)
    stopped = simulate(RULE, losses=losses, gains=gains, paths=400, seed=3)
    assert stopped.used.mean() <= planned / 2
    assert getattr(stopped, decision).mean() > 0.98


def test_case_by_case_is_what_the_simulation_plays():
    rng = np.random.default_rng(4)
    rule = StoppingRule(tolerance=0.05, alpha=0.05, floor=30, ceiling=120)
    x = rng.choice([-1.0, 0.0, 1.0], p=[0.05, 0.92, 0.03], size=(40, 120))
    stopped = stop_paths(x, rule)
    for row, used, certified, harmed in zip(
        x, stopped.used, stopped.certified, stopped.harmed, strict=True
    ):
        question = Question(rule)
        for difference in row:
            if question.update(float(difference)) is not None:
                break
        assert question.n == used
        assert (question.settled == "certified") == certified
        assert (question.settled == "harmed") == harmed


def test_nothing_stops_before_the_floor_and_an_answer_stays():
    question = Question(StoppingRule(tolerance=0.3, alpha=0.05, floor=60, ceiling=90))
    for _ in range(59):
        assert question.update(0.0) is None
    assert question.update(0.0) == "certified"
    assert question.update(-1.0) == "certified"
    assert question.n == 60


def test_missing_cases_never_certify():
    rule = StoppingRule(tolerance=0.05, alpha=0.05, floor=10, ceiling=200)
    question = Question(rule)
    while question.settled is None:
        question.update(None if question.n % 10 == 0 else 0.0)
    assert (question.settled, question.n) == ("undecided", 200)


@pytest.mark.parametrize(("shift", "decision"), [(0.0, "certified"), (-0.2, "harmed")])
def test_graded_scores_are_settled_too(shift, decision):
    rng = np.random.default_rng(6)
    rule = StoppingRule(tolerance=0.08, alpha=0.05, floor=30, ceiling=160)
    question = Question(rule, fixed=fixed_graded)
    while question.settled is None:
        question.update(float(np.clip(rng.normal(shift, 0.3), -1, 1)))
    assert question.settled == decision


def test_sending_goes_on_until_the_last_question_is_settled():
    rule = StoppingRule(tolerance=0.5, alpha=0.05, floor=10, ceiling=20)
    done, open_ = Question(rule), Question(rule)
    for _ in range(12):
        done.update(0.0)
    assert done.settled == "certified"
    assert all_settled([done])
    assert not all_settled([done, open_])


@pytest.mark.parametrize(
    "wrong", [{"floor": 0}, {"floor": 900}, {"tolerance": 0.0}, {"early_share": 1.0}]
)
def test_rules_that_cannot_be_are_refused(wrong):
    good = dict(tolerance=0.02, alpha=0.05, floor=50, ceiling=800)
    with pytest.raises(ValueError):
        StoppingRule(**{**good, **wrong})
