"""A tiny language model whose every probability is known, with faults to inject."""

import numpy as np


def distribution(rng, vocabulary=40):
    logits = rng.normal(0, 2.0, vocabulary)
    return np.exp(logits - logits.max()) / np.exp(logits - logits.max()).sum()


def draw(rng, p, n, *, temperature=1.0, swap=0.0):
    """``n`` token ids; ``swap`` is the share replaced by a uniformly drawn token."""
    q = p ** (1 / temperature)
    tokens = rng.choice(p.size, size=n, p=q / q.sum())
    swapped = rng.random(n) < swap
    return np.where(swapped, rng.integers(0, p.size, n), tokens)


def places(rng, n, **fault):
    """``before`` and ``probability`` of drawn tokens, likeliest first."""
    before, share = np.empty(n), np.empty(n)
    for start in range(0, n, 50):
        p = np.sort(distribution(rng))[::-1]
        ahead = np.r_[0.0, np.cumsum(p)[:-1]]
        token = draw(rng, p, min(50, n - start), **fault)
        before[start : start + token.size] = ahead[token]
        share[start : start + token.size] = p[token]
    return before, share


def answers(rng, prompts, trials, length=40, **fault):
    """Answers as token ids per prompt; the prompts' distributions are ``prompts``."""
    return [
        np.stack([draw(rng, p, trials, **fault) for p in prompt[:length]], 1).tolist()
        for prompt in prompts
    ]
