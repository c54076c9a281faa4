"""Reducing a part: what stays, what is dropped, and the cheap look at loops."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from metric_cases import columns, requests, value
from record_cases import a_record

from routeproof.metrics.degenerate import degenerate_column
from routeproof.metrics.per_request import chunk_gaps, is_looping, per_request
from routeproof.metrics.requests import asked_load, gather
from routeproof.metrics.table import METRICS

PROSE = (
    "Rivers carry stones from the hills to the plain. What is coarse stays near the "
    "source, what is fine goes far. In spring the water is brown and fast; by August "
    "a child can wade it. Bridges are built for the spring, not for the summer, and "
    "whoever forgets that builds twice."
)


def test_texts_and_lists_are_dropped_and_metrics_are_there():
    reduced = per_request(columns(a_record(output_tokens=2)))
    assert not reduced.lists
    assert "text" not in reduced.texts
    assert set(METRICS) <= set(reduced.numbers)


def test_equal_answers_have_equal_digests_and_others_do_not():
    some = requests(
        a_record(request_id="a", text="yes"),
        a_record(request_id="b", text="yes"),
        a_record(request_id="c", text="no"),
        a_record(request_id="d", text=None, reasoning="yes"),
        a_record(request_id="e", text="", outcome="empty"),
    )
    digest = some.number("answer_digest")
    assert digest.values[0] == digest.values[1] == digest.values[3]
    assert digest.values[0] != digest.values[2]
    assert value(digest, 4) is None


@pytest.mark.parametrize(
    "text",
    ["and so on " * 40, "x" * 300, PROSE + " The end." * 60, (PROSE + " ") * 8],
    ids=["phrase", "one character", "loops at its end", "a paragraph again and again"],
)
def test_loops_are_seen(text):
    assert is_looping(text)


@pytest.mark.parametrize(
    "text",
    [PROSE, "", "no", "ha ha ha", PROSE + " " + PROSE[:60], "| a | b |\n" * 5],
    ids=["prose", "nothing", "short", "laughter", "one quotation", "a small table"],
)
def test_honest_texts_are_no_loops(text):
    assert not is_looping(text)


@given(st.text(min_size=1, max_size=30), st.integers(6, 12))
def test_any_phrase_repeated_often_enough_is_a_loop(phrase, times):
    text = phrase * times
    stripped = text.rstrip()
    if len(stripped) >= max(240, len(phrase) * 7):
        assert is_looping(text)


def test_the_full_look_is_taken_at_served_answers_of_the_quality_phase():
    part = columns(
        a_record(request_id="a", text="and so on " * 60),
        a_record(request_id="b", text=PROSE),
        a_record(request_id="c", text="and so on " * 60, phase="sweep"),
        a_record(request_id="d", text=None, outcome="timeout"),
    )
    found = degenerate_column(part)
    assert [value(found, row) for row in range(4)] == [1.0, 0.0, None, None]


def test_a_large_part_is_sampled_by_case_so_that_pairs_stay_whole():
    records = [
        a_record(request_id=f"{arm}{i}", arm=arm, case_id=f"case-{i}", text=PROSE)
        for i in range(200)
        for arm in ("baseline", "candidate")
    ]
    known = degenerate_column(columns(*records), most=100).known
    assert 50 < known.sum() < 150
    assert (known[::2] == known[1::2]).all()


def test_gaps_of_failed_requests_are_left_out():
    part = columns(
        a_record(request_id="a", chunk_s=(1.0, 2.0, 3.0)),
        a_record(request_id="b", chunk_s=(1.0, 9.0), outcome="cut_short"),
    )
    together, other = chunk_gaps(part, np.array([0, 0]), 2)
    assert (together.n, other.n) == (2, 0)
    first, second = chunk_gaps(part, np.array([-1, 1]), 2)
    assert (first.n, second.n) == (0, 0)


def test_parts_are_put_together_in_order_with_what_each_knows():
    first = per_request(columns(a_record(request_id="a", case_id="x")))
    second = per_request(
        columns(a_record(request_id="b", case_id="y", arm="candidate", queue_s=1.5))
    )
    whole = gather([first, second])
    assert whole.n == 2
    assert [whole.label("case_id").of(i) for i in range(2)] == ["x", "y"]
    assert [whole.label("arm").of(i) for i in range(2)] == ["baseline", "candidate"]
    assert [value(whole.number("queue_time"), i) for i in range(2)] == [None, 1.5]
    assert value(whole.number("no_such_thing")) is None
    assert whole.label("no_such_thing").of(0) is None


def test_nothing_gathered_is_no_requests():
    assert gather([]).n == 0
    assert gather([]).levels() == ()


def test_levels_come_stage_by_stage_and_low_load_first():
    some = requests(
        *(
            a_record(request_id=f"{p}{q}", phase=p, level=q)
            for p, q in [
                ("sweep", "c16"),
                ("sweep", "c4"),
                ("latency", "c1"),
                ("quality", "c1"),
                ("sweep", "c128"),
            ]
        )
    )
    assert some.levels() == (
        ("quality", "c1"),
        ("latency", "c1"),
        ("sweep", "c4"),
        ("sweep", "c16"),
        ("sweep", "c128"),
    )


def test_a_level_says_what_was_asked():
    assert asked_load("c16") == ("concurrency", 16.0)
    assert asked_load("r2.5") == ("request_rate", 2.5)
    assert asked_load("trace") == ("concurrency", None)
