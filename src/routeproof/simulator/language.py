"""A small statistical language model whose next-token distribution is known exactly.

An order-2 Markov model over a toy vocabulary of words: the distribution after a pair of
tokens is a sparse mixture drawn once from the seed. The draft model is the target seen
through noise, so acceptance is a matter of one number. Because both distributions can
be written down, exact sampling can be told from almost exact sampling.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from routeproof.simulator.sampling import Filter, Probabilities

WORDS: tuple[str, ...] = (
    " amber",
    " basalt",
    " cedar",
    " delta",
    " ember",
    " fjord",
    " grove",
    " harbor",
    " island",
    " jasper",
    " kelp",
    " lagoon",
    " meadow",
    " nectar",
    " orchid",
    " pebble",
    " quartz",
    " river",
    " saffron",
    " tundra",
    " umber",
    " valley",
    " willow",
    " yarrow",
)
END = len(WORDS)
"""Index of the end-of-text token, which is no word."""

END_TOKEN = "<|end|>"
"""How log probabilities name it."""

START = 2
"""Words of context that the prompt puts in front of the answer."""


@dataclass(frozen=True)
class ToyModel:
    """Target and draft of a toy route.

    Attributes:
        seed: Which model it is.
        end_probability: Chance that any token is the last.
        draft_noise: 0: the draft equals the target; larger: it is flatter and other.
    """

    seed: int = 11
    end_probability: float = 0.04
    draft_noise: float = 0.5
    _tables: dict[tuple[int, int], tuple[Probabilities, Probabilities]] = field(
        default_factory=dict, compare=False, repr=False
    )
    _filtered: dict[tuple[int, Filter, bool, int, int], Probabilities] = field(
        default_factory=dict, compare=False, repr=False
    )

    def filtered(
        self, which: int, keep: Filter, context: Sequence[int]
    ) -> Probabilities:
        """Target (0) or draft (1) after sampling parameters; kept for the next time."""
        start = len(context) <= START
        key = (which, keep, start, context[-2], context[-1])
        found = self._filtered.get(key)
        if found is None:
            found = self._filtered[key] = keep(self._pair(context)[which])
        return found

    def target(self, context: Sequence[int]) -> Probabilities:
        """True distribution of the next token, shape ``(len(WORDS) + 1,)``."""
        return self._pair(context)[0]

    def draft(self, context: Sequence[int]) -> Probabilities:
        """The draft's distribution of the next token, same shape."""
        return self._pair(context)[1]

    def _pair(self, context: Sequence[int]) -> tuple[Probabilities, Probabilities]:
        if len(context) <= START:
            return self._first(context)
        last = (context[-2], context[-1])
        found = self._tables.get(last)
        if found is None:
            found = self._tables[last] = self._draw(last, self.end_probability)
        return found

    def _first(self, context: Sequence[int]) -> tuple[Probabilities, Probabilities]:
        """No answer is empty: the first token is never the end."""
        return self._draw((context[0], context[1]), 0.0)

    def _draw(
        self, last: tuple[int, int], end: float
    ) -> tuple[Probabilities, Probabilities]:
        rng = np.random.default_rng((self.seed, last[0] + 1, last[1] + 1))
        logits = rng.normal(scale=2.0, size=END)
        noisy = logits + self.draft_noise * rng.normal(scale=2.0, size=END)
        return _with_end(logits, end), _with_end(noisy, end)


def _with_end(logits: Probabilities, end: float) -> Probabilities:
    weights = np.exp(logits - logits.max())
    return np.append(weights / weights.sum() * (1.0 - end), end)


@lru_cache(maxsize=64)
def model(seed: int, draft_noise: float) -> ToyModel:
    """The toy model of a seed; its tables are kept between requests."""
    return ToyModel(seed=seed, draft_noise=draft_noise)


def start_of(key: str) -> list[int]:
    """The context a prompt puts the model in: two words chosen by its name."""
    number = int(key[:8] or "0", 16)
    return [number % END, number // END % END]
