"""Sampling and the verification of drafts: the exact method and its known wrong turns.

The exact method is speculative sampling as in Leviathan et al. 2023 (arXiv 2211.17192)
and Chen et al. 2023 (arXiv 2302.01318): a draft token x is kept with probability
min(1, p(x) / q(x)); the first one that is not is replaced by a draw from the residual
max(0, p - q), normalised; if all are kept, one more token comes from p. The tokens are
then distributed as if drawn from p one at a time, whatever q is.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Probabilities = NDArray[np.float64]
NextOf = Callable[[Sequence[int]], Probabilities]


@dataclass(frozen=True, slots=True)
class Filter:
    """Sampling parameters: what turns a model's distribution into the one drawn from.

    Applied in this order: temperature, top-k, top-p, min-p. Temperature 0 is greedy.
    """

    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0

    def __call__(self, probabilities: Probabilities) -> Probabilities:
        """The distribution to draw from, same shape, sums to 1."""
        if self.temperature <= 0.0:
            greedy = np.zeros_like(probabilities)
            greedy[int(probabilities.argmax())] = 1.0
            return greedy
        p = probabilities
        if self.temperature != 1.0:
            with np.errstate(divide="ignore"):
                logits = np.log(p) / self.temperature
            p = np.exp(logits - logits.max())
            p /= p.sum()
        if 0 < self.top_k < len(p):
            p = np.where(p >= np.sort(p)[-self.top_k], p, 0.0)
        if self.top_p < 1.0:
            p = _nucleus(p / p.sum(), self.top_p)
        if self.min_p > 0.0:
            p = np.where(p >= self.min_p * p.max(), p, 0.0)
        return _normalised(p)


def _normalised(p: Probabilities) -> Probabilities:
    total: float = p.sum()
    return np.asarray(p / total, dtype=np.float64)


def _nucleus(p: Probabilities, top_p: float) -> Probabilities:
    order = np.argsort(-p, kind="stable")
    before = np.cumsum(p[order]) - p[order]
    kept = np.zeros_like(p)
    kept[order[before < top_p]] = p[order[before < top_p]]
    return kept


def draw(p: Probabilities, uniform: float) -> int:
    """The token at ``uniform`` in the cumulative distribution."""
    found = int(np.cumsum(p).searchsorted(uniform, side="right"))
    return min(found, len(p) - 1)


@dataclass(frozen=True, slots=True)
class Verified:
    """One verify pass: the tokens it emitted and how many of them were drafts."""

    tokens: tuple[int, ...]
    accepted: int
    drafted: int


Verify = Callable[[Probabilities, Probabilities, int, float], bool]


def speculate(
    context: Sequence[int],
    target: NextOf,
    draft: NextOf,
    draft_tokens: int,
    rng: np.random.Generator,
    *,
    rule: str = "exact",
    strength: float = 0.0,
) -> Verified:
    """Draft ``draft_tokens`` tokens and verify them by ``rule``.

    Args:
        context: Tokens so far.
        target: Distribution to be drawn from after a context (filters applied).
        draft: The drafter's, filtered alike.
        draft_tokens: How many to draft; 0 is one plain step.
        rng: Source of every uniform.
        rule: ``exact`` or one of the wrong turns: ``accept_above`` keeps any draft
            whose target probability is at least ``1 - strength`` of the best;
            ``no_residual`` replaces from p instead of the residual, which favours
            what the drafter likes; ``greedy`` keeps only the target's best token and
            replaces by it; ``shared_uniform`` uses the uniform of the draft's draw
            again for the test; ``draft_only`` keeps a draft with probability
            ``strength`` without looking at it.
        strength: How far the wrong turn goes, in [0, 1], as ``rule`` says.
    """
    words = list(context)
    kept: list[int] = []
    for _ in range(draft_tokens):
        q, p = draft(words), target(words)
        uniform = rng.random()
        token = draw(q, uniform)
        test = uniform if rule == "shared_uniform" else rng.random()
        if not _keeps(rule, strength, p, q, token, test):
            kept.append(_replacement(rule, p, q, rng))
            return Verified(tuple(kept), len(kept) - 1, draft_tokens)
        kept.append(token)
        words.append(token)
    p = target(words)
    bonus = (
        int(p.argmax()) if rule == "greedy" and draft_tokens else draw(p, rng.random())
    )
    return Verified((*kept, bonus), draft_tokens, draft_tokens)


def _keeps(
    rule: str,
    strength: float,
    p: Probabilities,
    q: Probabilities,
    token: int,
    test: float,
) -> bool:
    if rule == "greedy":
        return token == int(p.argmax())
    if rule == "accept_above" and p[token] >= (1.0 - strength) * p.max():
        return True
    if rule == "draft_only" and test < strength:
        return True
    return bool(test * q[token] < p[token])


def _replacement(
    rule: str, p: Probabilities, q: Probabilities, rng: np.random.Generator
) -> int:
    if rule == "greedy":
        return int(p.argmax())
    residual = p if rule == "no_residual" else np.maximum(p - q, 0.0)
    total = residual.sum()
    return draw(residual / total if total > 0.0 else p, rng.random())
