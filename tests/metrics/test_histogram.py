"""The log-bucket histogram: right within a percent, mergeable, flat."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from routeproof.metrics.histogram import GROWTH, LEAST_S, LogHistogram

gaps = st.lists(st.floats(LEAST_S, 1e3), min_size=1, max_size=200)


@given(gaps, st.sampled_from([0.01, 0.5, 0.9, 0.99, 1.0]))
def test_a_quantile_is_the_nearest_rank_one_within_a_bucket(values, q):
    ordered = sorted(values)
    exact = ordered[max(1, int(np.ceil(round(q * len(values), 9)))) - 1]
    found = LogHistogram.of(np.array(values)).quantile(q)
    assert exact / GROWTH**1.1 <= found <= exact * GROWTH**1.1


@given(gaps, gaps)
def test_merging_is_the_same_as_counting_together(one, other):
    merged = LogHistogram.of(np.array(one)).plus(LogHistogram.of(np.array(other)))
    together = LogHistogram.of(np.array(one + other))
    assert (merged.counts == together.counts).all()
    assert merged.n == len(one) + len(other)
    assert merged.mean() == pytest.approx(np.mean(one + other))


def test_an_empty_histogram_knows_nothing():
    empty = LogHistogram.empty()
    assert empty.n == 0
    assert empty.mean() is None
    assert empty.quantile(0.5) is None


def test_chunks_of_one_read_have_no_gap_and_are_counted():
    found = LogHistogram.of(np.array([0.0, 0.0, 0.0, 1.0]))
    assert found.n == 4
    assert found.quantile(0.5) == 0.0
    assert found.quantile(1.0) == pytest.approx(1.0, rel=0.02)


def test_values_beyond_the_range_are_kept_in_the_last_bucket():
    assert LogHistogram.of(np.array([1e9])).n == 1
