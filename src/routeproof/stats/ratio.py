"""How much faster, with an interval: paired ratios over interleaved blocks.

Arms run in interleaved blocks, so that slow drifts of machine and load hit both. The
block, not the request, is the unit that is resampled: requests inside a block share
the moment. A ratio is candidate / baseline; below 1 is faster for a latency.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtrit

from routeproof.stats.interval import Interval
from routeproof.stats.percentile import minimum_samples

Statistic = Literal["geometric_mean", "mean", "p50", "p90", "p95", "p99"]

FEWEST_BLOCKS = 4
_QUANTILE = {"p50": 0.50, "p90": 0.90, "p95": 0.95, "p99": 0.99}
_CHUNK = 2_000_000
"""Numbers held at once while resampling; bounds the memory."""


@dataclass(frozen=True, slots=True)
class Ratio:
    """A ratio candidate / baseline.

    Attributes:
        estimate: ``None`` when it cannot be told, see ``note``.
        interval: ``None`` when blocks are too few or a limit would be a failure.
        n_pairs: Pairs compared, failures included.
        n_blocks: Blocks resampled.
        failed_baseline, failed_candidate: Pairs in which that arm failed.
        method: Statistic and resampling.
        note: Why something is unknown.
    """

    estimate: float | None
    interval: Interval | None
    n_pairs: int
    n_blocks: int
    failed_baseline: int
    failed_candidate: int
    method: str
    note: str | None = None


def paired_ratio(
    baseline: ArrayLike,
    candidate: ArrayLike,
    *,
    blocks: ArrayLike | None = None,
    statistic: Statistic = "geometric_mean",
    failure_s: float | None = None,
    level: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> Ratio:
    """Ratio candidate / baseline of a latency, with a block-bootstrap interval.

    ``geometric_mean`` is ``exp(mean(log(candidate / baseline)))`` over pairs, ``mean``
    the ratio of the means, ``p50`` to ``p99`` the ratio of nearest-rank quantiles of
    the two arms. The interval is ``estimate * exp(+- t * se)``: ``se`` is the standard
    deviation of the log ratio over resampled blocks, widened by
    ``sqrt(g / (g - 1))``, and ``t`` the quantile of Student's distribution with
    ``g - 1`` degrees of freedom, because a percentile bootstrap of few blocks is too
    narrow.

    A failure is ``+inf``. Quantiles rank it last. A mean cannot hold it: it counts as
    ``failure_s`` (the request's timeout), and without that the answer is unknown
    rather than taken over the pairs that happened to survive.

    Args:
        baseline: Seconds, shape ``(n,)``; ``+inf`` for a failed request.
        candidate: The same cases in the same order.
        blocks: Block of each pair, shape ``(n,)``; each pair its own when absent.
        statistic: What is compared.
        failure_s: Seconds a failure counts as in a mean.
        level: Two-sided confidence.
        resamples: Bootstrap resamples.
        seed: Of the resampling.

    Raises:
        ValueError: Shapes differ, a NaN, or a time that is not positive.
    """
    a, b, block = _checked(baseline, candidate, blocks)
    failed = (int(np.isinf(a).sum()), int(np.isinf(b).sum()))
    count = int(block.max(initial=-1)) + 1

    def answer(
        estimate: float | None, interval: Interval | None, note: str | None
    ) -> Ratio:
        method = f"{statistic}, block bootstrap"
        return Ratio(estimate, interval, a.size, count, *failed, method, note)

    if a.size == 0:
        return answer(None, None, "no pairs")
    if statistic in _QUANTILE:
        q = _QUANTILE[statistic]
        if a.size < minimum_samples(q, level):
            need = minimum_samples(q, level)
            return answer(None, None, f"{a.size} pairs; {statistic} needs {need}")
        resample = _quantile_ratio(a, b, block, q)
    else:
        if any(failed) and failure_s is None:
            return answer(None, None, "failed requests and no time they count as")
        if failure_s is not None:
            a, b = (np.where(np.isinf(x), failure_s, x) for x in (a, b))
        resample = _mean_ratio(a, b, block, statistic == "mean")
    log_ratio = float(resample(np.ones((1, count), dtype=np.int64))[0])
    if not np.isfinite(log_ratio):
        return answer(None, None, f"{statistic} falls among the failed requests")
    estimate = float(np.exp(log_ratio))
    if count < FEWEST_BLOCKS:
        return answer(estimate, None, f"{count} blocks; an interval needs 4")
    draws = _draws(resample, count, a.size, resamples, seed)
    if not np.isfinite(draws).all():
        return answer(estimate, None, f"{statistic} reaches into the failed requests")
    se = float(draws.std(ddof=1)) * (count / (count - 1)) ** 0.5
    reach = float(stdtrit(count - 1, 0.5 + level / 2)) * se
    interval = Interval(
        low=float(np.exp(log_ratio - reach)),
        high=float(np.exp(log_ratio + reach)),
        level=level,
        method="block_bootstrap_t",
    )
    return answer(estimate, interval, None)


_WINDOW = 0.05
"""Half width of the window around a quantile, as a share of the values."""

Weights = NDArray[np.int64]
Resample = Callable[[Weights], NDArray[np.float64]]
"""Block weights, shape ``(r, g)``, to log ratios, shape ``(r,)``."""


def _mean_ratio(
    a: NDArray[np.float64],
    b: NDArray[np.float64],
    block: NDArray[np.int64],
    of_means: bool,
) -> Resample:
    count = int(block.max()) + 1

    def total(values: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.bincount(block, values, minlength=count).astype(np.float64)

    if of_means:
        sum_a, sum_b = total(a), total(b)
        return lambda w: np.log(w @ sum_b) - np.log(w @ sum_a)
    logs, pairs = total(np.log(b) - np.log(a)), total(np.ones(a.size))
    return lambda w: (w @ logs) / (w @ pairs)


def _quantile_ratio(
    a: NDArray[np.float64],
    b: NDArray[np.float64],
    block: NDArray[np.int64],
    q: float,
) -> Resample:
    arms = [_Sorted.of(values, block, q) for values in (a, b)]

    def log_ratio(weights: Weights) -> NDArray[np.float64]:
        # inf - inf: both arms fail that often, and the ratio is unknown.
        with np.errstate(invalid="ignore"):
            return arms[1].log_quantile(weights) - arms[0].log_quantile(weights)

    return log_ratio


@dataclass(frozen=True, slots=True)
class _Sorted:
    """The values of one arm in order, with a window around their quantile.

    Nearly every draw of blocks has its quantile inside the window; only there is it
    looked for value by value, and what lies below is counted block by block.
    """

    q: float
    logs: NDArray[np.float64]
    of_block: NDArray[np.int64]
    window: slice
    below: NDArray[np.int64]
    total: NDArray[np.int64]

    @classmethod
    def of(
        cls, values: NDArray[np.float64], block: NDArray[np.int64], q: float
    ) -> "_Sorted":
        order = np.argsort(values, kind="stable")
        of_block, n = block[order], values.size
        count = int(block.max()) + 1
        window = slice(
            max(0, int((q - _WINDOW) * n)), min(n, int((q + _WINDOW) * n) + 1)
        )
        return cls(
            q=q,
            logs=np.log(values[order]),
            of_block=of_block,
            window=window,
            below=np.bincount(of_block[: window.start], minlength=count),
            total=np.bincount(of_block, minlength=count),
        )

    def log_quantile(self, weights: Weights) -> NDArray[np.float64]:
        rank = np.ceil(self.q * (weights @ self.total) - 1e-9)
        found, is_found = self._within(weights, rank, self.window)
        if not is_found.all():
            rest = ~is_found
            whole = slice(0, self.logs.size)
            found[rest], _ = self._within(weights[rest], rank[rest], whole)
        return found

    def _within(
        self, weights: Weights, rank: NDArray[np.float64], where: slice
    ) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        start = weights @ self.below if where.start else np.zeros(len(weights))
        reached = np.cumsum(weights[:, self.of_block[where]], axis=1)
        left = (rank - start)[:, None]
        place = where.start + np.argmax(reached >= left, axis=1)
        inside = (start < rank) & (reached[:, -1] >= left[:, 0])
        return self.logs[place], inside


def _draws(
    resample: Resample, count: int, width: int, resamples: int, seed: int
) -> NDArray[np.float64]:
    """Log ratios of ``resamples`` draws of ``count`` blocks with replacement."""
    rng = np.random.default_rng(seed)
    share = np.full(count, 1.0 / count)
    step = max(1, _CHUNK // max(width, count))
    return np.concatenate(
        [
            resample(rng.multinomial(count, share, size=min(step, resamples - done)))
            for done in range(0, resamples, step)
        ]
    )


def _checked(
    baseline: ArrayLike, candidate: ArrayLike, blocks: ArrayLike | None
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
    a = np.asarray(baseline, dtype=np.float64)
    b = np.asarray(candidate, dtype=np.float64)
    if a.shape != b.shape or a.ndim != 1:
        raise ValueError(
            f"baseline and candidate differ in shape: {a.shape}, {b.shape}"
        )
    if not (np.all(a > 0) and np.all(b > 0)):
        raise ValueError("a latency is NaN or not positive")
    if blocks is None:
        return a, b, np.arange(a.size)
    _, index = np.unique(np.asarray(blocks), return_inverse=True)
    if index.shape != a.shape:
        raise ValueError(f"{index.size} blocks for {a.size} pairs")
    return a, b, index.astype(np.int64)
