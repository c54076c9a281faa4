"""Do two arms give the same text to the same greedy request, and if not, why?"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import msgspec
import numpy as np

from routeproof.gates.facts import EqualityRow

NEAR_TIE_NATS = 0.1
"""Two tokens whose log probabilities differ by less are a coin toss for rounding."""


@dataclass(frozen=True, slots=True)
class TextPair:
    """Two answers to one request.

    Attributes:
        baseline_logprobs: JSON list per token ``[token, logprob, [[token, logprob],
            ...]]`` as records hold it, or ``None``.
    """

    baseline: str
    other: str
    baseline_logprobs: str | None = None
    other_logprobs: str | None = None


def equality_row(
    pair: Literal["candidate", "control"],
    *,
    pairs: int,
    equal: int,
    differing: Sequence[TextPair],
) -> EqualityRow:
    """Sum up equal and differing texts.

    Args:
        pair: Which arm is held against the baseline.
        pairs: Pairs compared.
        equal: Pairs with equal texts.
        differing: The pairs that differ, or a sample of them; kinds are scaled up to
            all of them when it is a sample.
    """
    kinds = [kind_of(each) for each in differing]
    scale = (pairs - equal) / len(differing) if differing else 0.0
    told = {kind: round(kinds.count(kind) * scale) for kind in ("near_tie", "real")}
    any_told = any(kind != "unknown" for kind in kinds)
    shares = [
        first_divergence(each.baseline, each.other) / max(1, len(each.baseline))
        for each in differing
    ]
    quantiles = np.quantile(shares, [0.1, 0.5, 0.9]).tolist() if shares else []
    return EqualityRow(
        pair=pair,
        pairs=pairs,
        equal=equal,
        near_ties=told["near_tie"] if any_told or not differing else None,
        real=told["real"] if any_told or not differing else None,
        cannot_tell=pairs - equal - told["near_tie"] - told["real"],
        divergence_share=tuple(min(1.0, share) for share in quantiles),
    )


def first_divergence(one: str, other: str) -> int:
    """Index of the first differing character; the length of a text that is a prefix."""
    least = min(len(one), len(other))
    low, high = 0, least
    while low < high:
        middle = (low + high + 1) // 2
        if one[:middle] == other[:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def kind_of(pair: TextPair) -> Literal["near_tie", "real", "unknown"]:
    """Why two greedy texts part: at a near tie of the baseline, or for real.

    At the first token that differs, the baseline's own list of likely tokens is asked
    how far the other arm's token lies below its choice. A token that is not in the
    list lies below all of it: real, when the list's last entry does.
    """
    one, other = _tokens(pair.baseline_logprobs), _tokens(pair.other_logprobs)
    if not one or not other:
        return "unknown"
    for mine, theirs in zip(one, other, strict=False):
        if mine.token == theirs.token:
            continue
        chosen = max([mine.logprob, *mine.alternatives.values()])
        found = mine.alternatives.get(theirs.token)
        if found is not None:
            return "near_tie" if chosen - found < NEAR_TIE_NATS else "real"
        least = min(mine.alternatives.values(), default=None)
        if least is None:
            return "unknown"
        return "unknown" if chosen - least < NEAR_TIE_NATS else "real"
    return "unknown"


@dataclass(frozen=True, slots=True)
class _Token:
    token: str
    logprob: float
    alternatives: dict[str, float]


def _tokens(encoded: str | None) -> list[_Token]:
    if not encoded:
        return []
    try:
        rows: list[Any] = msgspec.json.decode(encoded, type=list[Any])
        return [
            _Token(str(row[0]), float(row[1]), {str(t): float(p) for t, p in row[2]})
            for row in rows
        ]
    except (msgspec.DecodeError, IndexError, TypeError, ValueError):
        return []
