"""Samples as series: growth of counters, restarts, slopes that are no single peak."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from routeproof.metrics.telemetry import Series, series_of, slope
from routeproof.records.columns import Column, Records


def samples(*rows):
    """Rows of (at_s, arm, name, value) as a stored part."""
    n = len(rows)
    every = np.ones(n, dtype=bool)
    at, arm, name, value = zip(*rows, strict=True)
    return Records(
        n=n,
        numbers={
            "at_s": Column(np.array(at, dtype=float), every),
            "value": Column(np.array(value, dtype=float), every),
        },
        texts={
            "arm": np.array(arm, dtype=object),
            "name": np.array(name, dtype=object),
        },
    )


def a_series(values, step_s=1.0):
    return Series(np.arange(len(values)) * step_s, np.array(values, dtype=float))


def test_series_are_sorted_by_time_over_all_parts():
    found = series_of(
        [
            samples((3.0, "candidate", "running", 3), (1.0, "candidate", "running", 1)),
            samples((2.0, "candidate", "running", 2), (2.0, "baseline", "running", 9)),
        ]
    )
    assert found["candidate", "running"].values.tolist() == [1, 2, 3]
    assert found["baseline", "running"].values.tolist() == [9]
    assert series_of([]) == {}


def test_a_counter_that_fell_was_restarted_and_counts_on():
    counter = a_series([100, 130, 10, 25])
    assert counter.increase() == 30 + 10 + 15
    assert counter.resets() == 1


def test_one_sample_tells_no_growth():
    assert a_series([5]).increase() is None
    assert a_series([5]).peak() == 5


def test_a_start_time_that_changes_is_a_restart():
    assert a_series([7, 7, 9, 9]).changes() == 1


@given(st.lists(st.integers(0, 1000), min_size=2, max_size=30))
def test_growth_is_never_negative_and_exact_without_a_restart(steps):
    rising = np.cumsum(steps)
    assert a_series(rising).increase() == pytest.approx(rising[-1] - rising[0])
    assert a_series(steps).increase() >= 0


def test_the_slope_of_a_line_is_its_growth_per_hour():
    found = slope(a_series([2.0 * i for i in range(600)]), alpha=0.05)
    assert found.per_hour == pytest.approx(7200.0, rel=1e-6)
    assert found.low == pytest.approx(7200.0, rel=1e-3)


def test_single_peaks_are_no_trend():
    values = [100.0] * 600
    values[550] = 1e6
    found = slope(a_series(values), alpha=0.05)
    assert found.per_hour == pytest.approx(0.0, abs=1e-6)


def test_noise_has_a_lower_limit_below_zero():
    rng = np.random.default_rng(3)
    below = 0
    for _ in range(200):
        found = slope(a_series(rng.normal(0, 1, 300)), alpha=0.05)
        below += found.low <= 0
    assert below >= 180


def test_too_few_samples_have_no_slope():
    assert slope(a_series([1.0, 2.0, 3.0]), alpha=0.05) is None
    assert slope(Series(np.zeros(9), np.zeros(9)), alpha=0.05) is None
