"""From a model's listed log probabilities to what its sampler draws from.

An engine tells the likeliest tokens and their probabilities before sampling. Here the
sampler's own steps (temperature, top-k, top-p, min-p) are applied to such a list, as
far as the list reaches: what it does not hold is one token more, the rest.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import exp, isfinite

import numpy as np
from numpy.typing import NDArray

MOST_UNKNOWN = 0.01
"""Probability that may hang on tokens the list does not hold, where a step needs
them."""

BORDER = 0.02
"""Tokens this near the edge of top-p or min-p are neither inside nor outside: rounding
decides them."""


@dataclass(frozen=True, slots=True)
class Sampler:
    """The sampling parameters of a request, applied in this order."""

    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None


@dataclass(frozen=True, slots=True)
class Listed:
    """What is drawn from at one position, likeliest first.

    Attributes:
        tokens: Of the list, likeliest first.
        share: Probability of each among those that are not on the border, and last
            that of the rest, shape ``(k + 1,)``.
        border: Tokens that rounding may put in or out.
    """

    tokens: tuple[str, ...]
    share: NDArray[np.float64]
    border: frozenset[str] = frozenset()

    def place(self, token: str) -> tuple[float, float] | None:
        """Probability ahead of a token, and its own; 0 when it cannot be drawn.

        ``None`` for a token on the border.
        """
        if token in self.border:
            return None
        at = self.tokens.index(token) if token in self.tokens else len(self.tokens)
        return float(self.share[:at].sum()), float(self.share[at])


def listed(logprobs: Mapping[str, float], sampler: Sampler) -> Listed | None:
    """What a sampler draws from.

    Args:
        logprobs: Natural log probabilities before sampling, by token.
        sampler: The request's parameters.

    Returns:
        ``None`` where the list does not reach far enough to tell, or is none.
    """
    ranked = sorted(logprobs.items(), key=lambda item: (-item[1], item[0]))
    if sampler.temperature <= 0 or not ranked:
        return None
    if not all(isfinite(value) and value <= 1e-3 for _, value in ranked):
        return None
    p = np.array([exp(min(value, 0.0)) for _, value in ranked])
    rest = max(0.0, 1.0 - float(p.sum()))
    if p.sum() > 1.001:
        return None
    heat = 1.0 / sampler.temperature
    # Each token of the rest is at most as likely as the last one listed.
    share = np.append(p**heat, rest * float(p[-1]) ** (heat - 1.0))
    share /= share.sum()
    if heat != 1.0 and share[-1] > MOST_UNKNOWN:
        return None
    return _cut(tuple(token for token, _ in ranked), share, sampler)


def _cut(
    tokens: tuple[str, ...], share: NDArray[np.float64], sampler: Sampler
) -> Listed | None:
    kept = np.ones(share.size, dtype=np.bool_)
    border = np.zeros(share.size, dtype=np.bool_)
    if sampler.top_k and sampler.top_k > 0:
        if sampler.top_k > len(tokens) and share[-1] > MOST_UNKNOWN:
            return None
        kept &= np.arange(share.size) < sampler.top_k
    if sampler.top_p is not None and sampler.top_p < 1:
        ahead = np.cumsum(share) - share
        if ahead[-1] < sampler.top_p and share[-1] > MOST_UNKNOWN:
            return None
        kept &= ahead < sampler.top_p
        border |= np.abs(ahead - sampler.top_p) < BORDER
    if sampler.min_p:
        least = sampler.min_p * share[0]
        if len(tokens) and share[-2] >= least and share[-1] > MOST_UNKNOWN:
            return None
        kept &= share >= least
        kept[-1] = False
        border |= np.abs(share - least) < BORDER * share[0]
    # A draw on the border is not looked at, so the others share what is left.
    border[-1] = False
    left = np.where(kept & ~border, share, 0.0)
    if not left.any():
        return None
    edge = frozenset(t for t, b in zip(tokens, border, strict=False) if b)
    return Listed(tokens, left / left.sum(), edge)
