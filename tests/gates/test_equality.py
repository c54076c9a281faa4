"""Where two greedy texts part, and whether that was a near tie."""

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from routeproof.gates.equality import (
    TextPair,
    divergence,
    equality_row,
    first_divergence,
    grid_step,
    kind_of,
    near_tie_of,
)
from routeproof.gates.more_often import more_often


def logprobs(*tokens):
    """Tokens as records hold them: (token, {alternative: log probability})."""
    rows = [[t, a[t], [[k, v] for k, v in a.items()]] for t, a in tokens]
    return msgspec.json.encode(rows).decode()


HELLO = ("Hello", {"Hello": -0.01, "Hi": -4.6})


def pair(mine, theirs):
    return TextPair("a", "b", logprobs(HELLO, mine), logprobs(HELLO, theirs))


def test_a_divergence_between_equals_is_a_near_tie():
    mine = (" you", {" you": -0.70, " there": -0.74})
    theirs = (" there", {" you": -0.72, " there": -0.71})
    assert kind_of(pair(mine, theirs)) == "near_tie"


def test_a_divergence_the_baseline_was_sure_about_is_real():
    mine = (" you", {" you": -0.05, " there": -3.2})
    theirs = (" there", {" there": -0.1, " you": -2.5})
    assert kind_of(pair(mine, theirs)) == "real"


def test_a_token_below_the_whole_list_is_real():
    mine = (" you", {" you": -0.05, " there": -3.2})
    theirs = (" banana", {" banana": -0.1})
    assert kind_of(pair(mine, theirs)) == "real"


def test_how_far_a_near_tie_reaches_is_learnt_from_the_control():
    """A baseline that parts from itself at 0.4 nats makes no 0.3 a real divergence."""

    def parted(nats):
        one = [["a", -0.1, [["a", -0.1], ["b", -0.1 - nats]]]]
        other = [["b", -0.1, [["b", -0.1]]]]
        return TextPair(
            "a",
            "b",
            msgspec.json.encode(one).decode(),
            msgspec.json.encode(other).decode(),
        )

    assert near_tie_of([]) == 0.1
    assert near_tie_of([parted(0.02)]) == 0.1
    reach = near_tie_of([parted(0.4), parted(0.2)])
    assert reach == pytest.approx(0.4)
    assert kind_of(parted(0.3)) == "real"
    assert kind_of(parted(0.3), near_tie=reach) == "near_tie"
    row = equality_row(
        "candidate", pairs=2, equal=1, differing=[parted(0.3)], near_tie=reach
    )
    assert (row.near_ties, row.real, row.near_tie_nats) == (1, 0, pytest.approx(0.4))


@pytest.mark.parametrize(
    "texts",
    [
        TextPair("a", "b"),
        TextPair("a", "b", "not json", logprobs(HELLO)),
        TextPair("a", "b", logprobs(HELLO), logprobs(HELLO)),
        TextPair("a", "b", '[["x", -1.0]]', '[["y", -1.0]]'),
    ],
    ids=["none", "broken", "tokens agree", "no alternatives"],
)
def test_without_log_probabilities_nothing_is_claimed(texts):
    assert kind_of(texts) == "unknown"


def test_a_row_counts_kinds_and_where_texts_part():
    sure = pair((" a", {" a": -0.01, " b": -5.0}), (" b", {" b": -0.1}))
    tie = pair((" a", {" a": -0.7, " b": -0.7}), (" b", {" b": -0.7, " a": -0.7}))
    row = equality_row("candidate", pairs=10, equal=7, differing=[sure, tie, tie])
    assert (row.real, row.near_ties, row.cannot_tell) == (1, 2, 0)


def test_kinds_of_a_sample_stand_for_all_that_differ():
    sure = pair((" a", {" a": -0.01, " b": -5.0}), (" b", {" b": -0.1}))
    row = equality_row("candidate", pairs=1000, equal=600, differing=[sure] * 200)
    assert row.real == 400


def test_kinds_are_unknown_when_no_pair_can_tell():
    row = equality_row("control", pairs=9, equal=8, differing=[TextPair("ab", "ac")])
    assert (row.near_ties, row.real, row.cannot_tell) == (None, None, 1)
    assert row.divergence_share == (0.5, 0.5, 0.5)


@given(st.text(max_size=30), st.text(max_size=10), st.text(max_size=10))
def test_texts_agree_up_to_the_divergence_and_not_beyond(head, one, other):
    left, right = head + one, head + other
    at = first_divergence(left, right)
    assert left[:at] == right[:at]
    assert left[at : at + 1] != right[at : at + 1] or left == right


@given(st.integers(0, 20), st.integers(1, 20), st.integers(0, 20), st.integers(1, 20))
def test_more_often_is_a_p_value_that_falls_with_the_count(a, n, b, m):
    a, b = min(a, n), min(b, m)
    p = more_often(a, n, b, m)
    assert 0 <= p <= 1
    if a < n:
        assert more_often(a + 1, n, max(b - 1, 0), m) <= p + 1e-9


def test_more_often_keeps_its_error_rate():
    """Exact size: the chance to call equal arms different, over every outcome."""
    from math import comb

    n, m, share = 12, 9, 0.3
    size = sum(
        comb(n, a) * comb(m, b) * share ** (a + b) * (1 - share) ** (n + m - a - b)
        for a in range(n + 1)
        for b in range(m + 1)
        if more_often(a, n, b, m) <= 0.05
    )
    assert size <= 0.05


FRANCE = ("The", {"The": -1.8095, "L": -1.9345, "La": -2.3095, "Al": -2.8095})
"""The first token of a 135M model in bf16 asked for the capital of France."""


def france(other):
    theirs = (other, {other: -1.2})
    tokens = (logprobs(FRANCE), logprobs(theirs))
    return TextPair("The capital", f"{other}aris", *tokens, "question-00")


def test_the_capital_of_france_is_told_by_the_baselines_own_numbers():
    """The token "L" is 0.125 nats below, one step of its bfloat16 logits."""
    found = divergence(france("L"))
    assert (found.case_id, found.before) == ("question-00", "")
    assert (found.baseline, found.other) == ("The", "L")
    assert (found.nats, found.is_exact) == (pytest.approx(0.125), True)
    assert (found.kind, found.step_nats) == ("near_tie", 0.125)
    further = divergence(france("La"))
    assert (further.kind, further.nats) == ("real", pytest.approx(0.5))
    unlisted = divergence(france("Paris"))
    assert (unlisted.kind, unlisted.is_exact) == ("real", False)
    assert unlisted.nats == pytest.approx(1.0), "at least below the last of the list"


def test_float32_logits_have_no_grid_and_rounding_is_no_excuse_there():
    tokens = ("The", {"The": -1.8095, "L": -1.9345, "La": -2.3117, "Al": -2.8063})
    pair = TextPair("The", "L", logprobs(tokens), logprobs(("L", {"L": -1.2})))
    found = divergence(pair)
    assert (found.kind, found.step_nats) == ("real", None)


@given(
    st.lists(st.integers(-60, 0), min_size=3, max_size=8, unique=True), st.floats(-9, 0)
)
def test_the_grid_of_logits_is_found_whatever_they_are_normalised_by(steps, shift):
    found = grid_step([0.125 * n + shift for n in steps])
    assert found is not None and found >= 0.125 and (found / 0.125) % 1 == 0


@given(
    st.lists(st.floats(-12, 0), min_size=5, max_size=8, unique=True), st.integers(0, 99)
)
def test_random_log_probabilities_lie_on_no_grid(values, seed):
    noise = np.random.default_rng(seed).uniform(-0.013, 0.013, len(values))
    assert grid_step(np.array(values) + noise) in (None, 0.03125)


def test_divergences_are_shown_real_ones_first():
    unknown = TextPair("so it is", "so it was", case_id="c")
    row = equality_row(
        "candidate",
        pairs=9,
        equal=6,
        differing=[unknown, france("L"), france("Paris")],
    )
    assert [d.kind for d in row.divergences] == ["real", "unknown", "near_tie"]
    told = row.divergences[1]
    assert (told.before, told.baseline, told.other) == ("so it ", "is", "was")
    assert (told.nats, told.is_exact) == (None, False)
