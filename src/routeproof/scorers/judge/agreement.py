"""How far a judge agrees with people, and with itself."""

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from math import exp, isfinite

import numpy as np

from routeproof.scorers.judge.preference import Preference

USABLE_INCONSISTENCY_SHARE = 0.2
"""A judge whose verdict changes with the order more often is no evidence."""

ADVISORY_KAPPA = 0.4
"""Below this agreement with people a judge advises and decides nothing (the border of
"moderate" in Landis and Koch 1977)."""

COMPLETE_SHARE = 0.98
PLACEBO_TOLERANCE = 0.05
MIN_FOR_LENGTH = 20


def cohen_kappa(left: Sequence[Hashable], right: Sequence[Hashable]) -> float | None:
    """Agreement beyond chance of two raters, at most 1. Symmetric.

    Returns:
        ``None`` when there is nothing to rate, or chance alone would agree fully.

    Example:
        >>> cohen_kappa("aabb", "aaba")
        0.5
    """
    if len(left) != len(right):
        raise ValueError("the two raters rated different numbers of things")
    n = len(left)
    if n == 0:
        return None
    agreed = sum(a == b for a, b in zip(left, right, strict=True)) / n
    one, other = Counter(left), Counter(right)
    chance = sum(one[label] * other[label] for label in one) / n**2
    return None if chance == 1 else (agreed - chance) / (1 - chance)


@dataclass(frozen=True, slots=True)
class Calibration:
    """A judge held against people.

    Attributes:
        n: Things people labelled.
        judged: Of these, how many the judge gave a label.
        agreed_share: Of the judged, how many equal the people's label; ``None`` = none.
        kappa: The same beyond chance; ``None`` when it cannot be told.
    """

    name: str
    n: int
    judged: int
    agreed_share: float | None
    kappa: float | None

    @property
    def is_advisory(self) -> bool:
        """True when agreement is too low, or unknown, for the judge to decide."""
        return self.kappa is None or self.kappa < ADVISORY_KAPPA

    def line(self) -> str:
        """One printed line."""
        share = (
            "-" if self.agreed_share is None else f"{100 * self.agreed_share:5.1f} %"
        )
        kappa = "-" if self.kappa is None else f"{self.kappa:6.3f}"
        use = "advisory only" if self.is_advisory else "may decide"
        return (
            f"{self.name:<44} {self.judged:>5} of {self.n:<5} agrees {share}"
            f"  kappa {kappa}  {use}"
        )


def calibrate(
    name: str,
    judged: Mapping[str, Hashable | None],
    people: Mapping[str, Hashable],
) -> Calibration:
    """Hold a judge's labels against people's, by id.

    Args:
        name: What is printed.
        judged: The judge's labels; ``None`` or missing where it gave none.
        people: The people's labels.
    """
    both = [(judged[key], label) for key, label in people.items() if key in judged]
    pairs = [(own, label) for own, label in both if own is not None]
    agreed = sum(own == label for own, label in pairs)
    return Calibration(
        name=name,
        n=len(people),
        judged=len(pairs),
        agreed_share=agreed / len(pairs) if pairs else None,
        kappa=cohen_kappa([p[0] for p in pairs], [p[1] for p in pairs]),
    )


@dataclass(frozen=True, slots=True)
class PreferenceView:
    """What a set of preferences amounts to, and whether the judge can be believed.

    Attributes:
        n: Pairs, judged or not.
        completeness_share: Share with a value.
        mean: Mean preference for the candidate; 0.5 is a draw.
        identical_share: Share of pairs with equal texts (ties without a call).
        inconsistency_share: Share of judged pairs whose verdict the order changed.
        first_position_share: Mean points of the answer shown first; 0.5 is fair.
        length_adjusted: Mean preference at equal length; ``None`` with too few pairs.
        length_slope: Change of the log odds per unit of ln(length ratio).
        placebo_mean: Mean preference of baseline against baseline.
        problems: Why the judge is not to be believed; empty when it may be.
        notes: What a reader should know besides.
    """

    n: int
    completeness_share: float
    mean: float | None
    identical_share: float
    inconsistency_share: float | None
    first_position_share: float | None
    length_adjusted: float | None
    length_slope: float | None
    placebo_mean: float | None
    problems: tuple[str, ...]
    notes: tuple[str, ...]


def view(
    preferences: Sequence[Preference], placebo: Sequence[Preference] = ()
) -> PreferenceView:
    """Fold preferences into what a report shows.

    Args:
        preferences: Candidate against baseline.
        placebo: Baseline against baseline (the A/A control), judged the same way.
    """
    n = len(preferences)
    values = [one.value for one in preferences if one.value is not None]
    mean = float(np.mean(values)) if values else None
    complete = len(values) / n if n else 0.0
    turned = [one.is_inconsistent for one in preferences]
    asked = [one for one in turned if one is not None]
    inconsistency = sum(asked) / len(asked) if asked else None
    adjusted, slope = length_adjusted(preferences)
    placebo_values = [one.value for one in placebo if one.value is not None]
    placebo_mean = float(np.mean(placebo_values)) if placebo_values else None
    problems = []
    if complete < COMPLETE_SHARE:
        problems.append(f"only {complete:.1%} of the pairs could be judged")
    if inconsistency is not None and inconsistency > USABLE_INCONSISTENCY_SHARE:
        problems.append(
            f"the order of the answers changed {inconsistency:.1%} of verdicts"
        )
    if placebo_mean is not None and not _is_fair(placebo_values):
        problems.append(f"baseline against itself gives {placebo_mean:.3f}, not 0.5")
    notes = []
    if (
        mean is not None
        and adjusted is not None
        and (mean - 0.5) * (adjusted - 0.5) < 0
    ):
        notes.append("the preference changes sign at equal length")
    if placebo_mean is None:
        notes.append("no placebo: baseline was not judged against itself")
    return PreferenceView(
        n=n,
        completeness_share=complete,
        mean=mean,
        identical_share=sum(p.how == "identical" for p in preferences) / n
        if n
        else 0.0,
        inconsistency_share=inconsistency,
        first_position_share=_first_position(preferences),
        length_adjusted=adjusted,
        length_slope=slope,
        placebo_mean=placebo_mean,
        problems=tuple(problems),
        notes=tuple(notes),
    )


def _is_fair(values: Sequence[float]) -> bool:
    """Within the tolerance of 0.5, or within 3 standard errors of it."""
    distance = abs(float(np.mean(values)) - 0.5)
    if len(values) < 2:
        return True
    error = float(np.std(values, ddof=1)) / len(values) ** 0.5
    return bool(distance <= max(PLACEBO_TOLERANCE, 3 * error))


def _first_position(preferences: Sequence[Preference]) -> float | None:
    points = [
        share
        for one in preferences
        if one.baseline_first is not None and one.candidate_first is not None
        for share in (1 - one.baseline_first, one.candidate_first)
    ]
    return sum(points) / len(points) if points else None


def length_adjusted(
    preferences: Sequence[Preference],
) -> tuple[float | None, float | None]:
    """Mean preference at equal length, and the slope on ln(length ratio).

    A fractional logit fitted by Newton's method with a light ridge on the slope, so
    that complete separation stays finite.

    Returns:
        ``(None, None)`` with fewer than 20 pairs, or when all lengths are equal.
    """
    rows = [
        (one.log_length_ratio, one.value)
        for one in preferences
        if one.value is not None and one.log_length_ratio is not None
    ]
    if len(rows) < MIN_FOR_LENGTH:
        return None, None
    x, y = np.array(rows, dtype=np.float64).T
    if np.ptp(x) < 1e-9:
        return None, None
    design = np.column_stack([np.ones_like(x), np.clip(x, -5, 5)])
    ridge = np.diag([1e-2, 1e-1])
    weights = np.zeros(2)
    for _ in range(50):
        p = 1 / (1 + np.exp(-np.clip(design @ weights, -30, 30)))
        gradient = design.T @ (y - p) - ridge @ weights
        curvature = (design * (p * (1 - p))[:, None]).T @ design + ridge
        step = np.linalg.solve(curvature, gradient)
        weights = weights + np.clip(step, -4, 4)
        if np.abs(step).max() < 1e-9:
            break
    intercept, slope = float(weights[0]), float(weights[1])
    if not (isfinite(intercept) and isfinite(slope)):
        return None, None
    return 1 / (1 + exp(-intercept)), slope
