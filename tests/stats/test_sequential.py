"""Evidence under continuous peeking: error rates, power, restart."""

from math import exp, log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from routeproof.stats.sequential import (
    AssignmentTest,
    Betting,
    average,
    bets,
    betting_path,
)
from routeproof.stats.sequential_rates import RatesTest, nearest_null

ALPHA = 0.05


def limit(runs):
    return ALPHA + 3 * (ALPHA * (1 - ALPHA) / runs) ** 0.5


def flips(rng, shape, losses, gains):
    u = rng.random(shape)
    return np.where(u < losses, -1.0, np.where(u < losses + gains, 1.0, 0.0))


def ever(path, alpha=ALPHA):
    return (path.max(axis=-1) >= -log(alpha)).mean()


@pytest.mark.slow
@pytest.mark.parametrize("gains", [0.0, 0.01, 0.05])
def test_a_route_at_the_tolerance_is_rarely_called_safe_however_often_looked_at(gains):
    x = flips(np.random.default_rng(1), (1200, 1000), 0.02 + gains, gains)
    assert ever(betting_path(x, "safe", tolerance=0.02)) <= limit(1200)


@pytest.mark.slow
@pytest.mark.parametrize("gains", [0.01, 0.05])
def test_an_equal_route_is_rarely_called_harmed_however_often_looked_at(gains):
    x = flips(np.random.default_rng(2), (1200, 1000), gains, gains)
    assert ever(betting_path(x, "harm", tolerance=0.0)) <= limit(1200)


@pytest.mark.slow
def test_graded_differences_keep_the_level_too():
    rng = np.random.default_rng(3)
    drop = rng.random((1200, 800)) < 0.1
    x = np.where(drop, -0.8 * rng.random(drop.shape), 0.02 / 0.9)
    assert ever(betting_path(x, "safe", tolerance=0.02)) <= limit(1200)


@pytest.mark.slow
def test_an_equal_route_with_few_flips_is_soon_called_safe():
    x = flips(np.random.default_rng(4), (400, 1000), 0.005, 0.005)
    path = betting_path(x, "safe", tolerance=0.02)
    first = np.where(path >= -log(ALPHA), 1, 0).argmax(axis=1)
    assert ever(path) > 0.98
    assert np.median(first) <= 280


def test_no_expected_gain_from_one_bet_under_the_null():
    for direction, tolerance in (("safe", 0.02), ("harm", 0.0), ("harm", 0.05)):
        for loss, gain in ((tolerance, 0.0), (0.3 + tolerance, 0.3)):
            grid = bets(direction, tolerance)
            factors = [1 + grid * (x + tolerance) for x in (-1.0, 1.0, 0.0)]
            shares = (loss, gain, 1 - loss - gain)
            mean = sum(p * f for p, f in zip(shares, factors, strict=True))
            assert np.all(mean <= 1 + 1e-12)
            assert np.all(np.array(factors) > 0)


@given(
    xs=st.lists(st.floats(-1, 1), min_size=1, max_size=40),
    cut=st.integers(0, 40),
    direction=st.sampled_from(["harm", "safe"]),
)
@settings(max_examples=60, deadline=None)
def test_one_by_one_after_a_restart_or_all_at_once_is_the_same(xs, cut, direction):
    test = Betting(direction, tolerance=0.02)
    for i, x in enumerate(xs):
        if i == cut:
            test = Betting(direction, tolerance=0.02, state=test.state())
        e_value = test.update(x)
    path = betting_path(xs, direction, tolerance=0.02)
    assert log(e_value) == pytest.approx(path[-1], abs=1e-9)
    assert test.p_value == pytest.approx(min(1.0, exp(-path.max())), rel=1e-9)
    assert test.n == len(xs)


def test_numbers_outside_the_bounds_are_refused():
    with pytest.raises(ValueError):
        Betting("harm", tolerance=0.0).update(float("nan"))
    with pytest.raises(ValueError):
        Betting("harm", tolerance=1.0)


def test_averaging_keeps_one_strong_signal_and_no_signal_is_no_evidence():
    joint = average({"json": log(100), "empty": 0.0, "length": 0.0, "refusal": 0.0})
    assert exp(joint) == pytest.approx(103 / 4)
    weighted = average({"a": log(8), "b": 0.0}, {"a": 3.0, "b": 1.0})
    assert exp(weighted) == pytest.approx(6.25)
    assert average({}) == 0.0


@pytest.mark.parametrize(("direction", "sign"), [("harm", 1), ("safe", -1)])
@pytest.mark.parametrize("tolerance", [0.0, 0.05])
@pytest.mark.parametrize(("na", "nb"), [(1, 1), (4, 1)])
def test_no_rates_under_the_null_expect_to_win_a_block(
    direction, sign, tolerance, na, nb
):
    """By enumeration over the counts of a block, for many guesses and truths."""

    for guess_a, guess_b in ((0.05, 0.3), (0.3, 0.05), (0.5, 0.9), (0.02, 0.08)):
        if sign * (guess_b - guess_a - tolerance) <= 0:
            continue
        a0 = nearest_null(guess_a, guess_b, na, nb, tolerance)
        b0 = a0 + tolerance
        for a in np.linspace(0.001, 0.999, 25):
            for b in np.linspace(0.001, 0.999, 25):
                if sign * (b - a - tolerance) > 0:
                    continue
                mean_a = (a * guess_a / a0 + (1 - a) * (1 - guess_a) / (1 - a0)) ** na
                mean_b = (b * guess_b / b0 + (1 - b) * (1 - guess_b) / (1 - b0)) ** nb
                assert mean_a * mean_b <= 1 + 1e-9


def play(test, rng, rates, n, share=0.5):
    peak = 0.0
    for _ in range(n):
        arm = "canary" if rng.random() < share else "baseline"
        failed = rng.random() < rates[arm]
        peak = max(peak, test.update("all", arm, bool(failed)))
    return peak


@pytest.mark.slow
def test_equal_failure_rates_rarely_alarm_and_a_broken_canary_does():
    rng = np.random.default_rng(8)
    same = [
        play(RatesTest("harm"), rng, {"baseline": 0.1, "canary": 0.1}, 300)
        for _ in range(200)
    ]
    assert np.mean(np.array(same) >= 1 / ALPHA) <= limit(200)
    broken = [
        play(RatesTest("harm"), rng, {"baseline": 0.05, "canary": 0.3}, 300)
        for _ in range(20)
    ]
    assert np.mean(np.array(broken) >= 1 / ALPHA) > 0.9


def test_strata_keep_their_own_baseline():
    """One stratum fails always, one never: mixed traffic is no reason for alarm."""
    test = RatesTest("harm")
    for i in range(200):
        for arm in ("baseline", "canary"):
            test.update("hard", arm, True)
            test.update("easy", arm, False)
        # The canary meets the hard stratum more often.
        if i % 2:
            test.update("hard", "canary", True)
    assert test.log_e_value < log(1.5)


def test_rates_go_on_after_a_restart():
    rng = np.random.default_rng(5)
    whole, parted = RatesTest("harm", block=(4, 1)), RatesTest("harm", block=(4, 1))
    for i in range(200):
        if i == 77:
            parted = RatesTest("harm", block=(4, 1), state=parted.state())
        arm = "canary" if rng.random() < 0.2 else "baseline"
        failed = bool(rng.random() < (0.4 if arm == "canary" else 0.1))
        assert whole.update("s", arm, failed) == parted.update("s", arm, failed)
    assert whole.p_value == parted.p_value


@pytest.mark.slow
def test_traffic_split_as_configured_is_rarely_doubted_and_a_wrong_split_is():
    rng = np.random.default_rng(6)
    alarms = {0.05: 0, 0.10: 0}
    for share in alarms:
        for _ in range(200):
            test = AssignmentTest([0.95, 0.05])
            for arm in (rng.random(800) < share).astype(int):
                test.update(int(arm))
            alarms[share] += test.p_value <= ALPHA
    assert alarms[0.05] / 200 <= limit(200)
    assert alarms[0.10] / 200 > 0.95


def test_assignment_goes_on_after_a_restart():
    one = AssignmentTest([0.5, 0.5])
    for arm in (0, 1, 1, 1):
        one.update(arm)
    two = AssignmentTest([0.5, 0.5], state=one.state())
    assert one.update(1) == two.update(1)
    with pytest.raises(ValueError):
        AssignmentTest([0.5, 0.4])
