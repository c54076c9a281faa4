"""Sampled answers held against each other over their trials."""

import numpy as np
from metric_cases import requests
from record_cases import a_record

from routeproof.jobs.gathering.answer_texts import AnswerText
from routeproof.jobs.gathering.sampled import sampled_rows, sampled_trials

ARMS = ("baseline", "candidate", "control")


def drawn(arm, case, trial, **changes):
    return a_record(
        request_id=f"{arm}/{case}/{trial}",
        arm=arm,
        case_id=f"case-{case}",
        trial=trial,
        **changes,
    )


def trials_of(prompts=30, repeats=6, arms=ARMS):
    return sampled_trials(
        requests(
            *(
                drawn(a, c, t)
                for a in arms
                for c in range(prompts)
                for t in range(repeats)
            )
        ),
        "quality",
    )


def texts_of(trials, share, seed=5):
    """One of two sentences, the first with a chance that depends on the arm."""
    rng = np.random.default_rng(seed)
    found = {}
    for arm, prompts in trials.keys.items():
        for keys in prompts:
            for key in keys:
                first = rng.random() < share[arm]
                text = "Yes, it is so." if first else "No, far from it, never."
                found[key] = AnswerText(text, text, "completed", None)
    return found


def p_values(share):
    trials = trials_of()
    rows = sampled_rows(trials, texts_of(trials, share), seed=1)
    return {row["test"]: (row["p_value"], row["control_p_value"]) for row in rows}


def test_another_distribution_is_told_and_the_control_is_not():
    found = p_values({"baseline": 0.5, "candidate": 0.85, "control": 0.5})
    for test in ("distribution", "first_token", "length"):
        p, floor = found[test]
        assert p < 0.01 < floor


def test_the_same_distribution_is_not_called_different():
    found = p_values({"baseline": 0.5, "candidate": 0.5, "control": 0.5})
    assert all(p > 0.05 for p, _ in found.values())


def test_one_answer_each_tells_nothing():
    assert trials_of(repeats=1) is None


def test_only_prompts_that_both_arms_repeated_enter():
    some = requests(
        *(drawn(a, c, t) for a in ARMS for c in range(4) for t in range(3)),
        *(drawn("baseline", 9, t) for t in range(3)),
        *(drawn("candidate", 8, t, outcome="timeout") for t in range(3)),
        *(drawn("baseline", 8, t) for t in range(3)),
    )
    trials = sampled_trials(some, "quality")
    assert [len(prompts) for prompts in trials.keys.values()] == [4, 4, 4]
    assert len(trials.every_key()) == 36


def test_a_large_run_is_thinned_by_prompt():
    trials = trials_of(prompts=400, repeats=2, arms=("baseline", "candidate"))
    assert 100 <= len(trials.keys["baseline"]) <= 160
