"""A shift is told soon, a steady series keeps quiet."""

import numpy as np
import pytest

from routeproof.stats.shift import newest_shift


def told_at(values, least_change=0.1):
    """Length of the series when a shift is first told, and the shift."""
    for n in range(1, len(values) + 1):
        found = newest_shift(values[:n], least_change=least_change)
        if found is not None:
            return n, found
    return None


def steady(seed, n, *, level=0.4, spread=0.05):
    return level * np.exp(np.random.default_rng(seed).normal(0, spread, n))


def test_a_shift_is_told_within_a_few_values_and_placed_where_it_was():
    values = np.concatenate([steady(1, 30), steady(2, 10, level=0.6)])
    n, found = told_at(values.tolist())
    assert 33 <= n <= 36
    assert found.index == 30
    assert found.change() == pytest.approx(0.5, abs=0.1)


def test_one_odd_window_is_no_shift():
    values = steady(3, 40)
    values[25] *= 3
    assert told_at(values.tolist()) is None


def test_a_shift_too_small_to_matter_is_not_told():
    values = np.concatenate([steady(4, 30, spread=0.01), steady(5, 30, level=0.42)])
    assert told_at(values.tolist(), least_change=0.1) is None


@pytest.mark.parametrize("values", [[], [0.3] * 11, [0.5] * 40, [0.0] * 40])
def test_too_few_or_constant_values_have_no_shift(values):
    assert newest_shift(values, least_change=0.1) is None


def test_errors_that_begin_are_a_shift_from_nothing():
    n, found = told_at([0.0] * 20 + [0.04, 0.05, 0.06, 0.05])
    assert n <= 24
    assert found.before == 0 and found.change() is None


def test_a_long_series_is_only_looked_back_on_so_far():
    values = [1.0] * 200 + [2.0] * 4
    assert newest_shift(values, least_change=0.1).index == 200
    values = [1.0] * 10 + [2.0] * 200
    assert newest_shift(values, least_change=0.1) is None


@pytest.mark.slow
@pytest.mark.parametrize("spread", [0.02, 0.05])
def test_a_steady_series_hardly_ever_cries_wolf(spread):
    alarms = values = 0
    for seed in range(4):
        series = steady(seed, 500, spread=spread).tolist()
        start = 0
        for n in range(len(series)):
            if newest_shift(series[start : n + 1], least_change=0.1) is not None:
                alarms, start = alarms + 1, n
        values += len(series)
    assert alarms / values <= 5e-4


@pytest.mark.slow
def test_nearly_every_real_shift_is_told_soon():
    late = 0
    for seed in range(20):
        values = np.concatenate([steady(seed, 20), steady(99 + seed, 8, level=0.5)])
        found = told_at(values.tolist())
        late += found is None or found[0] > 26
    assert late <= 1
