"""Greedy answers compared: against the route's own noise, and near ties told apart.

A batching server is not deterministic at temperature 0. The baseline run against itself
(A/A) says how often answers differ for no reason; a candidate is held against that, and
a divergence counts as real only where the baseline itself was not torn.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import bdtr

from routeproof.stats.interval import NonInferiority
from routeproof.stats.paired_binary import non_inferiority

Divergence = Literal["equal", "near_tie", "hard", "unknown"]
CLASSES: tuple[Divergence, ...] = ("equal", "near_tie", "hard", "unknown")

FLOOR_NATS = 0.05
"""Smallest margin called a near tie when the A/A control shows none: log probabilities
of one model in bfloat16 differ by about this much between kernels."""


def match_rate(
    *, control: ArrayLike, candidate: ArrayLike, tolerance: float, alpha: float
) -> NonInferiority:
    """Is the candidate's answer the baseline's as often as the baseline's own is?

    Both compare with the same baseline answer, case by case, so this is a paired
    question: a loss is a case that the control repeats and the candidate does not.

    Args:
        control: Whether the A/A answer equals the baseline's, shape ``(n,)``.
        candidate: Whether the candidate's does, shape ``(n,)``.
        tolerance: Loss of match rate still allowed, in (0, 1).
        alpha: One-sided error rate.
    """
    aa, ab = np.asarray(control, dtype=bool), np.asarray(candidate, dtype=bool)
    if aa.shape != ab.shape:
        raise ValueError(f"shapes differ: {aa.shape}, {ab.shape}")
    return match_rate_of(
        control_only=int(np.count_nonzero(aa & ~ab)),
        candidate_only=int(np.count_nonzero(ab & ~aa)),
        cases=aa.size,
        tolerance=tolerance,
        alpha=alpha,
    )


def match_rate_of(
    *,
    control_only: int,
    candidate_only: int,
    cases: int,
    tolerance: float,
    alpha: float,
) -> NonInferiority:
    """:func:`match_rate` from counts.

    Args:
        control_only: Cases that the control repeats and the candidate does not.
        candidate_only: The reverse.
        cases: All of them.
        tolerance: Loss of match rate still allowed, in (0, 1).
        alpha: One-sided error rate.
    """
    return non_inferiority(
        losses=control_only,
        gains=candidate_only,
        n=cases,
        tolerance=tolerance,
        alpha=alpha,
    )


def share_seen(n: int, alpha: float) -> float:
    """Share of cases a fault must touch to be met at least once with 1 - alpha.

    ``1 - alpha^(1/n)``: what it means that ``n`` cases showed nothing.

    Example:
        >>> round(share_seen(299, 0.05), 3)
        0.01
    """
    return 1.0 - float(alpha ** (1 / max(n, 1)))


def near_tie_margin(
    control_margins: ArrayLike, *, q: float = 0.95, floor: float = FLOOR_NATS
) -> float:
    """Largest top-2 margin, in nats, at which a divergence still counts as a near tie.

    The ``q`` quantile (nearest rank) of the baseline's margins where the A/A control
    diverged, but at least ``floor``; the floor when the control never diverged.

    Args:
        control_margins: Baseline's log probability of its token less that of its
            runner-up, where baseline and control first differ.
        q: Share of the control's own divergences that count as near ties.
        floor: In nats.
    """
    margins = np.sort(np.asarray(control_margins, dtype=np.float64).ravel())
    if np.isnan(margins).any():
        raise ValueError("a margin is NaN; leave unknown margins out")
    if margins.size == 0:
        return floor
    rank = int(np.ceil(q * margins.size - 1e-9))
    return max(floor, float(margins[max(rank, 1) - 1]))


def classify(
    diverged: ArrayLike, margin: ArrayLike, margin_known: ArrayLike, *, near_tie: float
) -> NDArray[np.int64]:
    """Class of each case, as an index into :data:`CLASSES`.

    Args:
        diverged: Whether the answers differ, shape ``(n,)``.
        margin: Baseline's top-2 margin at the first difference, in nats.
        margin_known: Whether it is known.
        near_tie: Margin up to which a divergence is a near tie.
    """
    known = np.asarray(margin_known, dtype=bool)
    close = np.asarray(margin, dtype=np.float64) <= near_tie
    kind = np.where(known, np.where(close, 1, 2), 3)
    return np.where(np.asarray(diverged, dtype=bool), kind, 0)


@dataclass(frozen=True, slots=True)
class Divergences:
    """Divergences of the candidate against those of the A/A control.

    Attributes:
        decision: ``equal`` (no more hard divergences than the control's rate allows),
            ``diverges`` (more, at alpha, or any where the control has none),
            ``unknown`` (margins are missing where they would decide).
        counts: Cases of the candidate by class.
        control_counts: Cases of the control by class.
        near_tie: Margin used, in nats.
        p_value: One-sided, that the candidate diverges hard no more often than the
            control; ``None`` when the control shows no hard divergence.
    """

    decision: Literal["equal", "diverges", "unknown"]
    counts: dict[str, int]
    control_counts: dict[str, int]
    near_tie: float
    p_value: float | None


def judge_divergences(
    classes: ArrayLike, control_classes: ArrayLike, *, near_tie: float, alpha: float
) -> Divergences:
    """Hold the candidate's hard divergences against the control's.

    None is tolerated where the control has none. Where it has some, the two rates are
    compared by the exact conditional test: given all hard divergences, those of the
    candidate are binomial with its share of the cases.
    """
    counts, control = _count(classes), _count(control_classes)
    n, m = sum(counts.values()), sum(control.values())
    hard, hard_control = counts["hard"], control["hard"]
    p = None
    worse = hard > 0 and m > 0
    if hard_control:
        together = hard + hard_control
        share = n / (n + m)
        p = 1.0 - float(bdtr(hard - 1, together, share)) if hard else 1.0
        worse = p <= alpha
    if worse:
        decision: Literal["equal", "diverges", "unknown"] = "diverges"
    elif n == 0 or m == 0 or counts["unknown"]:
        decision = "unknown"
    else:
        decision = "equal"
    return Divergences(decision, counts, control, near_tie, p)


def _count(classes: ArrayLike) -> dict[str, int]:
    times = np.bincount(np.asarray(classes, dtype=np.int64), minlength=len(CLASSES))
    return {name: int(times[i]) for i, name in enumerate(CLASSES)}
