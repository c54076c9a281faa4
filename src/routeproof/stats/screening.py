"""Slices nobody declared, screened for harm.

Declared slices are gates of their own, each at alpha (all must pass, so nothing is
corrected). The others are looked at only to find harm: Holm's correction vetoes,
Benjamini-Hochberg flags what a person should look at. A slice too small to show even
total loss is listed, never called clean.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil, log2
from typing import Literal

from routeproof.stats.multiplicity import benjamini_hochberg, holm
from routeproof.stats.paired_binary import harm_p_value


@dataclass(frozen=True, slots=True)
class SlicePairs:
    """Counts of a slice: flips against, flips for, all pairs."""

    losses: int
    gains: int
    n: int


@dataclass(frozen=True, slots=True)
class Screened:
    """What screening says of one slice.

    Attributes:
        status: ``harmed`` (survives Holm), ``look`` (survives Benjamini-Hochberg
            only), ``clear`` (neither), ``not_powered`` (so few pairs that even losing
            all of them would not survive Holm).
        estimate: (gains - losses) / n; ``None`` for an empty slice.
        shrunk: The same, pulled towards the overall difference by its noise; for
            ordering on a page, never for judging.
    """

    name: str
    pairs: SlicePairs
    status: Literal["harmed", "look", "clear", "not_powered"]
    p_value: float
    holm: float
    benjamini_hochberg: float
    estimate: float | None
    shrunk: float


def screen(slices: Mapping[str, SlicePairs], *, alpha: float) -> tuple[Screened, ...]:
    """Screen slices for harm by the exact one-sided McNemar test, worst first.

    Slices may overlap: Holm holds in any dependence.
    """
    names = list(slices)
    p = [harm_p_value(losses=s.losses, gains=s.gains) for s in slices.values()]
    by_holm, by_bh = holm(p), benjamini_hochberg(p)
    shrunk = shrink(list(slices.values()))
    least = least_pairs_to_show_harm(len(names), alpha)
    found = []
    for i, name in enumerate(names):
        pairs = slices[name]
        status: Literal["harmed", "look", "clear", "not_powered"] = "clear"
        if by_holm[i] <= alpha:
            status = "harmed"
        elif by_bh[i] <= alpha:
            status = "look"
        elif pairs.n < least:
            status = "not_powered"
        estimate = (pairs.gains - pairs.losses) / pairs.n if pairs.n else None
        found.append(
            Screened(
                name,
                pairs,
                status,
                p[i],
                float(by_holm[i]),
                float(by_bh[i]),
                estimate,
                shrunk[i],
            )
        )
    return tuple(sorted(found, key=lambda s: (s.p_value, s.shrunk, s.name)))


def least_pairs_to_show_harm(slices: int, alpha: float) -> int:
    """Fewest pairs that could survive Holm among ``slices``, if every one were lost.

    ``2^-n <= alpha / slices``: 5 for one slice, 9 for twenty.
    """
    return ceil(log2(max(slices, 1) / alpha) - 1e-12)


def shrink(slices: list[SlicePairs]) -> list[float]:
    """Differences pulled towards the overall one by a normal prior, in order.

    The spread between slices is estimated by moments (DerSimonian-Laird, at least
    0); one slice, or slices that differ no more than chance, collapse to the overall
    difference. An empty slice takes the overall difference.
    """
    total = sum(s.n for s in slices)
    if total == 0:
        return [0.0] * len(slices)
    overall = sum(s.gains - s.losses for s in slices) / total
    raw, noise = [], []
    for s in slices:
        n = max(s.n, 1)
        d = (s.gains - s.losses) / n if s.n else overall
        raw.append(d)
        # Half a flip each way keeps the variance of a slice without flips above 0.
        noise.append(((s.losses + s.gains + 1) / n - d * d) / n if s.n else 1.0)
    weights = [1 / v for v in noise]
    mass = sum(weights)
    centre = sum(w * d for w, d in zip(weights, raw, strict=True)) / mass
    q = sum(w * (d - centre) ** 2 for w, d in zip(weights, raw, strict=True))
    scale = mass - sum(w * w for w in weights) / mass
    between = max(0.0, (q - (len(slices) - 1)) / scale) if scale > 0 else 0.0
    return [
        centre + (d - centre) * between / (between + v)
        for d, v in zip(raw, noise, strict=True)
    ]
