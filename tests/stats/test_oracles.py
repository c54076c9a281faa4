"""Independent implementations agree, where they answer at all."""

import numpy as np
import pytest
import scipy.stats

from routeproof.stats import paired_table, proportion
from routeproof.stats.clusters import clustered
from routeproof.stats.mean_bounds import bca_bound, student_t
from routeproof.stats.paired_binary import harm_p_value
from routeproof.stats.two_sample import energy_test

FLIPS = [(0, 0), (1, 0), (3, 9), (12, 12), (40, 61), (500, 430)]


@pytest.mark.parametrize(("losses", "gains"), FLIPS)
def test_mcnemar_is_statsmodels(losses, gains):
    tables = pytest.importorskip("statsmodels.stats.contingency_tables")
    table = [[10, losses], [gains, 7]]
    exact = tables.mcnemar(table, exact=True).pvalue
    assert paired_table.mcnemar_exact(losses, gains) == pytest.approx(exact, rel=1e-9)
    # With a correction larger than the gap others square a negative number.
    if losses != gains:
        for continuity in (True, False):
            theirs = tables.mcnemar(table, exact=False, correction=continuity)
            ours = paired_table.mcnemar_chi_square(losses, gains, continuity=continuity)
            assert ours == pytest.approx((theirs.statistic, theirs.pvalue), rel=1e-9)


@pytest.mark.parametrize(("losses", "gains"), FLIPS[1:])
def test_harm_is_scipys_binomial_test(losses, gains):
    theirs = scipy.stats.binomtest(losses, losses + gains, alternative="greater")
    assert harm_p_value(losses=losses, gains=gains) == pytest.approx(theirs.pvalue)


@pytest.mark.parametrize(("x", "n"), [(0, 20), (7, 30), (30, 30)])
def test_intervals_of_a_share_are_scipys(x, n):
    theirs = scipy.stats.binomtest(x, n)
    for of, name in (
        (proportion.clopper_pearson, "exact"),
        (proportion.wilson, "wilson"),
    ):
        limits = theirs.proportion_ci(0.9, method=name)
        ours = of(x, n, 0.9)
        assert (ours.low, ours.high) == pytest.approx(
            (limits.low, limits.high), abs=1e-9
        )


def test_the_t_bound_is_scipys_for_clusters_of_one():
    values = np.random.default_rng(0).normal(0.01, 0.2, 80)
    t = student_t(clustered(values, np.arange(80)))
    theirs = scipy.stats.ttest_1samp(values, -0.02, alternative="greater")
    assert 1 - t.p_below(-0.02) == pytest.approx(theirs.pvalue)
    low, high = scipy.stats.ttest_1samp(values, 0).confidence_interval(0.9)
    ours = t.interval(0.05)
    assert (ours.low, ours.high) == pytest.approx((low, high))


@pytest.mark.slow
def test_bca_is_scipys_within_resampling_noise():
    values = np.random.default_rng(1).beta(0.4, 2.0, 150) - 0.2
    theirs = scipy.stats.bootstrap(
        (values,), np.mean, confidence_level=0.9, n_resamples=20_000, rng=2
    ).confidence_interval
    ours = bca_bound(
        clustered(values, np.arange(150)),
        tolerance=0.05,
        alpha=0.05,
        resamples=20_000,
        rng=np.random.default_rng(3),
    )
    assert ours.low == pytest.approx(theirs.low, abs=5e-4)


def test_energy_distance_is_scipys():
    rng = np.random.default_rng(4)
    a, b = rng.gamma(3, 50, 12), rng.gamma(3, 80, 9)
    theirs = scipy.stats.energy_distance(np.log1p(a), np.log1p(b))
    # scipy gives the root of twice the Cramer distance, ours is its square.
    assert energy_test([a], [b], permutations=9).statistic == pytest.approx(theirs**2)
