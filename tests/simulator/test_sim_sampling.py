"""Exact speculative sampling is exact, and each wrong turn is not."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from routeproof.simulator.sampling import Filter, speculate

P = np.array([0.5, 0.25, 0.15, 0.08, 0.02])
Q = np.array([0.2, 0.2, 0.2, 0.2, 0.2])
AFTER = {0: np.array([0.1, 0.2, 0.3, 0.2, 0.2]), 1: np.array([0.6, 0.1, 0.1, 0.1, 0.1])}


def target(context):
    return AFTER.get(context[-1], P) if context else P


def draft(context):
    return Q


def drawn(rule, n=6000, strength=0.0, drafts=2):
    rng = np.random.default_rng(5)
    return [
        speculate([], target, draft, drafts, rng, rule=rule, strength=strength)
        for _ in range(n)
    ]


def first_counts(found):
    return np.bincount([f.tokens[0] for f in found], minlength=5)


@pytest.mark.slow
def test_the_first_token_is_distributed_as_the_target_says():
    counts = first_counts(drawn("exact"))
    assert chisquare(counts, P * counts.sum()).pvalue > 0.01


@pytest.mark.slow
def test_the_second_token_is_distributed_as_the_target_says_after_the_first():
    pairs = [f.tokens[:2] for f in drawn("exact") if len(f.tokens) > 1]
    after = np.bincount([b for a, b in pairs if a == 0], minlength=5)
    # A pass that ends with its first token says nothing of the second, and it ends
    # there only when that token was no accepted draft; so compare given acceptance.
    assert chisquare(after, AFTER[0] * after.sum()).pvalue > 0.01


def test_as_many_drafts_are_accepted_as_the_overlap_says():
    found = drawn("exact", n=4000, drafts=1)
    share = np.mean([f.accepted for f in found])
    assert share == pytest.approx(np.minimum(P, Q).sum(), abs=0.03)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rule", "strength"),
    [
        ("accept_above", 1.0),
        ("no_residual", 0.0),
        ("greedy", 0.0),
        ("draft_only", 0.5),
        ("shared_uniform", 0.0),
    ],
)
def test_every_wrong_turn_changes_the_distribution(rule, strength):
    counts = first_counts(drawn(rule, n=3000, strength=strength))
    assert chisquare(counts, P * counts.sum()).pvalue < 1e-6


def test_an_equal_draft_is_always_accepted():
    rng = np.random.default_rng(1)
    found = [speculate([], target, target, 3, rng) for _ in range(200)]
    assert all(f.accepted == 3 and len(f.tokens) == 4 for f in found)


weights = st.lists(st.floats(0.001, 1.0), min_size=2, max_size=12)


@pytest.mark.slow
@given(
    weights,
    st.floats(0.1, 2.0),
    st.integers(0, 12),
    st.floats(0.05, 1.0),
    st.floats(0, 1),
)
@settings(max_examples=150, deadline=None)
def test_a_filter_leaves_a_distribution_that_keeps_the_best_token(
    raw, heat, k, top, low
):
    p = np.array(raw) / sum(raw)
    kept = Filter(heat, k, top, low)(p)
    assert kept.sum() == pytest.approx(1.0)
    assert (kept >= 0).all()
    assert kept[int(p.argmax())] > 0
    if 0 < k:
        assert (kept > 0).sum() <= max(k, (p >= np.sort(p)[-min(k, len(p))]).sum())


def test_top_p_keeps_the_smallest_set_that_reaches_it():
    kept = Filter(1.0, 0, 0.7)(P)
    assert (kept > 0).tolist() == [True, True, False, False, False]


def test_temperature_zero_is_greedy():
    assert Filter(0.0)(P).tolist() == [1.0, 0.0, 0.0, 0.0, 0.0]
