"""Percentiles: ranks, intervals, and silence when the sample is too small."""

from math import inf, nan

import numpy as np
import pytest
from scipy.stats import binom

from routeproof.stats.percentile import minimum_samples, percentile


@pytest.mark.parametrize(
    ("q", "level", "n"), [(0.5, 0.95, 6), (0.95, 0.95, 72), (0.99, 0.95, 368)]
)
def test_fewest_samples_are_those_of_the_binomial(q, level, n):
    assert minimum_samples(q, level) == n
    assert binom.pmf(n, n, q) <= (1 - level) / 2 < binom.pmf(n - 1, n - 1, q)


def test_too_few_samples_give_no_number():
    answer = percentile(np.ones(71), 0.95)
    assert (answer.value, answer.interval, answer.n_minimum) == (None, None, 72)


def test_nearest_rank_takes_a_sample_that_was_seen():
    assert percentile(np.arange(1, 101), 0.95).value == 95.0
    assert percentile(np.arange(1, 102), 0.95).value == 96.0
    assert percentile(np.arange(1, 101), 0.5).value == 50.0


def test_failures_rank_last_and_stay_in_the_sample():
    few = percentile(np.r_[np.arange(1, 97), [inf] * 4], 0.95)
    assert (few.value, few.failures, few.in_failures) == (95.0, 4, False)
    assert few.interval.high is None
    many = percentile(np.r_[np.arange(1, 91), [inf] * 10], 0.95)
    assert (many.value, many.in_failures) == (None, True)
    assert many.interval.low is not None


def test_unknown_values_are_refused_rather_than_dropped():
    with pytest.raises(ValueError, match="NaN"):
        percentile([1.0, nan], 0.5)


@pytest.mark.parametrize(("q", "n"), [(0.5, 6), (0.5, 41), (0.95, 72), (0.99, 500)])
def test_the_interval_covers_at_least_at_its_level(q, n):
    rng = np.random.default_rng(11)
    covered = 0
    for _ in range(1500):
        interval = percentile(rng.random(n), q).interval
        covered += interval.low <= q <= interval.high
    assert covered / 1500 >= 0.95 - 3 * (0.95 * 0.05 / 1500) ** 0.5
