"""Times of a request: what starts and stops each clock, and when it is unknown."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from metric_cases import columns, one, value
from record_cases import a_record

from routeproof.metrics import timing
from routeproof.metrics.table import METRICS

STREAM = {
    "intended_s": 1.0,
    "dispatched_s": 1.25,
    "end_s": 9.0,
    "chunk_s": (2.0, 3.0, 5.0),
    "output_tokens": 7,
}


def test_the_clock_starts_at_the_intended_moment_not_at_the_send():
    assert value(timing.time_to_first_token(one(**STREAM))) == 1.0
    assert value(timing.request_latency(one(**STREAM))) == 4.0
    assert value(timing.service_latency(one(**STREAM))) == 3.75
    assert value(timing.dispatch_delay(one(**STREAM))) == 0.25


def test_an_answer_ends_with_its_last_chunk_not_with_the_connection():
    late_usage = one(**{**STREAM, "end_s": 60.0})
    assert value(timing.request_latency(late_usage)) == 4.0


def test_an_answer_that_was_not_streamed_ends_with_the_response():
    whole = one(**{**STREAM, "chunk_s": ()})
    assert value(timing.request_latency(whole)) == 8.0
    assert value(timing.time_to_first_token(whole)) is None


def test_reasoning_counts_for_the_first_token_and_not_for_the_first_visible_one():
    thinking = one(**STREAM, first_visible_s=3.0)
    assert value(timing.time_to_first_token(thinking)) == 1.0
    assert value(timing.time_to_first_visible_token(thinking)) == 2.0


def test_per_token_time_counts_tokens_after_the_first_when_its_bundle_is_unknown():
    assert value(timing.time_per_output_token(one(**STREAM))) == 0.5


def test_per_token_time_leaves_the_whole_first_bundle_out_when_it_is_known():
    bundled = one(**{**STREAM, "chunk_tokens": (4, 2, 1)})
    assert value(timing.time_per_output_token(bundled)) == 1.0


def test_tokens_are_summed_over_chunks_when_the_server_sends_no_usage():
    summed = one(**{**STREAM, "output_tokens": None, "chunk_tokens": (1, 2, 1)})
    assert value(timing.output_tokens(summed)) == 4.0
    assert value(timing.time_per_output_token(summed)) == 1.0


def test_a_bundle_is_one_gap_and_several_tokens():
    record = one(**STREAM)
    assert value(timing.chunk_gap(record)) == 1.5
    assert value(timing.longest_stall(record)) == 2.0
    assert value(timing.tokens_per_chunk(record)) == pytest.approx(7 / 3)
    assert value(timing.decode_throughput(record)) == 2.0
    assert value(timing.output_token_throughput(record)) == 1.75


@pytest.mark.parametrize(
    "changes",
    [
        {"outcome": "timeout"},
        {"outcome": "stream_error"},
        {"chunk_s": (2.0,)},
        {"chunk_s": (), "output_tokens": 4},
        {"output_tokens": None},
        {"output_tokens": 1},
        {"output_tokens": 4, "chunk_tokens": (4, 0, 0)},
    ],
    ids=[
        "timed out",
        "error in the stream",
        "one chunk",
        "not streamed",
        "no token count",
        "one token",
        "all tokens in the first chunk",
    ],
)
def test_per_token_time_is_unknown_rather_than_zero(changes):
    assert value(timing.time_per_output_token(one(**{**STREAM, **changes}))) is None


def test_no_time_of_a_failed_request_is_known():
    failed = one(**STREAM, outcome="cut_short", first_visible_s=2.0)
    for metric in METRICS.values():
        assert value(metric.of(failed)) is None, metric.name


def test_a_truncated_answer_was_served_and_has_times():
    assert value(timing.request_latency(one(**STREAM, outcome="truncated"))) == 4.0


def test_the_engines_own_split_is_taken_as_it_reports_it():
    told = one(**STREAM, queue_s=0.5, prefill_s=0.25, decode_s=2.0)
    names = ("queue_time", "prefill_time", "decode_time")
    assert [value(METRICS[name].of(told)) for name in names] == [0.5, 0.25, 2.0]
    assert value(METRICS["queue_time"].of(one(**STREAM))) is None


chunk_lists = st.lists(
    st.lists(st.integers(0, 5000), max_size=6).map(sorted), min_size=1, max_size=8
)


@given(chunk_lists)
def test_gaps_never_cross_from_one_request_to_the_next(lists):
    records = columns(
        *(
            a_record(request_id=str(i), chunk_s=tuple(1 + ms / 1000 for ms in each))
            for i, each in enumerate(lists)
        )
    )
    gaps, starts = timing.gaps_of(records.ragged("chunk_s"))
    expected = [np.diff([ms / 1000 for ms in each]) for each in lists]
    assert gaps.size == sum(len(e) for e in expected)
    assert gaps == pytest.approx(np.concatenate(expected), abs=2e-6)
    for start, each in zip(starts, expected, strict=True):
        assert gaps[start : start + len(each)] == pytest.approx(each, abs=2e-6)


@settings(max_examples=15)
@given(chunk_lists)
def test_metrics_of_many_are_the_metrics_of_each(lists):
    records = [
        a_record(
            request_id=str(i),
            chunk_s=tuple(1 + ms / 1000 for ms in each),
            output_tokens=3 * len(each) or None,
        )
        for i, each in enumerate(lists)
    ]
    together = columns(*records)
    for metric in METRICS.values():
        whole = metric.of(together)
        for row, record in enumerate(records):
            alone = value(metric.of(columns(record)))
            assert value(whole, row) == pytest.approx(alone), metric.name


def test_every_metric_has_a_unit_a_formula_and_a_need():
    for name, metric in METRICS.items():
        assert metric.name == name
        assert metric.formula
        assert metric.needs
        assert metric.unit in ("s", "tokens", "tokens/s", "1")
