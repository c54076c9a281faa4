"""Distributions over trials: level, power against injected faults, bad input."""

import numpy as np
import pytest
from scipy.stats import chi2_contingency, kstest
from stats import token_source

from routeproof.stats.sampled_tokens import sampled_tokens_test
from routeproof.stats.two_sample import categorical_test, energy_test, mmd_test


def prompts_of(rng, count, length=12):
    return [
        [token_source.distribution(rng, 12) for _ in range(length)]
        for _ in range(count)
    ]


def share_rejected(test, runs):
    return np.mean([test(seed) <= 0.05 for seed in range(runs)])


def limit(runs):
    return 0.05 + 3 * (0.05 * 0.95 / runs) ** 0.5


@pytest.mark.slow
@pytest.mark.parametrize("temperature", [1.0, 1.6])
def test_mmd_finds_a_temperature_and_keeps_its_level(temperature):
    rng = np.random.default_rng(1)
    prompts = prompts_of(rng, 15)

    def once(seed):
        a = token_source.answers(rng, prompts, 8)
        b = token_source.answers(rng, prompts, 8, temperature=temperature)
        return mmd_test(a, b, permutations=199, seed=seed).p_value

    rejected = share_rejected(once, 40)
    if temperature == 1.0:
        assert rejected <= limit(40)
    else:
        assert rejected > 0.8


def test_prompts_may_differ_as_they_like():
    """Arms that swap which prompt is easy would be told apart only across prompts."""
    a = [["yes"] * 6, ["a long answer"] * 6]
    assert mmd_test(a, a).p_value == 1.0
    assert mmd_test(a, a[::-1], permutations=199).p_value < 0.05


def test_texts_and_token_ids_are_compared_by_position():
    same = mmd_test([["abc", "abd"]], [["abc", "abd"]])
    ids = mmd_test([[[1, 2, 3], [1, 2, 4]]], [[[1, 2, 3], [1, 2, 4]]])
    assert same.statistic == pytest.approx(ids.statistic)
    empty = mmd_test([["", ""]], [["", ""]])
    assert empty.p_value == 1.0


@pytest.mark.slow
def test_energy_finds_longer_answers_and_keeps_its_level():
    rng = np.random.default_rng(2)

    def once(factor):
        def of(seed):
            mean = rng.uniform(20, 2000, 30)
            a = [rng.gamma(4, m / 4, 8) for m in mean]
            b = [rng.gamma(4, factor * m / 4, 8) for m in mean]
            return energy_test(a, b, permutations=199, seed=seed).p_value

        return of

    assert share_rejected(once(1.0), 100) <= limit(100)
    assert share_rejected(once(1.5), 30) > 0.9


@pytest.mark.slow
def test_categories_keep_their_level_where_tables_are_sparse():
    rng = np.random.default_rng(3)

    def once(shift):
        def of(seed):
            a, b = [], []
            for _ in range(25):
                p = rng.dirichlet([0.5] * 4)
                q = (1 - shift) * p + shift * p[::-1]
                a.append(list(rng.choice(4, 5, p=p)))
                b.append(list(rng.choice(4, 5, p=q)))
            return categorical_test(a, b, permutations=199, seed=seed).p_value

        return of

    assert share_rejected(once(0.0), 100) <= limit(100)
    assert share_rejected(once(0.7), 30) > 0.9


def test_the_categorical_statistic_is_pearsons():
    a, b = ["x"] * 12 + ["y"] * 5 + ["z"] * 3, ["x"] * 6 + ["y"] * 9 + ["z"] * 10
    table = [[12, 5, 3], [6, 9, 10]]
    seen = categorical_test([a], [b], permutations=20).statistic
    assert seen == pytest.approx(chi2_contingency(table).statistic)


def test_prompts_with_too_few_answers_are_counted_not_hidden():
    answer = mmd_test([["a"], [], ["a", "b"]], [["a"], ["b"], ["a"]], permutations=9)
    assert (answer.prompts, answer.skipped, answer.answers) == (1, 2, 3)
    assert mmd_test([["a"]], [["b"]]).p_value is None
    with pytest.raises(ValueError):
        mmd_test([["a"]], [])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "least", "most"),
    [
        ({}, 0.0, 0.17),
        ({"temperature": 1.1}, 0.9, 1.0),
        ({"temperature": 0.9}, 0.9, 1.0),
        ({"swap": 0.05}, 0.9, 1.0),
    ],
    ids=["none", "hotter", "colder", "swapped tokens"],
)
def test_the_place_of_sampled_tokens_finds_faults(fault, least, most):
    rng = np.random.default_rng(4)

    def once(seed):
        before, share = token_source.places(rng, 6000, **fault)
        return sampled_tokens_test(before, share, seed=seed).p_value

    assert least <= share_rejected(once, 30) <= most


def test_one_token_outside_the_support_is_enough():
    before, share = np.linspace(0, 0.5, 400), np.full(400, 0.3)
    share[7] = 0.0
    answer = sampled_tokens_test(before, share)
    assert (answer.outside_support, answer.p_value) == (1, 0.0)


def test_the_distance_from_uniform_is_kolmogorovs():
    rng = np.random.default_rng(5)
    place = rng.random(500) ** 1.1
    answer = sampled_tokens_test(place, np.full(500, 1e-9))
    expected = kstest(place, "uniform")
    assert answer.ks == pytest.approx(expected.statistic, abs=1e-6)
    assert answer.ks_p == pytest.approx(expected.pvalue, rel=0.05)


def test_a_fault_at_one_place_of_the_answer_names_the_place():
    rng = np.random.default_rng(6)
    position = np.tile(np.arange(80), 50)
    place = rng.random(position.size)
    late = position >= 70
    place[late] = place[late] ** 0.5
    answer = sampled_tokens_test(
        place, np.full(place.size, 1e-9), position=position, bands=8
    )
    assert answer.worst_band == 7
    assert answer.worst_band_p < 1e-6


def test_nothing_sampled_says_nothing_and_nonsense_is_refused():
    assert sampled_tokens_test([], []).p_value is None
    with pytest.raises(ValueError):
        sampled_tokens_test([0.9], [0.9])
    with pytest.raises(ValueError):
        sampled_tokens_test([float("nan")], [0.1])
