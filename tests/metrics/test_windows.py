"""Rates: what counts, over which time."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from metric_cases import requests
from record_cases import a_record

from routeproof.metrics.windows import (
    concurrency,
    rates,
    steady_window,
    within_slo,
)


def closed_loop(count, *, streams=2, length_s=1.0, **changes):
    """Requests that keep ``streams`` busy from second 10 on."""
    return [
        a_record(
            request_id=str(i),
            case_id=f"case-{i}",
            intended_s=10.0 + (i // streams) * length_s,
            end_s=10.0 + (i // streams + 1) * length_s,
            chunk_s=(10.25 + (i // streams) * length_s,),
            output_tokens=5,
            **changes,
        )
        for i in range(count)
    ]


def test_throughput_counts_served_requests_per_second():
    found = rates(requests(*closed_loop(20)))
    assert found.requests_per_s == pytest.approx(2.0)
    assert found.output_tokens_per_s == pytest.approx(10.0)
    assert found.achieved_concurrency == pytest.approx(2.0)
    assert found.window_s == (10.0, 20.0)


def test_failures_stay_in_the_count_and_never_raise_the_rate():
    records = closed_loop(20)
    failed = [
        a_record(
            request_id=f"x{i}",
            case_id=f"x{i}",
            intended_s=10.0 + i,
            end_s=11.0 + i,
            outcome="timeout",
            chunk_s=(),
            text=None,
        )
        for i in range(10)
    ]
    some = requests(*records, *failed)
    limits = within_slo(some, {"request_latency": 10.0})
    found = rates(some, within=limits)
    assert found.requests == 30
    assert found.failed == 10
    assert found.slo_share == pytest.approx(20 / 30)
    assert found.goodput_per_s == pytest.approx(2.0)


def test_goodput_counts_only_what_is_inside_every_slo():
    some = requests(*closed_loop(20))
    assert within_slo(some, {}) is None
    none = within_slo(some, {"time_to_first_token": 0.2})
    every = within_slo(some, {"time_to_first_token": 0.3})
    assert rates(some, within=none).goodput_per_s == 0.0
    assert rates(some, within=every).goodput_per_s == pytest.approx(2.0)


def test_a_time_that_cannot_be_told_does_not_keep_its_limit():
    some = requests(*closed_loop(4, first_visible_s=None))
    assert not within_slo(some, {"time_to_first_visible_token": 99.0}).any()


def test_correct_goodput_counts_right_answers_inside_the_slo():
    some = requests(*closed_loop(20))
    inside = within_slo(some, {"request_latency": 5.0})
    right = np.arange(20) < 5
    found = rates(some, within=inside, correct=right)
    assert found.correct_goodput_per_s == pytest.approx(0.5)
    assert rates(some, within=inside).correct_goodput_per_s is None


def test_token_throughput_is_unknown_when_a_served_answer_hides_its_count():
    records = closed_loop(20)
    untold = a_record(
        request_id="u", case_id="u", intended_s=12.0, end_s=13.0, chunk_s=(12.5,)
    )
    assert rates(requests(*records, untold)).output_tokens_per_s is None


def test_ramps_are_outside_of_the_steady_window():
    ramp = [(float(i), 20.0) for i in range(8)]
    steady = [(8.0 + i * 0.1, 20.0 + i * 0.1) for i in range(100)]
    starts, ends = (np.array(side) for side in zip(*(ramp + steady), strict=True))
    window = steady_window(starts, ends)
    assert 8.0 < window[0] < 20.0
    assert window[1] < ends.max()


def test_nothing_has_no_window():
    assert steady_window(np.zeros(0), np.zeros(0)) is None
    assert steady_window(np.array([1.0]), np.array([1.0])) is None
    assert rates(requests(a_record(end_s=None, chunk_s=()))).requests_per_s is None


spans = st.lists(
    st.tuples(st.floats(0, 100), st.floats(0.01, 10)), min_size=1, max_size=40
)


@given(spans)
def test_the_window_lies_inside_the_run_and_holds_time(parts):
    starts = np.array([start for start, _ in parts])
    ends = np.array([start + length for start, length in parts])
    low, high = steady_window(starts, ends)
    assert starts.min() <= low < high <= ends.max()


@given(spans)
def test_concurrency_over_everything_is_busy_time_by_time(parts):
    starts = np.array([start for start, _ in parts])
    ends = np.array([start + length for start, length in parts])
    whole = (float(starts.min()), float(ends.max()))
    expected = (ends - starts).sum() / (whole[1] - whole[0])
    assert concurrency(starts, ends, whole) == pytest.approx(expected)
