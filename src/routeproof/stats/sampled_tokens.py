"""Were the candidate's tokens drawn from the baseline's distribution? The PIT check.

Each sampled token is turned into its place in the baseline's distribution given the
candidate's own prefix. If it was drawn from that distribution, the place is uniform and
independent of all earlier ones (M. Rosenblatt, Annals of Mathematical Statistics 23
(1952) 470-472), so thousands of tokens test one hypothesis without any reference
answer.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import bdtrc, kolmogorov, ndtr

from routeproof.stats.multiplicity import holm


@dataclass(frozen=True, slots=True)
class SampledTokens:
    """How well sampled tokens fit the baseline's distribution.

    Attributes:
        n: Tokens tested, those outside the support left out.
        outside_support: Tokens the baseline gives no probability at all.
        ks: Kolmogorov-Smirnov distance of their places from uniform.
        ks_p: Its p-value.
        z_mean: Standard normal under the null; above 0 when less likely tokens are
            drawn than should be (as at a higher temperature).
        z_spread: Standard normal under the null; above 0 when both ends are drawn too
            often.
        worst_band: Position band with the smallest p-value of its own mean.
        worst_band_p: That p-value after Holm's correction over bands.
        tail_p: That no more tokens than should fall into the last hundredth and
            thousandth of the distribution: where swapped tokens land.
        p_value: Smallest of the five p-values times 5, at most 1; 0 when any token
            lies outside the support. ``None`` without tokens.
    """

    n: int
    outside_support: int
    ks: float | None
    ks_p: float | None
    z_mean: float | None
    z_spread: float | None
    worst_band: int | None
    worst_band_p: float | None
    tail_p: float | None
    p_value: float | None


def sampled_tokens_test(
    before: ArrayLike,
    probability: ArrayLike,
    *,
    position: ArrayLike | None = None,
    bands: int = 8,
    seed: int = 0,
) -> SampledTokens:
    """Test that tokens were drawn with the probabilities given.

    The place of a token is ``before + v * probability`` with ``v`` uniform, which
    makes a discrete draw exactly uniform. ``before`` sums the probabilities of the
    tokens ahead of it in an order fixed before the draw: from the likeliest down. Of a
    distribution known only for its top k, the rest is one token.

    Args:
        before: Probability of all tokens ahead of the drawn one, shape ``(n,)``.
        probability: Probability of the drawn one; 0 when outside the support (as a
            token that top-k or top-p should have cut off), shape ``(n,)``.
        position: Position in the answer, for the bands; shape ``(n,)``.
        bands: Position bands of about equal size.
        seed: Of the uniform draws.

    Raises:
        ValueError: A probability is NaN, negative, or sums to more than 1.001.
    """
    ahead = np.asarray(before, dtype=np.float64).ravel()
    share = np.asarray(probability, dtype=np.float64).ravel()
    if ahead.shape != share.shape:
        raise ValueError(f"shapes differ: {ahead.shape}, {share.shape}")
    if not np.all((ahead >= 0) & (share >= 0) & (ahead + share <= 1.001)):
        raise ValueError("a probability is NaN, negative, or sums to more than 1")
    inside = share > 0
    outside = int(np.count_nonzero(~inside))
    n = int(inside.sum())
    if n == 0:
        p = 0.0 if outside else None
        return SampledTokens(0, outside, None, None, None, None, None, None, None, p)
    v = np.random.default_rng(seed).random(ahead.size)
    place = np.clip(ahead + v * share, 0.0, 1.0)[inside]
    ks = _distance_from_uniform(place)
    ks_p = float(kolmogorov(ks * (n**0.5 + 0.12 + 0.11 / n**0.5)))
    z_mean = float((place - 0.5).sum() / (n / 12) ** 0.5)
    # |place - 1/2| * 2 is uniform too.
    z_spread = float((np.abs(2 * place - 1) - 0.5).sum() / (n / 12) ** 0.5)
    at = np.arange(ahead.size) if position is None else np.asarray(position).ravel()
    where = at.astype(np.float64)[inside]
    band, band_p = _worst_band(place, where, bands)
    tail_p = _tail(place)
    each = (ks_p, _two_sided(z_mean), _two_sided(z_spread), band_p, tail_p)
    p_value = 0.0 if outside else min(1.0, len(each) * min(each))
    return SampledTokens(
        n, outside, ks, ks_p, z_mean, z_spread, band, band_p, tail_p, p_value
    )


def _distance_from_uniform(place: NDArray[np.float64]) -> float:
    ordered = np.sort(place)
    steps = np.arange(place.size + 1) / place.size
    return float(max((steps[1:] - ordered).max(), (ordered - steps[:-1]).max()))


def _tail(place: NDArray[np.float64]) -> float:
    """Exact one-sided p-value of the counts in the last 1 % and 0.1 %, corrected."""
    n, found = place.size, []
    for share in (0.01, 0.001):
        count = int(np.count_nonzero(place > 1 - share))
        found.append(float(bdtrc(count - 1, n, share)) if count else 1.0)
    return min(1.0, 2 * min(found))


def _two_sided(z: float) -> float:
    return 2 * float(ndtr(-abs(z)))


def _worst_band(
    place: NDArray[np.float64], position: NDArray[np.float64], bands: int
) -> tuple[int, float]:
    """Band whose mean is least like a uniform's, and its corrected p-value."""
    edges = np.quantile(position, np.linspace(0, 1, bands + 1)[1:-1])
    band = np.searchsorted(edges, position, side="right")
    count = np.bincount(band, minlength=bands)
    total = np.bincount(band, place - 0.5, minlength=bands)
    used = np.flatnonzero(count)
    z = total[used] / np.sqrt(count[used] / 12)
    adjusted = holm([_two_sided(float(value)) for value in z])
    worst = int(adjusted.argmin())
    return int(used[worst]), float(adjusted[worst])
