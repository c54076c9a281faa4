"""Graded scores: false certification under the distributions that fool means."""

import numpy as np
import pytest

from routeproof.stats.clusters import Differences, case_differences, clustered
from routeproof.stats.mean_bounds import (
    bca_bound,
    betting,
    betting_minimum,
    student_t,
    worst_case_bound,
)
from routeproof.stats.paired_graded import graded_non_inferiority

LOSS = 0.02


def symmetric(rng, n):
    return np.clip(rng.normal(-LOSS, 0.15, n), -1, 1)


def rare_collapse(rng, n):
    return -1.0 * (rng.random(n) < LOSS)


def rare_drop_in_noise(rng, n):
    return np.clip(rng.normal(0, 0.05, n) - 0.5 * (rng.random(n) < 2 * LOSS), -1, 1)


def mixture(rng, n):
    # 10 % fall by 0.4 on average, the rest rise by 0.02 / 0.9: the mean is -LOSS.
    worse = rng.random(n) < 0.1
    return np.where(worse, -0.8 * rng.random(n), rng.normal(0.02 / 0.9, 0.05, n))


def certified_share(draw, n, *, tolerance=LOSS, runs=150, cluster=None):
    rng = np.random.default_rng(20261130)
    hits = 0
    for seed in range(runs):
        answer = graded_non_inferiority(
            Differences.of(draw(rng, n), cluster),
            tolerance=tolerance,
            alpha=0.05,
            resamples=500,
            seed=seed,
        )
        hits += answer.mean.decision == "certified"
    return hits / runs


def limit(rate, runs):
    return rate + 3 * (rate * (1 - rate) / runs) ** 0.5


@pytest.mark.slow
@pytest.mark.parametrize("n", [50, 200])
@pytest.mark.parametrize(
    "draw", [symmetric, rare_collapse, rare_drop_in_noise, mixture]
)
def test_a_route_that_loses_the_tolerance_is_certified_at_most_at_alpha(draw, n):
    assert certified_share(draw, n) <= limit(0.05, 150)


@pytest.mark.slow
def test_the_t_interval_alone_would_certify_a_rare_collapse():
    rng = np.random.default_rng(1)
    fooled = 0
    for _ in range(300):
        sample = clustered(rare_collapse(rng, 50), np.arange(50))
        fooled += student_t(sample).interval(0.05).low > -LOSS
    assert fooled / 300 > 0.25


@pytest.mark.slow
def test_clustered_cases_are_certified_at_most_at_alpha():
    cluster = np.repeat(np.arange(40), 5)

    def draw(rng, n):
        shared = rng.normal(0, 0.15, 40)[cluster]
        return np.clip(shared + rng.normal(-LOSS, 0.05, n), -1, 1)

    assert certified_share(draw, 200, cluster=cluster) <= limit(0.05, 150)
    # The same cases taken as independent: the mistake this guards against.
    assert certified_share(draw, 200, cluster=None) > 0.08


@pytest.mark.slow
def test_an_equal_route_is_certified_with_enough_cases():
    def equal(rng, n):
        return rng.normal(0, 0.1, n).clip(-1, 1)

    assert certified_share(equal, 400, runs=60) > 0.85


def test_no_difference_at_all_certifies_from_the_minimum_on():
    minimum = betting_minimum(0.01, 0.05)
    assert 299 <= minimum <= 330
    for n, decision in ((minimum, "certified"), (minimum - 1, "undecided")):
        answer = graded_non_inferiority(
            Differences.of(np.zeros(n)), tolerance=0.01, alpha=0.05
        ).mean
        assert (answer.decision, answer.method) == (decision, "betting")
        assert answer.n_minimum == minimum


def test_the_worst_case_bound_of_no_loss_is_the_binomial_one():
    sample = clustered(np.zeros(100), np.arange(100))
    bound = worst_case_bound(
        sample,
        tolerance=0.03,
        alpha=0.05,
        resamples=4000,
        rng=np.random.default_rng(0),
    )
    assert bound.low == pytest.approx(-(1 - 0.05**0.01), rel=0.06)
    assert bound.p_value == pytest.approx(0.97**100, abs=0.012)


def test_bca_says_when_it_is_not_defined():
    sample = clustered(np.r_[-1.0, np.zeros(99)], np.arange(100))
    rng = np.random.default_rng(0)
    flat = clustered(np.zeros(20), np.arange(20))
    kept = dict(tolerance=0.02, alpha=0.05, resamples=500, rng=rng)
    assert bca_bound(flat, **kept) is None
    one = bca_bound(sample, **kept)
    assert one is None or one.low < -0.01


def test_bounds_and_p_values_tell_the_same():
    rng = np.random.default_rng(4)
    values = np.clip(rng.normal(0.0, 0.2, 300), -1, 1)
    sample = clustered(values, np.arange(300))
    for of in (bca_bound, worst_case_bound):
        for tolerance in (0.005, 0.02, 0.04):
            bound = of(
                sample,
                tolerance=tolerance,
                alpha=0.05,
                resamples=4000,
                rng=np.random.default_rng(1),
            )
            clear = abs(bound.low + tolerance) > 1e-3
            assert not clear or (bound.low > -tolerance) == (bound.p_value <= 0.05)


@pytest.mark.slow
def test_the_betting_test_holds_its_level_where_everything_else_fails():
    rng = np.random.default_rng(9)
    hits = 0
    for _ in range(600):
        sample = clustered(rare_collapse(rng, 160), np.arange(160))
        p, _ = betting(sample, tolerance=LOSS, alpha=0.05, rng=rng)
        hits += p <= 0.05
    assert hits / 600 <= limit(0.05, 600)


@pytest.mark.slow
def test_each_end_of_a_betting_interval_misses_the_mean_as_seldom_as_it_says():
    rng = np.random.default_rng(10)
    too_high = too_low = 0
    for _ in range(600):
        sample = clustered(rare_collapse(rng, 160), np.arange(160))
        _, found = betting(sample, tolerance=0.02, alpha=0.05, rng=rng)
        too_high += found.low > -LOSS
        too_low += found.high < -LOSS
    assert max(too_high, too_low) / 600 <= limit(0.05, 600)


def test_equal_answers_leave_an_interval_of_what_their_number_can_exclude():
    widths = []
    for n in (16, 72, 500):
        found = graded_non_inferiority(
            Differences.of(np.zeros(n)), tolerance=0.05, alpha=0.05
        ).mean
        assert found.interval.method == "betting"
        assert found.interval.low < 0.0 < found.interval.high
        assert found.interval.low == pytest.approx(-found.interval.high, abs=1e-5)
        assert (found.interval.low >= -0.05) == (found.decision == "certified")
        widths.append(found.interval.high)
    assert widths == sorted(widths, reverse=True)
    assert widths[0] > 0.1


@pytest.mark.parametrize("tolerance", [0.01, 0.03, 0.05, 0.2])
def test_a_betting_interval_and_its_test_tell_the_same(tolerance):
    rng = np.random.default_rng(11)
    for _ in range(20):
        values = np.where(rng.random(120) < 0.02, -0.4, 0.0)
        sample = clustered(values, np.arange(120))
        p, found = betting(sample, tolerance=tolerance, alpha=0.05, rng=rng)
        assert (found.low >= -tolerance) == (p <= 0.05)


def test_shown_harm_is_harm_and_three_small_losses_are_not():
    rng = np.random.default_rng(0)
    worse = graded_non_inferiority(
        Differences.of(np.clip(rng.normal(-0.1, 0.1, 200), -1, 1)),
        tolerance=0.02,
        alpha=0.05,
    )
    assert worse.mean.decision == "harmed"
    few = np.zeros(200)
    few[:3] = -0.05
    answer = graded_non_inferiority(Differences.of(few), tolerance=0.01, alpha=0.05)
    assert answer.mean.decision == "undecided"
    assert answer.mean.harm_p_value > 0.1


def test_a_collapse_that_the_mean_hides_is_seen_by_its_companion():
    values = np.full(1000, 0.01)
    values[:40] = -0.5
    answer = graded_non_inferiority(
        Differences.of(values), tolerance=0.03, alpha=0.05, drop_tolerance=0.02
    )
    assert answer.mean.decision == "certified"
    assert answer.drops.decision == "harmed"


def test_trials_are_averaged_into_their_case_and_unknown_scores_counted_at_worst():
    seen = case_differences(
        case=["a", "a", "b", "b", "c"],
        baseline=[1.0, 0.0, 0.5, 0.5, 0.8],
        candidate=[1.0, 1.0, 0.0, 0.9, 0.0],
        baseline_known=[True, True, True, True, True],
        candidate_known=[True, True, True, False, False],
    )
    assert seen.value.tolist() == [0.5, -0.5, 0.0]
    assert seen.known.tolist() == [True, True, False]
    assert seen.worst == pytest.approx([0.5, -0.5, -0.8])
    assert seen.missing_pairs == 2


def test_missing_scores_can_only_take_a_certificate_away():
    zeros = np.zeros(400)
    kept = dict(case=np.arange(400), baseline=zeros + 0.5, baseline_known=zeros == 0)
    whole = case_differences(candidate=zeros + 0.5, candidate_known=zeros == 0, **kept)
    gaps = case_differences(
        candidate=zeros + 0.5, candidate_known=np.arange(400) >= 8, **kept
    )
    answers = [
        graded_non_inferiority(d, tolerance=0.01, alpha=0.05).mean
        for d in (whole, gaps)
    ]
    assert [a.decision for a in answers] == ["certified", "undecided"]
    assert answers[1].note == "certified only if the missing scores are no losses"


def test_one_case_decides_nothing():
    answer = graded_non_inferiority(Differences.of([0.0]), tolerance=0.1, alpha=0.05)
    assert answer.mean.decision == "undecided"
    assert answer.mean.interval.low is None


@pytest.mark.parametrize("bad", [[float("nan")], [1.5]])
def test_scores_out_of_range_are_refused(bad):
    with pytest.raises(ValueError):
        Differences.of(bad)
