"""Do two arms give the same text to the same greedy request, and if not, why?"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import msgspec
import numpy as np

from routeproof.gates.facts import Divergence, EqualityRow
from routeproof.stats.equivalence import near_tie_margin

NEAR_TIE_NATS = 0.1
"""Two tokens whose log probabilities differ by less are a coin toss for rounding."""

STEPS = (0.5, 0.25, 0.125, 0.0625, 0.03125)
"""Steps of bfloat16 logits, in nats: from magnitudes of 64 and more down to 4."""
ON_GRID = 2e-4
"""How far a printed log probability may lie beside its grid."""

MOST_SHOWN = 12
BEFORE, AHEAD = 40, 16
"""Characters shown before a divergence, and after it where no tokens are known."""


@dataclass(frozen=True, slots=True)
class TextPair:
    """Two answers to one request.

    Attributes:
        baseline_logprobs: JSON list per token ``[token, logprob, [[token, logprob],
            ...]]`` as records hold it, or ``None``.
        case_id: Of the request.
    """

    baseline: str
    other: str
    baseline_logprobs: str | None = None
    other_logprobs: str | None = None
    case_id: str = ""


def equality_row(
    pair: Literal["candidate", "control"],
    *,
    pairs: int,
    equal: int,
    differing: Sequence[TextPair],
    near_tie: float = NEAR_TIE_NATS,
) -> EqualityRow:
    """Sum up equal and differing texts.

    Args:
        pair: Which arm is held against the baseline.
        pairs: Pairs compared.
        equal: Pairs with equal texts.
        differing: The pairs that differ, or a sample of them; kinds are scaled up to
            all of them when it is a sample.
        near_tie: Margin below which a divergence is a near tie, in nats.
    """
    kinds = [kind_of(each, near_tie=near_tie) for each in differing]
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
        near_tie_nats=near_tie,
        divergences=_shown(differing, near_tie),
    )


def _shown(differing: Sequence[TextPair], near_tie: float) -> tuple[Divergence, ...]:
    """Some divergences to read: real ones first, then those nobody can tell."""
    order = {"real": 0, "unknown": 1, "near_tie": 2}
    found = [divergence(pair, near_tie=near_tie) for pair in differing]
    found.sort(key=lambda each: (order[each.kind], -(each.nats or 0.0), each.case_id))
    return tuple(found[:MOST_SHOWN])


def divergence(pair: TextPair, *, near_tie: float = NEAR_TIE_NATS) -> Divergence:
    """Where two texts part, and what the baseline thought of the other way."""
    at = first_divergence(pair.baseline, pair.other)
    margin = margin_of(pair)
    tokens = _parting(pair)
    mine, theirs = (
        (pair.baseline[at : at + AHEAD], pair.other[at : at + AHEAD])
        if tokens is None
        else (tokens[0].token, tokens[1].token)
    )
    return Divergence(
        case_id=pair.case_id,
        kind=kind_of(pair, near_tie=near_tie),
        before=pair.baseline[max(0, at - BEFORE) : at],
        baseline=mine,
        other=theirs,
        nats=None if margin is None else margin.nats,
        is_exact=margin is not None and margin.is_exact,
        step_nats=None if margin is None else margin.step,
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


def kind_of(
    pair: TextPair, *, near_tie: float = NEAR_TIE_NATS
) -> Literal["near_tie", "real", "unknown"]:
    """Why two greedy texts part: at a near tie of the baseline, or for real.

    At the first token that differs, the baseline's own list of likely tokens is asked
    how far the other arm's token lies below its choice. A token that is not in the
    list lies below all of it: real, when the list's last entry does. Logits in bfloat16
    lie on a grid (0.0625 nats between 8 and 16, twice that up to 32). Each of the two
    may round to its neighbour, so a margin of two steps is a near tie as well.
    """
    found = margin_of(pair)
    if found is None:
        return "unknown"
    is_near = found.nats < near_tie or found.is_rounding()
    if found.is_exact:
        return "near_tie" if is_near else "real"
    return "unknown" if is_near else "real"


class Margin(NamedTuple):
    """How far, in nats, the other token lies below the baseline's choice.

    ``is_exact`` is false for a token that is not listed: it lies at least so far below.
    ``step`` is the grid that the baseline's logits lie on, where they show one.
    """

    nats: float
    is_exact: bool
    step: float | None = None

    def is_rounding(self) -> bool:
        """Whether both tokens rounded to their neighbours would be level."""
        return self.step is not None and self.nats <= 2 * self.step + ON_GRID


def grid_step(logprobs: Iterable[float]) -> float | None:
    """The step of the grid that log probabilities of one place lie on, in nats.

    Differences of log probabilities are differences of logits. In bfloat16 these are
    multiples of a power of two; in float32 of none that is worth a name. ``None`` with
    fewer than three different values.

    Example:
        >>> grid_step([-1.8095, -1.9345, -2.3095, -2.8095])
        0.125
        >>> grid_step([-0.01, -4.6, -5.3]) is None
        True
    """
    values = np.unique(np.array(list(logprobs), dtype=np.float64))
    if values.size < 3:
        return None
    apart = values - values[0]
    for step in STEPS:
        if np.all(np.abs(apart - np.round(apart / step) * step) <= ON_GRID):
            return step
    return None


def margin_of(pair: TextPair) -> Margin | None:
    """The baseline's margin where two texts part; ``None`` when it cannot be told."""
    tokens = _parting(pair)
    if tokens is None:
        return None
    mine, theirs = tokens
    chosen = max([mine.logprob, *mine.alternatives.values()])
    found = mine.alternatives.get(theirs.token)
    step = grid_step([mine.logprob, *mine.alternatives.values()])
    if found is not None:
        return Margin(chosen - found, is_exact=True, step=step)
    least = min(mine.alternatives.values(), default=None)
    return None if least is None else Margin(chosen - least, False, step)


def _parting(pair: TextPair) -> "tuple[_Token, _Token] | None":
    """The first tokens that differ; ``None`` where tokens are not known."""
    one, other = _tokens(pair.baseline_logprobs), _tokens(pair.other_logprobs)
    both = zip(one, other, strict=False)
    return next((each for each in both if each[0].token != each[1].token), None)


def near_tie_of(control: Iterable[TextPair]) -> float:
    """Margin below which a divergence is a near tie, in nats.

    The 95 % quantile of the margins at which the baseline parts from itself (A/A), and
    at least ``NEAR_TIE_NATS``.
    """
    margins = (margin_of(pair) for pair in control)
    known = [m.nats for m in margins if m is not None and m.is_exact]
    return near_tie_margin(known, floor=NEAR_TIE_NATS)


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
