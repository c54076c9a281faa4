"""Paired right/wrong scores: published answers, and error rates by enumeration."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr

from routeproof.stats.exact_paired import (
    Region,
    critical_region,
    exact_p_value,
    favourable_region,
    probability,
)
from routeproof.stats.paired_binary import no_new_failures, non_inferiority
from routeproof.stats.tango import score, tango_interval


def test_exact_and_score_agree_once_pairs_flip():
    exact = exact_p_value(30, 28, 1000, 0.02)
    assert exact == pytest.approx(0.0116, abs=2e-4)
    assert float(ndtr(score(30, 28, 1000, 0.02))) == pytest.approx(0.0116, abs=5e-5)


def test_the_score_alone_would_certify_268_pairs_without_a_flip():
    assert exact_p_value(0, 0, 268, 0.01) == pytest.approx(0.0676, abs=5e-5)
    assert float(ndtr(score(0, 0, 268, 0.01))) == pytest.approx(0.050, abs=5e-4)


@pytest.mark.parametrize(
    ("n", "tolerance"), [(299, 0.01), (149, 0.02), (99, 0.03), (59, 0.05)]
)
def test_no_flip_certifies_from_the_minimum_on_and_not_before(n, tolerance):
    at = non_inferiority(losses=0, gains=0, n=n, tolerance=tolerance, alpha=0.05)
    before = non_inferiority(
        losses=0, gains=0, n=n - 1, tolerance=tolerance, alpha=0.05
    )
    assert (at.decision, at.n_needed, at.n_minimum) == ("certified", None, n)
    assert (before.decision, before.n_needed) == ("undecided", n)
    assert before.note == "not powered"


@pytest.mark.slow
@pytest.mark.parametrize("alpha", [0.05, 0.025])
@pytest.mark.parametrize(("n", "tolerance"), [(10, 0.1), (30, 0.03), (40, 0.08)])
def test_a_route_that_loses_the_tolerance_is_certified_at_most_at_alpha(
    n, tolerance, alpha
):
    """Full enumeration: every table, by the p-value itself, over a nuisance grid."""
    most = np.full(n + 1, -1)
    for flips in range(n + 1):
        while most[flips] < flips and (
            exact_p_value(
                int(most[flips] + 1), int(flips - most[flips] - 1), n, tolerance
            )
            <= alpha
        ):
            most[flips] += 1
    region = Region(n=n, most_losses=most)
    flips = tolerance + (1 - tolerance) * np.linspace(0, 1, 1500) ** 2
    for loss in (tolerance, tolerance * 1.3, tolerance * 2):
        share = np.maximum(flips, loss)
        assert probability(region, share, loss).max() <= alpha


@pytest.mark.slow
def test_the_region_of_the_planner_is_that_of_the_decision_or_a_little_smaller():
    n, tolerance = 120, 0.04
    region = critical_region(n, tolerance, 0.05)
    left_out = 0
    for flips in range(25):
        for losses in range(flips + 1):
            p = exact_p_value(losses, flips - losses, n, tolerance)
            planned = losses <= region.most_losses[flips]
            assert p <= 0.05 or not planned
            left_out += p <= 0.05 and not planned
    assert left_out <= 3


def test_probabilities_over_all_tables_are_those_of_the_trinomial():
    rng = np.random.default_rng(3)
    region = favourable_region(40, 0.05, -0.4)
    draws = rng.multinomial(40, [0.12, 0.07, 0.81], size=200_000)
    flips = draws[:, 0] + draws[:, 1]
    inside = flips < region.most_losses.size
    hit = draws[inside, 0] <= region.most_losses[flips[inside]]
    expected = float(probability(region, np.array([0.19]), 0.05)[0])
    assert hit.sum() / 200_000 == pytest.approx(expected, abs=0.004)


@pytest.mark.slow
@given(
    n=st.integers(1, 400),
    data=st.data(),
    tolerance=st.sampled_from([0.01, 0.02, 0.05]),
)
@settings(max_examples=60, deadline=None)
def test_more_losses_or_missing_pairs_never_help(n, data, tolerance):
    losses = data.draw(st.integers(0, min(n - 1, 12)))
    gains = data.draw(st.integers(0, min(n - losses - 1, 12)))
    kept = dict(gains=gains, n=n, tolerance=tolerance, alpha=0.05)
    p = non_inferiority(losses=losses, **kept).p_value
    worse = non_inferiority(losses=losses + 1, **kept).p_value
    gaps = non_inferiority(losses=losses, missing=2, **kept).p_value
    # Far from any decision the interval of the nuisance may move p a little.
    assert worse >= min(p, 0.4)
    assert gaps >= p


def test_harm_that_is_shown_but_small_passes_with_a_note():
    answer = non_inferiority(losses=9, gains=0, n=4000, tolerance=0.02, alpha=0.05)
    assert answer.decision == "certified"
    assert answer.note == "worse, within tolerance"


def test_harm_that_is_shown_and_not_excluded_is_harm():
    answer = non_inferiority(losses=30, gains=10, n=1000, tolerance=0.02, alpha=0.05)
    assert answer.decision == "harmed"
    assert answer.harm_p_value == pytest.approx(0.00111, abs=5e-5)
    assert answer.estimate == pytest.approx(-0.02)


def test_missing_pairs_are_counted_as_losses_before_anything_is_certified():
    whole = non_inferiority(losses=0, gains=0, n=320, tolerance=0.01, alpha=0.05)
    gap = non_inferiority(
        losses=0, gains=0, n=320, tolerance=0.01, alpha=0.05, missing=3
    )
    assert whole.decision == "certified"
    assert gap.decision == "undecided"
    assert gap.note == "certified only if the missing pairs are no losses"


def test_nothing_measured_decides_nothing():
    answer = non_inferiority(losses=0, gains=0, n=0, tolerance=0.01, alpha=0.05)
    assert answer.decision == "undecided"
    assert answer.interval.low is None
    assert answer.n_needed == 299


@pytest.mark.parametrize(
    ("losses", "gains", "n", "tolerance"),
    [(5, 6, 10, 0.01), (-1, 0, 10, 0.01), (0, 0, 10, 0.0), (0, 0, 10, 1.0)],
)
def test_impossible_numbers_are_refused(losses, gains, n, tolerance):
    with pytest.raises(ValueError):
        non_inferiority(
            losses=losses, gains=gains, n=n, tolerance=tolerance, alpha=0.05
        )


@pytest.mark.parametrize(
    ("losses", "gains", "control", "decision"),
    [
        (0, 0, 0, "certified"),
        (1, 0, 0, "harmed"),
        (3, 2, 3, "certified"),
        (5, 2, 3, "undecided"),
        (30, 2, 3, "harmed"),
        (0, 0, None, "certified"),
        (2, 1, None, "undecided"),
        (9, 0, None, "harmed"),
    ],
)
def test_tolerance_zero_is_judged_against_the_control(losses, gains, control, decision):
    answer = no_new_failures(
        losses=losses,
        gains=gains,
        n=200,
        alpha=0.05,
        control_losses=control,
        control_n=200 if control is not None else 0,
    )
    assert answer.decision == decision


def test_tolerance_zero_is_not_certified_over_a_missing_pair():
    answer = no_new_failures(
        losses=0, gains=0, n=200, alpha=0.05, control_losses=0, control_n=200, missing=1
    )
    assert answer.decision == "undecided"


@pytest.mark.slow
@given(n=st.integers(1, 300), data=st.data(), level=st.sampled_from([0.8, 0.9, 0.95]))
@settings(max_examples=80, deadline=None)
def test_the_interval_holds_the_estimate_and_mirrors_when_arms_swap(n, data, level):
    losses = data.draw(st.integers(0, n))
    gains = data.draw(st.integers(0, n - losses))
    one = tango_interval(losses=losses, gains=gains, n=n, level=level)
    other = tango_interval(losses=gains, gains=losses, n=n, level=level)
    assert one.low <= (gains - losses) / n + 1e-9
    assert one.high >= (gains - losses) / n - 1e-9
    assert one.low == pytest.approx(-other.high, abs=1e-8)
