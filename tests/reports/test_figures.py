import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from routeproof.gates.result import Check, Status
from routeproof.reports import figures
from routeproof.stats.interval import Interval


@pytest.mark.parametrize(
    ("value", "unit", "words"),
    [
        (None, "s", "unknown"),
        (0.0, "s", "0 s"),
        (0.0004, "s", "0.40 ms"),
        (0.0421, "s", "42.1 ms"),
        (0.42, "s", "420 ms"),
        (4.2, "s", "4.20 s"),
        (42.0, "s", "42.0 s"),
        (420.0, "s", "420 s"),
        (4200.0, "s", "70 min"),
        (1.82e9, "bytes", "1.82 GB"),
        (12.0, "bytes", "12 B"),
        (0.5, "share", "50 %"),
        (0.123, "share", "12.3 %"),
        (61.25, "tokens/s", "61.2 tokens/s"),
        (1234567.0, "", "1,234,567"),
    ],
)
def test_a_number_is_told_in_the_unit_a_person_would_use(value, unit, words):
    assert figures.number(value, unit) == words


@given(st.floats(min_value=1e-6, max_value=1e6))
def test_a_duration_keeps_two_digits_whatever_its_size(value):
    number, unit = figures.seconds(value).split(" ")
    back = float(number) * {"ms": 1e-3, "s": 1.0, "min": 60.0}[unit]
    assert math.isclose(back, value, rel_tol=0.06) or value < 1e-4


@pytest.mark.parametrize(
    ("share", "words"),
    [(-0.004, "-0.4"), (0.021, "+2.1"), (0.0, "0.0"), (-0.0001, "0.0")],
)
def test_a_difference_has_a_sign_unless_it_rounds_to_nothing(share, words):
    assert figures.points(share) == words


def a_check(**changes):
    values = {"name": "m", "status": Status.PASSED, "reason": "r", **changes}
    return Check(**values)


def test_a_quality_check_is_told_in_points():
    check = a_check(
        kind="difference",
        unit="share",
        estimate=-0.004,
        limit=0.02,
        interval=Interval(low=-0.016, high=0.008, level=0.9, method="tango"),
    )
    assert figures.estimate(check) == "-0.4 pts"
    assert figures.bounds(check.interval, check.kind, check.unit) == "[-1.6, +0.8]"
    assert figures.limit(check) == "tolerance 2.0"


def test_a_ratio_is_told_as_times():
    check = a_check(kind="ratio", estimate=1.359, limit=1.2)
    assert (figures.estimate(check), figures.limit(check)) == ("1.36x", "limit 1.20x")


def test_an_unknown_estimate_is_never_zero():
    assert figures.estimate(a_check(kind="difference", unit="share")) == "unknown"
    assert figures.estimate(a_check(kind="value", unit="s")) == "unknown"


def test_an_open_end_of_an_interval_is_shown_open():
    interval = Interval(low=None, high=0.01, level=0.9, method="exact")
    assert figures.bounds(interval, "difference", "share") == "[.., +1.0]"
    assert figures.bounds(None, "difference", "share") == ""


def test_missing_evidence_is_told_with_what_there_is():
    quality = {"kind": "difference", "unit": "share", "estimate": 0.0}
    assert figures.amount(a_check(n=96, n_needed=190, **quality)) == "96 of 190 pairs"
    assert figures.amount(a_check(n=400, n_needed=190, **quality)) == "400 pairs"
    assert figures.amount(a_check(n=12, kind="value")) == "12 requests"
    assert figures.amount(a_check(**quality)) == ""


def test_a_fact_has_no_amount_of_evidence():
    assert figures.amount(a_check(n=14, kind="fact")) == ""


def test_a_question_reads_as_words():
    assert figures.question("exact_match[class=factual_qa]") == (
        "exact match, factual qa"
    )


def test_words_behind_a_slice_stay_with_the_metric():
    told = figures.question("headline[class=extraction] collapse")
    assert told == "headline collapse, extraction"


def test_a_ratio_without_an_estimate_shows_no_other_number():
    check = Check(
        name="not_slower[time_per_output_token p95 c1]",
        status=Status.INCONCLUSIVE,
        kind="ratio",
        candidate=0.000865,
        reason="too few pairs",
        limit=0.95,
    )
    assert figures.estimate(check) == figures.UNKNOWN
