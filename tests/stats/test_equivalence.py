"""Greedy answers: the A/A floor, near ties, hard divergences."""

import numpy as np
import pytest

from routeproof.stats.equivalence import (
    CLASSES,
    FLOOR_NATS,
    classify,
    judge_divergences,
    match_rate,
    near_tie_margin,
)


def kinds(equal=0, near_tie=0, hard=0, unknown=0):
    return np.repeat(np.arange(4), [equal, near_tie, hard, unknown])


def test_a_candidate_that_matches_as_often_as_the_baseline_itself_is_certified():
    rng = np.random.default_rng(0)
    control = rng.random(1500) < 0.9
    torn = rng.random(1500) < 0.1
    same = np.where(torn, rng.random(1500) < 0.9, control)
    answer = match_rate(control=control, candidate=same, tolerance=0.03, alpha=0.05)
    assert answer.decision == "certified"
    broken = control & (rng.random(1500) < 0.8)
    answer = match_rate(control=control, candidate=broken, tolerance=0.03, alpha=0.05)
    assert answer.decision == "harmed"


def test_the_margin_of_a_near_tie_is_taken_from_the_control():
    assert near_tie_margin([]) == FLOOR_NATS
    assert near_tie_margin([0.001, 0.002]) == FLOOR_NATS
    assert near_tie_margin(np.linspace(0.01, 1.0, 100)) == pytest.approx(0.95)
    with pytest.raises(ValueError):
        near_tie_margin([float("nan")])


def test_every_case_falls_into_one_class():
    seen = classify(
        [False, True, True, True],
        [9.0, 0.02, 3.0, 0.0],
        [True, True, True, False],
        near_tie=0.1,
    )
    assert [CLASSES[i] for i in seen] == ["equal", "near_tie", "hard", "unknown"]


@pytest.mark.parametrize(
    ("candidate", "control", "decision"),
    [
        (kinds(equal=40), kinds(equal=40), "equal"),
        (kinds(equal=30, near_tie=10), kinds(equal=38, near_tie=2), "equal"),
        (kinds(equal=39, hard=1), kinds(equal=40), "diverges"),
        (kinds(equal=37, hard=3), kinds(equal=38, hard=2), "equal"),
        (kinds(equal=20, hard=20), kinds(equal=38, hard=2), "diverges"),
        (kinds(equal=39, unknown=1), kinds(equal=40), "unknown"),
        (kinds(equal=40), kinds(), "unknown"),
        (kinds(), kinds(equal=40), "unknown"),
    ],
)
def test_hard_divergences_are_held_against_the_controls(candidate, control, decision):
    answer = judge_divergences(candidate, control, near_tie=0.1, alpha=0.05)
    assert answer.decision == decision


@pytest.mark.slow
def test_a_route_as_noisy_as_the_control_is_rarely_said_to_diverge():
    rng = np.random.default_rng(1)
    wrong = 0
    for _ in range(1000):
        control, candidate = (2 * (rng.random(200) < 0.05) for _ in range(2))
        if not control.any():
            continue
        answer = judge_divergences(candidate, control, near_tie=0.1, alpha=0.05)
        wrong += answer.decision == "diverges"
    assert wrong / 1000 <= 0.05 + 3 * (0.05 * 0.95 / 1000) ** 0.5
