"""Slopes and change points: truth found, noise left alone."""

import numpy as np
import pytest

from routeproof.stats.changepoint import change_point
from routeproof.stats.trend import FEWEST_SAMPLES, trend


def neighbours_alike(rng, n, rho):
    noise, series = rng.normal(size=n), np.empty(n)
    series[0] = noise[0] / (1 - rho**2) ** 0.5
    for i in range(1, n):
        series[i] = rho * series[i - 1] + noise[i]
    return series


def test_a_straight_line_is_found_exactly_in_any_order():
    t = np.random.default_rng(0).permutation(np.arange(50.0))
    answer = trend(t, 3 - 0.25 * t)
    assert answer.slope == pytest.approx(-0.25)
    assert (answer.rises, answer.falls) == (False, True)


def test_spikes_do_not_move_the_slope():
    t = np.arange(600.0)
    y = 0.01 * t
    y[::17] += 500.0
    assert trend(t, y).slope == pytest.approx(0.01, rel=0.05)


@pytest.mark.slow
@pytest.mark.parametrize("rho", [0.0, 0.5, 0.9])
def test_the_interval_covers_where_neighbours_are_alike(rho):
    rng = np.random.default_rng(2)
    t = np.arange(300.0)
    covered = 0
    for _ in range(200):
        interval = trend(t, 0.02 * t + neighbours_alike(rng, 300, rho)).interval
        covered += interval.low <= 0.02 <= interval.high
    assert covered / 200 >= 0.95 - 3 * (0.95 * 0.05 / 200) ** 0.5


def test_a_leak_under_noise_is_seen():
    rng = np.random.default_rng(3)
    t = np.arange(0.0, 1800.0, 5.0)
    memory = 8e9 + 2e5 * t + 5e7 * neighbours_alike(rng, t.size, 0.7)
    answer = trend(t, memory)
    assert answer.rises
    assert answer.interval.low < 2e5 < answer.interval.high


def test_too_few_samples_have_no_slope():
    few = np.arange(FEWEST_SAMPLES - 1.0)
    assert trend(few, few).slope is None
    assert trend(np.zeros(50), np.arange(50.0)).slope is None
    with pytest.raises(ValueError):
        trend([0.0, float("nan")], [1.0, 2.0])


def test_a_jump_is_found_where_it_happened():
    rng = np.random.default_rng(4)
    series = np.r_[rng.normal(0.7, 0.05, 60), rng.normal(0.55, 0.05, 25)]
    answer = change_point(series)
    assert abs(answer.index - 60) <= 1
    assert answer.p_value <= 0.01
    assert answer.before > 0.65 > 0.6 > answer.after


@pytest.mark.slow
def test_a_steady_series_rarely_jumps():
    rng = np.random.default_rng(5)
    found = sum(
        change_point(rng.normal(size=50), permutations=99, seed=seed).p_value <= 0.05
        for seed in range(120)
    )
    assert found / 120 <= 0.05 + 3 * (0.05 * 0.95 / 120) ** 0.5


def test_neighbours_can_be_kept_together():
    rng = np.random.default_rng(6)
    series = neighbours_alike(rng, 120, 0.9)
    loose = change_point(series, block=1).p_value
    kept = change_point(series, block=20).p_value
    assert kept > loose


def test_short_series_have_no_change_point():
    assert change_point(np.arange(9.0)).p_value is None
    with pytest.raises(ValueError):
        change_point([1.0, float("inf")])
