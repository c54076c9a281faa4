"""The plan keeps its promises: minima, enumeration, simulated power."""

import numpy as np
import pytest

from routeproof.stats.clusters import Differences
from routeproof.stats.paired_binary import non_inferiority
from routeproof.stats.paired_graded import graded_non_inferiority
from routeproof.stats.planner import (
    Spread,
    approximate_pairs,
    graded_cases_needed,
    pairs_needed,
    power,
    spread_of,
    zero_flip_minimum,
)


@pytest.mark.parametrize(
    ("tolerance", "alpha", "n"),
    [
        (0.005, 0.05, 598),
        (0.01, 0.05, 299),
        (0.02, 0.05, 149),
        (0.03, 0.05, 99),
        (0.05, 0.05, 59),
    ],
)
def test_fewest_pairs_without_a_flip(tolerance, alpha, n):
    assert zero_flip_minimum(tolerance, alpha) == n
    assert power(n=n, flips=0.0, tolerance=tolerance, alpha=alpha) == pytest.approx(1)
    assert power(n=n - 1, flips=0.0, tolerance=tolerance, alpha=alpha) == 0.0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("tolerance", "flips", "published"),
    [(0.05, 0.01, 93), (0.05, 0.02, 101), (0.05, 0.05, 158), (0.03, 0.02, 218)],
)
def test_pairs_needed_are_those_of_full_enumeration(tolerance, flips, published):
    n = pairs_needed(flips=flips, tolerance=tolerance, alpha=0.05)
    assert n == pytest.approx(published, rel=0.02)


@pytest.mark.slow
@pytest.mark.parametrize(("tolerance", "flips"), [(0.05, 0.05), (0.03, 0.02)])
def test_simulated_power_is_what_was_promised(tolerance, flips):
    n = pairs_needed(flips=flips, tolerance=tolerance, alpha=0.05)
    promised = power(n=n, flips=flips, tolerance=tolerance, alpha=0.05)
    rng = np.random.default_rng(0)
    tables = rng.multinomial(n, [flips / 2, flips / 2, 1 - flips], size=4000)
    kept = dict(n=n, tolerance=tolerance, alpha=0.05)
    seen, times = np.unique(tables, axis=0, return_counts=True)
    certified = sum(
        int(count)
        for (b, c, _), count in zip(seen, times, strict=True)
        if non_inferiority(losses=int(b), gains=int(c), **kept).decision == "certified"
    )
    assert promised >= 0.8
    assert certified / 4000 == pytest.approx(promised, abs=0.02)


@pytest.mark.slow
def test_power_does_not_jump_between_odd_and_even_numbers():
    steps = [
        power(n=n, flips=0.02, tolerance=0.02, alpha=0.05) for n in (401, 402, 403)
    ]
    assert max(steps) - min(steps) < 0.01


@pytest.mark.parametrize(
    ("flips", "tolerance", "published"),
    [(0.05, 0.01, 3133), (0.10, 0.01, 6203), (0.10, 0.02, 1565), (0.10, 0.05, 270)],
)
def test_the_quick_formula_is_near_where_flips_are_many(flips, tolerance, published):
    n = approximate_pairs(flips=flips, tolerance=tolerance, alpha=0.05)
    assert n == pytest.approx(published, rel=0.02)


def test_a_true_loss_or_more_flips_cost_pairs():
    kept = dict(tolerance=0.02, alpha=0.05)
    assert approximate_pairs(flips=0.05, loss=0.01, **kept) > 3 * approximate_pairs(
        flips=0.05, **kept
    )
    assert power(n=400, flips=0.02, **kept) > power(n=400, flips=0.05, **kept)
    assert power(n=400, flips=0.02, loss=0.02, **kept) <= 0.05


def test_the_spread_is_split_into_cases_and_trials():
    rng = np.random.default_rng(1)
    case = rng.normal(0, 0.1, 4000)
    seen = spread_of([c + rng.normal(0, 0.3, 4) for c in case])
    assert seen.between == pytest.approx(0.01, rel=0.2)
    assert seen.within == pytest.approx(0.09, rel=0.05)
    assert seen.variance(9) == pytest.approx(0.02, rel=0.1)
    once = spread_of([[x] for x in case])
    assert (once.within, once.between) == (0.0, pytest.approx(0.01, rel=0.1))
    assert spread_of([[0.1, 0.2]]) is None


def test_trials_help_only_against_their_own_noise():
    kept = dict(tolerance=0.02, alpha=0.05)
    cases = Spread(between=0.04, within=0.0)
    noise = Spread(between=0.0, within=0.04)
    assert graded_cases_needed(cases, trials=1, **kept) == graded_cases_needed(
        cases, trials=8, **kept
    )
    assert graded_cases_needed(noise, trials=4, **kept) < 0.4 * graded_cases_needed(
        noise, trials=1, **kept
    )


@pytest.mark.slow
@pytest.mark.parametrize("sd", [0.1, 0.2])
def test_graded_scores_keep_the_planned_power(sd):
    spread = Spread(between=sd * sd, within=0.0)
    n = graded_cases_needed(spread, trials=1, tolerance=0.04, alpha=0.05)
    rng = np.random.default_rng(2)
    certified = [
        graded_non_inferiority(
            Differences.of(rng.normal(0, sd, n).clip(-1, 1)),
            tolerance=0.04,
            alpha=0.05,
            resamples=1000,
            seed=seed,
        ).mean.decision
        == "certified"
        for seed in range(100)
    ]
    assert np.mean(certified) >= 0.78 - 3 * (0.8 * 0.2 / 100) ** 0.5
