import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from routeproof.errors import ConfigError
from routeproof.workloads.arrivals import arrival_offsets_s, closed_offsets_s

kinds = st.sampled_from(["constant", "poisson", "gamma"])


@pytest.mark.slow
@given(
    kind=kinds,
    rate=st.floats(0.1, 500),
    n=st.integers(1, 300),
    seed=st.integers(0, 2**32),
    burstiness=st.floats(0.1, 20),
)
def test_offsets_are_absolute_ascending_and_the_same_for_a_seed(
    kind, rate, n, seed, burstiness
):
    offsets = arrival_offsets_s(kind, rate, seed=seed, n=n, burstiness=burstiness)
    again = arrival_offsets_s(kind, rate, seed=seed, n=n, burstiness=burstiness)
    assert offsets.shape == (n,)
    assert np.all(np.isfinite(offsets)) and offsets[0] >= 0
    assert np.all(np.diff(offsets) >= 0)
    assert np.array_equal(offsets, again)


@pytest.mark.slow
@given(kind=kinds, rate=st.floats(0.5, 200), duration=st.floats(0.1, 20))
def test_a_duration_ends_the_stage_and_does_not_change_what_comes_before(
    kind, rate, duration
):
    offsets = arrival_offsets_s(kind, rate, seed=3, duration_s=duration, burstiness=0.4)
    longer = arrival_offsets_s(kind, rate, seed=3, n=len(offsets) + 1, burstiness=0.4)
    assert np.all(offsets < duration)
    assert longer[-1] >= duration
    assert np.array_equal(offsets, longer[:-1])


def test_constant_arrivals_are_evenly_spaced_from_zero():
    offsets = arrival_offsets_s("constant", 4.0, seed=0, n=5)
    assert offsets.tolist() == [0.0, 0.25, 0.5, 0.75, 1.0]


def test_poisson_gaps_are_exponential_with_the_mean_asked_for():
    gaps = np.diff(arrival_offsets_s("poisson", 20.0, seed=11, n=40_000))
    assert gaps.mean() == pytest.approx(0.05, rel=0.02)
    assert np.mean(gaps > 0.05) == pytest.approx(math.exp(-1), abs=0.01)


@pytest.mark.parametrize("burstiness", [0.25, 4.0])
def test_burstiness_sets_the_variation_of_the_gaps(burstiness):
    gaps = np.diff(
        arrival_offsets_s("gamma", 10.0, seed=5, n=60_000, burstiness=burstiness)
    )
    assert gaps.mean() == pytest.approx(0.1, rel=0.03)
    variation = gaps.var() / gaps.mean() ** 2
    assert variation == pytest.approx(1 / burstiness, rel=0.06)


def test_gamma_of_burstiness_one_is_poisson():
    one = arrival_offsets_s("gamma", 3.0, seed=9, n=50)
    assert np.array_equal(one, arrival_offsets_s("poisson", 3.0, seed=9, n=50))


@pytest.mark.parametrize(
    ("rate", "asked"),
    [
        (0.0, {"n": 3}),
        (float("nan"), {"n": 3}),
        (float("inf"), {"n": 3}),
        (1.0, {}),
        (1.0, {"n": 0}),
        (1.0, {"duration_s": -1.0}),
        (1.0, {"n": 3, "burstiness": 0.0}),
        (1e9, {"duration_s": 1e9}),
    ],
)
@pytest.mark.parametrize("kind", ["constant", "poisson"])
def test_what_cannot_be_scheduled_is_refused(kind, rate, asked):
    with pytest.raises(ConfigError):
        arrival_offsets_s(kind, rate, seed=0, **asked)


def test_a_ramp_spreads_the_streams_of_a_closed_loop():
    assert closed_offsets_s(4, ramp_s=2.0).tolist() == [0.0, 0.5, 1.0, 1.5]
    assert closed_offsets_s(3).tolist() == [0.0, 0.0, 0.0]
    with pytest.raises(ConfigError):
        closed_offsets_s(0)
