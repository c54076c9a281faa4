"""Choices of one request: independent draws, or one random number for all?"""

import numpy as np
import pytest

from routeproof.stats.siblings import siblings_test

LETTERS = np.array(list("abcdefgh"))


def prompts_of(rng, repeated, prompts=4, requests=2, choices=4):
    found = []
    for _ in range(prompts):
        p = rng.dirichlet(np.full(8, 0.5), size=16)
        made = []
        for _ in range(requests):
            texts = [
                "".join(LETTERS[rng.choice(8, p=row)] for row in p)
                for _ in range(choices)
            ]
            made.append([t if rng.random() >= repeated else texts[0] for t in texts])
        found.append(made)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("requests, choices", [(2, 4), (4, 2)])
@pytest.mark.parametrize("repeated, least, most", [(0.0, 0.0, 0.12), (0.5, 0.9, 1.0)])
def test_it_keeps_its_level_and_finds_repeated_choices(
    requests, choices, repeated, least, most
):
    rng = np.random.default_rng(4)
    rejected = [
        siblings_test(
            prompts_of(rng, repeated, requests=requests, choices=choices),
            permutations=99,
            seed=s,
        ).p_value
        <= 0.05
        for s in range(100)
    ]
    assert least <= np.mean(rejected) <= most


def test_the_same_answer_everywhere_is_no_sign_of_shared_randomness():
    same = [[["yes"] * 4, ["yes"] * 4]] * 3
    assert siblings_test(same).p_value == 1.0


def test_requests_with_one_choice_and_prompts_asked_once_say_nothing():
    found = siblings_test([[["a"], ["b"]], [["a", "b"]], []])
    assert found.p_value is None and found.skipped == 3
