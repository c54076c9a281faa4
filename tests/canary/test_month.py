"""A month of traffic without sockets: an equal candidate stays, a worse one goes."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from routeproof.canary.deciding.state import Seen as Look
from routeproof.canary.deciding.state import SignalOutcome, State, Steps, advance, obey
from routeproof.canary.weighing.evidence import Evidence, SignalPolicy
from routeproof.stats.sequential_rates import RatesTest

ROOT = Path(__file__).parents[2]


def the_month():
    where = ROOT / "benchmarks" / "canary_month.py"
    found = importlib.util.spec_from_file_location("canary_month", where)
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_the_fast_path_of_the_simulation_is_the_test_the_gateway_uses():
    month, rng = the_month(), np.random.default_rng(3)
    one = RatesTest("harm", tolerance=0.0)
    failed, log_e = np.zeros((2, 1)), 0.0
    for n in range(300):
        x = rng.random((2, 1)) < [[0.1], [0.2]]
        log_e += float(month.factor(failed, n, x)[0])
        failed += x
        one.update("s", "baseline", bool(x[0, 0]))
        one.update("s", "canary", bool(x[1, 0]))
        assert one.log_e_value == pytest.approx(log_e)


@pytest.mark.slow
def test_an_equal_candidate_is_rolled_back_no_more_often_than_alpha():
    month = the_month()
    share = month.equal(canaries=1_000, pairs=3_000)
    assert share <= month.ALPHA


@pytest.mark.slow
def test_three_points_more_broken_structure_are_always_found():
    row = the_month().worse("invalid_structure", 0.03, canaries=300, pairs=12_000)
    assert row.rolled_back == 1.0
    assert row.median < 6 * row.optimum_80


@pytest.mark.slow
def test_pairs_that_are_equal_stay_and_three_points_are_found_with_fewer_of_them():
    month = the_month()
    equal = month.paired(0.01, 0.01, canaries=400, pairs=3_000)
    assert equal.rolled_back <= month.SHADOW_ALPHA * 3
    worse = month.paired(0.04, 0.01, canaries=200, pairs=3_000)
    alone = month.worse("invalid_structure", 0.03, canaries=200, pairs=6_000)
    assert worse.rolled_back == 1.0 and worse.median < 0.8 * alone.median


def simulated_month(rate, *, seed):
    """A canary through all its steps; a minute is a tick, an answer per arm each."""
    rng = np.random.default_rng(seed)
    policies = {"invalid_structure": SignalPolicy(tolerance=0.03)}
    evidence = Evidence(policies, alpha=0.05)
    steps = Steps(step_deadline_s=30 * 86_400.0, hold_deadline_s=30 * 86_400.0)
    state = obey(State(name="c", candidate_digest="d"), "start", 0.0, steps)
    step = state.step
    for minute in range(1, 30 * 1_440):
        bad = rng.random(2) < (0.03, rate)
        evidence.observe("invalid_structure", False, bool(bad[0]), "whole")
        evidence.observe("invalid_structure", True, bool(bad[1]), "whole")
        (seen,) = evidence.standings()
        state = advance(
            state,
            Look(
                now_s=60.0 * minute,
                signals={seen.name: seen.outcome},
                scored_canary=seen.step_seen,
                scored_control=seen.step_seen,
                observed_share=0.0,
            ),
            steps,
        )
        if state.phase in ("rolled_back", "promoted"):
            return state, seen, minute
        if state.step != step:
            step = state.step
            evidence.enter_step()
    return state, seen, minute


@pytest.mark.slow
def test_a_month_ends_in_promotion_for_an_equal_and_in_rollback_for_a_worse_one():
    state, _, _ = simulated_month(0.03, seed=1)
    assert state.phase == "promoted"
    state, seen, minute = simulated_month(0.06, seed=1)
    assert state.phase == "rolled_back"
    assert seen.outcome is SignalOutcome.FAIL
    assert minute < 20_000
