"""A month of canary traffic in virtual time: how often it goes back, and how soon.

    python benchmarks/canary_month.py

Every row simulates many canaries at once. ``equal``: candidate and control have the
same rates in all signals; the share that is ever rolled back must stay below alpha.
The other rows make the candidate worse in one signal and print the scored answers per
arm until it is taken back, beside the fixed-sample optimum: the answers per arm a
one-sided test of two proportions needs for the same power when it may look only once,
knows the true rates beforehand and asks about this one signal at the same alpha.
"""

import argparse
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from routeproof.stats.sequential import betting_path

ALPHA = 0.05
PRIOR = 0.18
RATES: Mapping[str, float] = {
    "error": 0.005,
    "empty": 0.002,
    "truncated": 0.05,
    "degenerate": 0.004,
    "invalid_structure": 0.03,
    "invalid_tool_call": 0.01,
    "refusal": 0.02,
    "script_switch": 0.001,
}
"""Bad shares of a healthy route, one for each signal that is judged."""


class Row(NamedTuple):
    """One line of the table."""

    what: str
    rolled_back: float
    median: float
    p80: float
    optimum_80: float


def log_e_path(
    rng: np.random.Generator,
    control: float,
    canary: float,
    *,
    canaries: int,
    pairs: int,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Play the harm test of many canaries at once, pair by pair.

    Returns:
        The largest log e-value of each canary, and the first pair at which its log
        e-value reached the alarm of one signal among all (infinity if never).
    """
    failed = np.zeros((2, canaries))
    log_e, peak = np.zeros(canaries), np.zeros(canaries)
    alarm = -np.log(ALPHA / len(RATES))
    first = np.full(canaries, np.inf)
    for n in range(pairs):
        x = np.stack([rng.random(canaries) < control, rng.random(canaries) < canary])
        log_e += factor(failed, n, x)
        failed += x
        np.maximum(peak, log_e, out=peak)
        first[np.isinf(first) & (log_e >= alarm)] = n + 1
    return peak, first


def factor(
    failed: NDArray[np.float64], n: int, x: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """Log factor of one pair of answers; shapes ``(2, canaries)``.

    The same numbers as ``RatesTest("harm", tolerance=0)`` with blocks of one and one.
    """
    guess = (failed + PRIOR) / (n + 2 * PRIOR)
    null = guess.mean(axis=0)
    ratio = np.where(x, np.log(guess / null), np.log((1 - guess) / (1 - null)))
    bet: NDArray[np.float64] = np.where(guess[1] > guess[0], ratio.sum(axis=0), 0.0)
    return bet


def fixed_optimum(
    control: float, canary: float, *, alpha: float, power: float
) -> float:
    """Answers per arm of a one-sided z-test of two proportions."""
    mean = (control + canary) / 2
    both = control * (1 - control) + canary * (1 - canary)
    null = -ndtri(alpha) * np.sqrt(2 * mean * (1 - mean))
    spread = null + ndtri(power) * np.sqrt(both)
    return float(np.ceil((spread / (canary - control)) ** 2))


def equal(canaries: int, pairs: int, seed: int = 5) -> float:
    """Share of equal candidates that any of the signals ever takes back."""
    rng = np.random.default_rng(seed)
    alarm = -np.log(ALPHA / len(RATES))
    gone = np.zeros(canaries, dtype=bool)
    for rate in RATES.values():
        peak, _ = log_e_path(rng, rate, rate, canaries=canaries, pairs=pairs)
        gone |= peak >= alarm
    return float(gone.mean())


def worse(name: str, rise: float, canaries: int, pairs: int, seed: int = 6) -> Row:
    """A candidate that is worse in one signal by ``rise``."""
    rng = np.random.default_rng(seed)
    rate = RATES[name]
    _, first = log_e_path(rng, rate, rate + rise, canaries=canaries, pairs=pairs)
    alpha = ALPHA / len(RATES)
    return Row(
        f"{name} {rate:.1%} to {rate + rise:.1%}",
        float(np.isfinite(first).mean()),
        float(np.median(first)),
        float(np.quantile(first, 0.8, method="higher")),
        fixed_optimum(rate, rate + rise, alpha=alpha, power=0.8),
    )


SHADOW_ALPHA = 0.5 * ALPHA / (len(RATES) + 0.5 * 9)
"""Of one shadow signal among nine, beside the live ones at twice its weight."""


def paired(loss: float, gain: float, canaries: int, pairs: int, seed: int = 7) -> Row:
    """Shadow pairs: the canary alone is bad in ``loss``, the control in ``gain``.

    The optimum is the sign test that may look once (McNemar's).
    """
    rng = np.random.default_rng(seed)
    first = np.full(canaries, np.inf)
    for at in range(0, canaries, 100):
        u = rng.random((min(100, canaries - at), pairs))
        difference = np.where(u < loss, -1.0, np.where(u < loss + gain, 1.0, 0.0))
        path = betting_path(difference, "harm", tolerance=0.0)
        hit = path >= -np.log(SHADOW_ALPHA)
        found = np.where(hit.any(1), hit.argmax(1) + 1.0, np.inf)
        first[at : at + found.size] = found
    spread = -ndtri(SHADOW_ALPHA) * np.sqrt(loss + gain) + ndtri(0.8) * np.sqrt(
        loss + gain - (loss - gain) ** 2
    )
    optimum = np.inf if loss <= gain else np.ceil((spread / (loss - gain)) ** 2)
    return Row(
        f"pairs: canary alone bad {loss:.1%}, control alone {gain:.1%}",
        float(np.isfinite(first).mean()),
        float(np.median(first)),
        float(np.quantile(first, 0.8, method="higher")),
        float(optimum),
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--canaries", type=int, default=2_000)
    parser.add_argument("--pairs", type=int, default=20_000)
    given = parser.parse_args()
    share = equal(given.canaries, given.pairs)
    print(f"{given.canaries} canaries, {given.pairs} scored answers per arm each")
    print(f"equal candidate ever rolled back: {share:.2%} (promised: {ALPHA:.0%})")
    print("| worse in | rolled back | median | 80 % | fixed, 80 % |")
    print("|---|---|---|---|---|")
    rises = (
        ("invalid_structure", 0.03),
        ("invalid_structure", 0.10),
        ("error", 0.02),
        ("degenerate", 0.01),
    )
    rows = [worse(name, rise, given.canaries, given.pairs) for name, rise in rises]
    short = min(given.pairs, 5_000)
    for loss, gain in ((0.01, 0.01), (0.03, 0.0), (0.04, 0.01), (0.11, 0.01)):
        rows.append(paired(loss, gain, given.canaries, short))
    for row in rows:
        print(
            f"| {row.what} | {row.rolled_back:.1%} | {row.median:,.0f} "
            f"| {row.p80:,.0f} | {row.optimum_80:,.0f} |"
        )


if __name__ == "__main__":
    main()
