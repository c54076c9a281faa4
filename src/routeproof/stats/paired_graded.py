"""Is a graded score no worse? The decision for means over cases.

A mean is certified only when every bound fit for the sample certifies it, because each
one alone is fooled by something that happens here: the t interval and BCa by a rare
collapse that the sample does not show, and all normal theory by near-equal routes.
Beside the mean stands the share of catastrophic drops, since a mean hides a rare
collapse by design.
"""

from dataclasses import dataclass
from math import ceil
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from routeproof.stats.clusters import Clustered, Differences, clustered
from routeproof.stats.interval import Interval, NonInferiority
from routeproof.stats.mean_bounds import (
    StudentT,
    bca_bound,
    betting,
    betting_minimum,
    sign_flip_p_value,
    student_t,
    worst_case_bound,
)
from routeproof.stats.paired_binary import non_inferiority

FEWEST_DIFFERING = 10
"""Clusters that must differ from the commonest value for normal theory to be used."""
_FEW_DIFFERING = 50


@dataclass(frozen=True, slots=True)
class Graded:
    """The decision about a mean, with the companion about collapses.

    Attributes:
        mean: About the mean difference; its interval is the cluster-robust t, or by
            betting where betting decides.
        drops: About the share of cases that fell by ``drop`` or more, net of those
            that rose by as much.
        bounds: One-sided lower bound of the mean by name, as far as defined.
    """

    mean: NonInferiority
    drops: NonInferiority
    bounds: dict[str, float]


@dataclass(frozen=True, slots=True)
class _Evidence:
    p_value: float
    bounds: dict[str, float]
    t: StudentT
    interval: Interval
    degenerate: bool


def graded_non_inferiority(
    differences: Differences,
    *,
    tolerance: float,
    alpha: float,
    drop: float = 0.5,
    drop_tolerance: float | None = None,
    resamples: int = 10_000,
    seed: int = 0,
) -> Graded:
    """Decide whether a mean loss larger than ``tolerance`` is excluded.

    Certified when the cluster-robust t, BCa and the worst-case bound all exclude it at
    ``alpha``; the p-value is the largest of the three. Where fewer than ten clusters
    differ at all, or BCa is not defined, the betting test decides alone. With unknown
    scores the same must hold with each at its worst. Harm needs the t-test and, with
    few differing clusters, the sign-flip test too.

    Assumes independent clusters and scores in [0, 1].

    Args:
        differences: One per case, see :mod:`routeproof.stats.clusters`.
        tolerance: Mean loss still allowed, in (0, 1).
        alpha: One-sided error rate.
        drop: Fall of a case's score that counts as catastrophic, in (0, 1].
        drop_tolerance: Net share of such drops still allowed; ``tolerance / drop``
            when absent: the share at which they alone use the tolerance up.
        resamples: Of BCa and of the worst-case bound.
        seed: Of all resampling.

    Raises:
        ValueError: ``tolerance`` or ``drop`` outside its range.
    """
    if not 0 < tolerance < 1 or not 0 < drop <= 1:
        raise ValueError(f"tolerance {tolerance} or drop {drop} outside its range")
    known = differences.known
    minimum = betting_minimum(tolerance, alpha)
    share = min(drop_tolerance or tolerance / drop, 0.99)
    drops = _drops(differences, drop, share, alpha)
    sample = clustered(differences.value[known], differences.cluster[known])
    g = sample.total.size
    if g < 2:
        return Graded(_thin(sample, tolerance, alpha, minimum, differences), drops, {})
    rng = np.random.default_rng(seed)
    seen = _evidence(sample, tolerance, alpha, resamples, rng)
    p = seen.p_value
    if differences.missing_pairs:
        at_worst = clustered(differences.worst, differences.cluster)
        p = max(p, _evidence(at_worst, tolerance, alpha, resamples, rng).p_value)
    harm = seen.t.p_below(0.0)
    if np.count_nonzero(sample.total) <= _FEW_DIFFERING:
        harm = max(harm, sign_flip_p_value(sample, resamples=resamples, rng=rng))
    interval = seen.interval
    decision = _decision(p <= alpha, harm <= alpha, interval, tolerance)
    mean = NonInferiority(
        decision=decision,
        estimate=sample.mean,
        interval=interval,
        tolerance=tolerance,
        p_value=p,
        harm_p_value=harm,
        n=g,
        n_needed=_needed(seen.t, g, tolerance, alpha, minimum)
        if decision == "undecided"
        else None,
        method="betting" if seen.degenerate else "paired_t+bca+worst_case",
        note=_note(decision, harm <= alpha, seen.p_value <= alpha, g < minimum),
        n_minimum=minimum,
        missing=differences.missing_pairs,
    )
    return Graded(mean, drops, seen.bounds)


def _evidence(
    sample: Clustered,
    tolerance: float,
    alpha: float,
    resamples: int,
    rng: np.random.Generator,
) -> _Evidence:
    t = student_t(sample)
    interval = t.interval(alpha)
    low = interval.low
    bounds = {"paired_t": sample.mean if low is None else low}
    p = 1.0 - t.p_below(-tolerance)
    for name, of in (("bca", bca_bound), ("worst_case", worst_case_bound)):
        bound = of(
            sample, tolerance=tolerance, alpha=alpha, resamples=resamples, rng=rng
        )
        if bound is not None:
            bounds[name] = bound.low
            p = max(p, bound.p_value)
    degenerate = "bca" not in bounds or _differing(sample) < FEWEST_DIFFERING
    if degenerate:
        # The t interval says nothing here: it may have no width at all.
        p, interval = betting(sample, tolerance=tolerance, alpha=alpha, rng=rng)
    return _Evidence(p, bounds, t, interval, degenerate)


def _differing(sample: Clustered) -> int:
    """Clusters whose mean is not the commonest one."""
    _, times = np.unique(sample.total / sample.count, return_counts=True)
    return int(sample.total.size - times.max())


def _decision(
    certified: bool, harmed: bool, interval: Interval, tolerance: float
) -> Literal["certified", "harmed", "undecided"]:
    if certified:
        return "certified"
    below = interval.high is not None and interval.high < -tolerance
    return "harmed" if harmed or below else "undecided"


def _note(decision: str, harmed: bool, complete: bool, thin: bool) -> str | None:
    if decision == "certified" and harmed:
        return "worse, within tolerance"
    if decision == "undecided" and thin:
        return "not powered"
    if decision == "undecided" and complete:
        return "certified only if the missing scores are no losses"
    return None


def _needed(t: StudentT, g: int, tolerance: float, alpha: float, minimum: int) -> int:
    """Clusters in all for a power of 0.8, from the spread seen, extrapolated.

    The true loss is taken as the observed one, between none and half the tolerance.
    """
    sd = t.se * g**0.5
    z = float(ndtri(1 - alpha)) + float(ndtri(0.8))
    for share in (0.5, 0.75):
        loss = min(max(-t.mean, 0.0), share * tolerance)
        needed = max(minimum, ceil(float(z * sd / (tolerance - loss)) ** 2))
        if needed > g:
            return needed
    return g + (g + 1) // 2


def _drops(
    differences: Differences, drop: float, tolerance: float, alpha: float
) -> NonInferiority:
    """The companion: clusters in which more cases fell by ``drop`` than rose by it."""
    known = differences.known
    value: NDArray[np.float64] = differences.value[known]
    _, group = np.unique(differences.cluster[known], return_inverse=True)
    n = int(group.max(initial=-1)) + 1
    edge = drop - 1e-9
    net = np.bincount(group, (value >= edge).astype(float), minlength=n) - np.bincount(
        group, (value <= -edge).astype(float), minlength=n
    )
    everyone = np.unique(differences.cluster).size
    return non_inferiority(
        losses=int(np.count_nonzero(net < 0)),
        gains=int(np.count_nonzero(net > 0)),
        n=n,
        tolerance=tolerance,
        alpha=alpha,
        missing=everyone - n,
    )


def _thin(
    sample: Clustered,
    tolerance: float,
    alpha: float,
    minimum: int,
    differences: Differences,
) -> NonInferiority:
    """The answer for no cluster or one: nothing is known of the spread."""
    nothing = Interval(low=None, high=None, level=1 - 2 * alpha, method="paired_t")
    return NonInferiority(
        decision="undecided",
        estimate=sample.mean if sample.total.size else 0.0,
        interval=nothing,
        tolerance=tolerance,
        p_value=None,
        harm_p_value=None,
        n=sample.total.size,
        n_needed=minimum,
        method="betting",
        note="not powered",
        n_minimum=minimum,
        missing=differences.missing_pairs,
    )
