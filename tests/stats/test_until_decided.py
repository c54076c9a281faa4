"""Stopping early: unchanged error rates, fewer requests where the case is clear."""

import numpy as np
import pytest

from routeproof.stats.clusters import Differences
from routeproof.stats.in_order import Drawn, answer_in_order, early_minimum
from routeproof.stats.paired_binary import (
    harm_p_value,
    non_inferiority,
    tolerance_p_value,
)
from routeproof.stats.paired_graded import graded_non_inferiority
from routeproof.stats.planner import approximate_pairs
from routeproof.stats.until_decided import (
    PValues,
    StoppingRule,
    sequential_interval,
    settle,
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


def settled(x, rule, *, worst=None):
    """The question settled on what has been seen, the exact tests at the ceiling."""
    seen = np.asarray(x, dtype=float)
    at_worst = seen if worst is None else np.asarray(worst, dtype=float)

    def at_ceiling():
        losses, gains = int((at_worst < 0).sum()), int((seen > 0).sum())
        n, m = seen.size, rule.tolerance
        return PValues(
            tolerance_p_value(losses=losses, gains=gains, n=n, tolerance=m),
            harm_p_value(losses=int((seen < 0).sum()), gains=gains),
        )

    return settle(at_worst, seen, rule, at_ceiling=at_ceiling)


def test_case_by_case_is_what_the_simulation_plays():
    rng = np.random.default_rng(4)
    rule = StoppingRule(tolerance=0.05, alpha=0.05, floor=30, ceiling=120)
    x = rng.choice([-1.0, 0.0, 1.0], p=[0.05, 0.92, 0.03], size=(40, 120))
    stopped = stop_paths(x, rule)
    for row, used, certified, harmed in zip(
        x, stopped.used, stopped.certified, stopped.harmed, strict=True
    ):
        first = next(n for n in range(1, 121) if settled(row[:n], rule).settled)
        found = settled(row, rule)
        assert (first, found.after) == (used, used)
        assert (found.settled == "certified") == certified
        assert (found.settled == "harmed") == harmed


def test_an_answer_stays_whatever_is_seen_later():
    rule = StoppingRule(tolerance=0.3, alpha=0.05, floor=60, ceiling=90)
    seen = [0.0] * 60
    assert settled(seen[:59], rule).settled is None
    assert settled(seen, rule).settled == "certified"
    later = settled(seen + [-1.0] * 30, rule)
    assert (later.settled, later.after) == ("certified", 60)


def test_missing_cases_never_certify():
    rule = StoppingRule(tolerance=0.05, alpha=0.05, floor=10, ceiling=200)
    worst = [-1.0 if i % 10 == 0 else 0.0 for i in range(200)]
    found = settled([0.0] * 200, rule, worst=worst)
    assert (found.settled, found.after) == ("undecided", 200)


def test_p_values_agree_with_the_decision():
    rng = np.random.default_rng(5)
    rule = StoppingRule(tolerance=0.08, alpha=0.05, floor=20, ceiling=100)
    for _ in range(40):
        x = rng.choice([-1.0, 0.0, 1.0], p=[0.06, 0.9, 0.04], size=100)
        found = settled(x, rule)
        certified = found.p_values.tolerance <= rule.alpha
        harmed = found.p_values.harm <= rule.alpha
        assert (found.settled == "undecided") == (not certified and not harmed)


@pytest.mark.parametrize(("shift", "decision"), [(0.0, "certified"), (-0.2, "harmed")])
def test_graded_scores_are_settled_too(shift, decision):
    rng = np.random.default_rng(6)
    rule = StoppingRule(tolerance=0.08, alpha=0.05, floor=30, ceiling=160)
    differences = Differences.of(np.clip(rng.normal(shift, 0.3, 160), -1, 1))

    def fixed(alpha):
        return graded_non_inferiority(differences, tolerance=0.08, alpha=alpha).mean

    answer, how = answer_in_order(Drawn.of(differences), rule, fixed=fixed)
    assert (answer.decision, how.settled) == (decision, decision)
    assert answer.interval.low <= answer.estimate <= answer.interval.high


def test_the_interval_agrees_with_an_early_certificate():
    rule = StoppingRule(tolerance=0.05, alpha=0.05, floor=20, ceiling=400)
    zeros = np.zeros(400)
    n = settled(zeros, rule).after
    low = sequential_interval(zeros[:n], zeros[:n], rule).low
    before = sequential_interval(zeros[: n - 1], zeros[: n - 1], rule).low
    assert before < -0.05 <= low + 1 / 2048
    assert early_minimum(rule) == n


def test_the_interval_covers_at_every_moment():
    rng = np.random.default_rng(8)
    rule = StoppingRule(tolerance=0.05, alpha=0.05, floor=1, ceiling=150)
    missed = 0
    for _ in range(120):
        x = rng.choice([-1.0, 0.0, 1.0], p=[0.10, 0.85, 0.05], size=150)
        found = sequential_interval(x, x, rule)
        missed += not found.low <= -0.05 <= found.high
    assert missed / 120 <= 0.10 + 3 * (0.1 * 0.9 / 120) ** 0.5


def test_a_workload_too_small_for_its_tolerance_says_how_many_it_needs():
    small = StoppingRule(tolerance=0.05, alpha=0.05, floor=50, ceiling=63)
    assert early_minimum(small) == 72
    zeros = Drawn.of(Differences.of(np.zeros(63)))

    def fixed(alpha):
        return non_inferiority(losses=0, gains=0, n=63, tolerance=0.05, alpha=alpha)

    answer, _ = answer_in_order(zeros, small, fixed=fixed)
    assert (answer.decision, answer.n_minimum) == ("undecided", 72)
    assert answer.n_needed > 63


def test_a_unit_is_the_mean_of_its_cases_and_a_missing_one_fell():
    found = Drawn.of(
        Differences(
            value=np.array([0.5, -0.5, 0.0]),
            known=np.array([True, True, False]),
            worst=np.array([0.5, -0.5, -1.0]),
            cluster=np.array([0, 0, 1]),
            missing_pairs=1,
        )
    )
    assert found.value.tolist() == [0.0, 0.0]
    assert found.worst.tolist() == [0.0, -1.0]
    assert found.drops(0.5).worst.tolist() == [0.0, -1.0]


@pytest.mark.parametrize(
    "wrong", [{"floor": 0}, {"floor": 900}, {"tolerance": 0.0}, {"early_share": 1.0}]
)
def test_rules_that_cannot_be_are_refused(wrong):
    good = dict(tolerance=0.02, alpha=0.05, floor=50, ceiling=800)
    with pytest.raises(ValueError):
        StoppingRule(**{**good, **wrong})
