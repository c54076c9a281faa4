"""From listed log probabilities to what a sampler draws from."""

from math import log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from routeproof.stats.drawn_from import Sampler, listed

LIST = {"a": log(0.5), "b": log(0.3), "c": log(0.15), "d": log(0.049)}


def shares(sampler, logprobs=LIST):
    found = listed(logprobs, sampler)
    return dict(
        zip([*found.tokens, "rest"], found.share.round(4).tolist(), strict=True)
    )


def test_without_filters_the_list_is_what_is_drawn_from_and_the_rest_is_one_token():
    assert shares(Sampler()) == {
        "a": 0.5,
        "b": 0.3,
        "c": 0.15,
        "d": 0.049,
        "rest": 0.001,
    }


def test_a_lower_temperature_sharpens():
    found = shares(Sampler(temperature=0.5))
    assert found["a"] == pytest.approx(0.25 / (0.25 + 0.09 + 0.0225 + 0.0024), abs=1e-3)


@pytest.mark.parametrize(
    "sampler, inside",
    [
        (Sampler(top_k=2), "ab"),
        (Sampler(top_p=0.7), "ab"),
        (Sampler(min_p=0.2), "abc"),
        (Sampler(top_k=3, top_p=0.55), "ab"),
    ],
)
def test_filters_leave_out_what_they_should(sampler, inside):
    found = shares(sampler)
    assert "".join(t for t, share in found.items() if share > 0) == inside
    assert sum(found.values()) == pytest.approx(1.0, abs=1e-3)


def test_a_token_that_was_cut_off_has_no_probability_and_one_on_the_edge_no_place():
    assert listed(LIST, Sampler(top_k=2)).place("c") == (1.0, 0.0)
    assert listed(LIST, Sampler(top_k=2)).place("never listed") == (1.0, 0.0)
    assert listed(LIST, Sampler(top_p=0.81)).place("c") is None
    assert listed(LIST, Sampler()).place("b") == pytest.approx((0.5, 0.3))


def test_a_list_that_does_not_reach_far_enough_tells_nothing():
    short = {"a": log(0.4), "b": log(0.2)}
    assert listed(short, Sampler(temperature=1.5)) is None
    assert listed(short, Sampler(top_p=0.95)) is None
    assert listed(short, Sampler(top_k=10)) is None
    assert listed(short, Sampler(min_p=0.1)) is None
    assert listed(short, Sampler()) is not None


@pytest.mark.parametrize(
    "logprobs", [{}, {"a": 0.5}, {"a": float("nan")}, {"a": log(0.8), "b": log(0.7)}]
)
def test_what_is_no_distribution_is_none(logprobs):
    assert listed(logprobs, Sampler()) is None
    assert listed(LIST, Sampler(temperature=0.0)) is None


@given(
    st.lists(st.floats(0.01, 1.0), min_size=2, max_size=12),
    st.floats(0.3, 1.0),
    st.floats(0.3, 1.0),
)
def test_shares_always_sum_to_one(weights, heat, top_p):
    p = np.array(weights) / sum(weights)
    found = listed(
        {str(i): float(np.log(x)) for i, x in enumerate(p)}, Sampler(heat, None, top_p)
    )
    if found is not None:
        assert found.share.sum() == pytest.approx(1.0)
        assert (np.diff(found.share[:-1]) <= 1e-9).all()


def test_draws_beside_a_border_are_held_against_what_is_left():
    """Tokens on the edge of top-p are not looked at; the others share the rest."""
    p = {"a": 0.5, "b": 0.105, "c": 0.2, "d": 0.195}
    logs = {token: log(value) for token, value in p.items()}
    found = listed(logs, Sampler(top_p=0.7))
    assert found.border == {"d"}
    a, c = found.place("a"), found.place("c")
    assert a == (0.0, pytest.approx(0.5 / 0.7))
    assert c == (pytest.approx(0.5 / 0.7), pytest.approx(0.2 / 0.7))
    assert found.place("d") is None
