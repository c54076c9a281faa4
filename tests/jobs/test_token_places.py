"""Sampled tokens under the baseline's own probabilities."""

import json
from functools import cache

import numpy as np
import pytest
from builders import a_case

from routeproof.jobs.gathering.answer_texts import AnswerText
from routeproof.jobs.gathering.token_places import sampler_of, token_row
from routeproof.proof.workload import SamplingSpec
from routeproof.stats.drawn_from import Sampler

WORDS = [f"w{i}" for i in range(12)]


@cache
def distribution(prompt, position):
    rng = np.random.default_rng([prompt, position])
    p = np.sort(rng.dirichlet(np.full(len(WORDS), 0.5)))[::-1]
    return p / p.sum()


def an_answer(rng, prompt, *, temperature=1.0, top_p=1.0, length=6):
    """Tokens that depend on nothing but their position, told with their list."""
    rows = []
    for position in range(length):
        p = distribution(prompt, position)
        q = p ** (1 / temperature)
        q /= q.sum()
        q = np.where(np.cumsum(q) - q < top_p, q, 0.0)
        token = WORDS[int(rng.choice(len(WORDS), p=q / q.sum()))]
        told = [[w, float(np.log(x))] for w, x in zip(WORDS, p, strict=True) if x > 0]
        rows.append([token, dict(told)[token], told])
    text = " ".join(row[0] for row in rows)
    return AnswerText(text, text, "completed", json.dumps(rows))


def row_of(*, prompts=40, trials=12, seed=3, sampler=None, baseline=None, **fault):
    rng = np.random.default_rng(seed)
    keys, texts = {"baseline": [], "candidate": [], "control": []}, {}
    for prompt in range(prompts):
        for arm, rows in keys.items():
            own = fault if arm == "candidate" else baseline or {}
            found = []
            for _ in range(trials):
                found.append(float(len(texts)))
                texts[found[-1]] = an_answer(rng, prompt, **own)
            rows.append(found)
    samplers = [sampler or Sampler()] * prompts
    return token_row(keys, samplers, texts, alpha=0.05, seed=1)


@pytest.mark.slow
def test_tokens_of_the_same_distribution_are_uniform_and_the_power_is_told():
    row = row_of()
    assert row["p_value"] > 0.05 < row["control_p_value"]
    assert row["answers"] > 500 and row["prompts"] == 40
    assert "sees a temperature 5 % higher in" in row["power"]


@pytest.mark.slow
def test_a_higher_temperature_is_seen_where_texts_are_too_few():
    row = row_of(temperature=1.4)
    assert row["p_value"] < 0.001 < row["control_p_value"]


@pytest.mark.slow
def test_a_dropped_top_p_is_a_token_that_cannot_be():
    told = {"sampler": Sampler(top_p=0.8), "baseline": {"top_p": 0.8}}
    assert row_of(**told, top_p=0.8)["p_value"] > 0.05
    assert row_of(**told)["p_value"] == 0.0


@pytest.mark.slow
def test_a_list_that_is_not_what_was_drawn_from_shows_on_the_control_too():
    """An engine whose list is after another step than its sampler's."""
    row = row_of(baseline={"temperature": 1.5}, temperature=1.5)
    assert row["p_value"] < 0.01 and row["control_p_value"] < 0.01


def test_few_tokens_and_no_probabilities_tell_nothing():
    assert row_of(prompts=2, trials=2) is None
    keys = {"baseline": [[1.0]], "candidate": [[2.0]], "control": [[]]}
    texts = {k: AnswerText("a", "a", "completed", "no json") for k in (1.0, 2.0)}
    assert token_row(keys, [Sampler()], texts, alpha=0.05, seed=1) is None


@pytest.mark.parametrize("own, expected", [({}, 0.7), ({"temperature": 1.0}, 1.0)])
def test_a_case_wins_over_the_workload(own, expected):
    case = a_case(0, parameters={"top_k": 5, **own})
    found = sampler_of(case, SamplingSpec(temperature=0.7, top_p=0.9))
    assert found == Sampler(expected, 5, 0.9, None)
