"""Adjusted p-values and the screening of slices."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from routeproof.stats.multiplicity import (
    benjamini_hochberg,
    holm,
    holm_of_flips,
)
from routeproof.stats.paired_binary import harm_p_value
from routeproof.stats.screening import (
    SlicePairs,
    least_pairs_to_show_harm,
    screen,
    shrink,
)

P_VALUES = st.lists(st.floats(0, 1), min_size=1, max_size=30)


def test_holm_and_benjamini_hochberg_on_a_small_family():
    p = [0.01, 0.04, 0.03, 0.005]
    assert holm(p) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert benjamini_hochberg(p) == pytest.approx([0.02, 0.04, 0.04, 0.02])


@given(P_VALUES)
def test_other_tools_agree(p):
    oracle = pytest.importorskip("statsmodels.stats.multitest")
    assert holm(p) == pytest.approx(oracle.multipletests(p, method="holm")[1])
    assert benjamini_hochberg(p) == pytest.approx(
        oracle.multipletests(p, method="fdr_bh")[1]
    )


@given(P_VALUES, st.randoms(use_true_random=False))
def test_adjusting_never_lowers_keeps_order_and_ignores_where_a_value_stands(p, random):
    for adjust in (holm, benjamini_hochberg):
        adjusted = adjust(p)
        assert np.all(adjusted >= np.array(p) - 1e-15)
        assert np.all(adjusted <= 1)
        order = np.argsort(p, kind="stable")
        assert np.all(np.diff(adjusted[order]) >= -1e-15)
        mixed = list(range(len(p)))
        random.shuffle(mixed)
        assert adjust([p[i] for i in mixed]) == pytest.approx(adjusted[mixed])
    assert np.all(benjamini_hochberg(p) <= holm(p) + 1e-12)


def mcnemar(flips):
    return harm_p_value(losses=flips, gains=0)


def test_tests_that_cannot_accuse_cost_the_others_nothing():
    """One slice with 9 of 9 flips lost among forty that hardly flip."""
    p = [mcnemar(9)] + [mcnemar(2)] * 40
    assert holm(p)[0] > 0.05
    found = holm_of_flips(p, [9] + [2] * 40)
    assert found[0] == pytest.approx(2**-9)
    assert (found[1:] > 0.05).all()


@given(P_VALUES)
def test_without_flips_it_is_holm_up_to_ties(p):
    assert np.all(holm_of_flips(p, [None] * len(p)) <= holm(p) + 1e-12)
    if len(set(p)) == len(p):
        assert holm_of_flips(p, [None] * len(p)) == pytest.approx(holm(p))


@pytest.mark.slow
@pytest.mark.parametrize("rate", [0.01, 0.05, 0.2])
def test_it_keeps_its_error_rate_over_slices_of_equal_routes(rate):
    rng = np.random.default_rng(11)
    accused = 0
    for _ in range(1500):
        flips = rng.binomial(rng.integers(10, 120, 25), rate)
        losses = rng.binomial(flips, 0.5)
        p = [
            harm_p_value(losses=int(b), gains=int(n - b))
            for b, n in zip(losses, flips, strict=True)
        ]
        accused += bool((holm_of_flips(p, flips.tolist()) <= 0.05).any())
    assert accused / 1500 <= 0.05 + 3 * (0.05 * 0.95 / 1500) ** 0.5


def test_as_many_counts_as_p_values():
    with pytest.raises(ValueError, match="2 counts"):
        holm_of_flips([0.1], [1, 2])


def test_what_is_no_p_value_is_refused():
    for bad in ([-0.1], [1.1], [float("nan")]):
        with pytest.raises(ValueError):
            holm(bad)


def test_slices_are_told_apart():
    found = {
        s.name: s.status
        for s in screen(
            {
                "broken": SlicePairs(losses=20, gains=1, n=60),
                "odd": SlicePairs(losses=9, gains=1, n=80),
                "fine": SlicePairs(losses=3, gains=3, n=300),
                "tiny": SlicePairs(losses=1, gains=0, n=4),
                "empty": SlicePairs(losses=0, gains=0, n=0),
            },
            alpha=0.05,
        )
    }
    assert found == {
        "broken": "harmed",
        "odd": "look",
        "fine": "clear",
        "tiny": "not_powered",
        "empty": "not_powered",
    } or found == {**found, "odd": "harmed"}


def test_the_worst_slice_comes_first_and_nothing_is_lost():
    slices = {f"s{i}": SlicePairs(losses=i, gains=2, n=50) for i in range(8)}
    found = screen(slices, alpha=0.05)
    assert found[0].name == "s7"
    assert {s.name for s in found} == set(slices)
    assert screen({}, alpha=0.05) == ()


@pytest.mark.slow
def test_many_equal_slices_rarely_raise_any_alarm():
    rng = np.random.default_rng(0)
    alarms = 0
    for _ in range(400):
        slices = {
            str(i): SlicePairs(
                losses=int(x := rng.binomial(200, 0.05)),
                gains=int(rng.binomial(200 - x, 0.05)),
                n=200,
            )
            for i in range(20)
        }
        alarms += any(s.status == "harmed" for s in screen(slices, alpha=0.05))
    assert alarms / 400 <= 0.05 + 3 * (0.05 * 0.95 / 400) ** 0.5


def test_a_slice_of_five_pairs_can_show_harm_alone_but_not_among_twenty():
    assert least_pairs_to_show_harm(1, 0.05) == 5
    assert least_pairs_to_show_harm(20, 0.05) == 9


def test_small_slices_are_pulled_to_the_middle_and_equal_ones_collapse():
    wild = [
        SlicePairs(losses=3, gains=0, n=6),
        SlicePairs(losses=10, gains=12, n=500),
        SlicePairs(losses=60, gains=2, n=500),
    ]
    small, big, bad = shrink(wild)
    assert abs(small) < 0.5 / 2
    assert bad == pytest.approx(-0.116, abs=0.02)
    assert big == pytest.approx(0.004, abs=0.02)
    calm = shrink([SlicePairs(losses=2, gains=2, n=100)] * 3)
    assert calm == pytest.approx([0.0] * 3)
    assert shrink([SlicePairs(losses=0, gains=0, n=0)]) == [0.0]
