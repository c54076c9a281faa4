"""Latencies from an engine's own histograms: how they grew between two scrapes."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from routeproof.engines.series import raw_samples

REQUEST_LATENCY, FIRST_TOKEN = "request_latency", "time_to_first_token"

NAMES: Mapping[str, Mapping[str, str]] = {
    "vllm": {
        REQUEST_LATENCY: "vllm:e2e_request_latency_seconds",
        FIRST_TOKEN: "vllm:time_to_first_token_seconds",
    },
    "sglang": {
        REQUEST_LATENCY: "sglang:e2e_request_latency_seconds",
        FIRST_TOKEN: "sglang:time_to_first_token_seconds",
    },
    "tensorrt-llm": {
        REQUEST_LATENCY: "trtllm_e2e_request_latency_seconds",
        FIRST_TOKEN: "trtllm_time_to_first_token_seconds",
    },
}
"""llama.cpp has none."""


@dataclass(frozen=True, slots=True)
class Histogram:
    """A cumulative histogram of seconds, all replicas together.

    Attributes:
        buckets: Upper edge to the number of values at most that large; empty where
            the engine keeps only a sum and a count.
        total_s: Sum of the values.
        n: Number of values.
    """

    buckets: dict[float, float]
    total_s: float
    n: float

    def mean_s(self) -> float | None:
        """``None`` when there is no value."""
        return self.total_s / self.n if self.n > 0 else None

    def quantile_s(self, q: float) -> float | None:
        """The q quantile, linear inside its bucket.

        ``None`` with fewer values than ``1 / (1 - q)`` (an empty tail says nothing),
        without buckets, and when it lies above the last finite edge.
        """
        if not self.buckets or self.n * (1 - q) < 1 - 1e-9:
            return None
        rank, low, below = q * self.n, 0.0, 0.0
        for edge in sorted(self.buckets):
            count = self.buckets[edge]
            if count >= rank:
                if math.isinf(edge):
                    return None
                inside = count - below
                share = (rank - below) / inside if inside > 0 else 1.0
                return low + (edge - low) * share
            low, below = edge, count
        return None


def histograms(exposition: str, engine: str) -> dict[str, Histogram]:
    """Histograms of a metrics page by their normalised name; absent ones are left out.

    Every label but the edge is summed over: replicas, streams and not, models.
    """
    wanted = {theirs: ours for ours, theirs in NAMES.get(engine, {}).items()}
    sums: dict[str, float] = {}
    counts: dict[str, float] = {}
    buckets: dict[str, dict[float, float]] = {}
    for sample in raw_samples(exposition):
        family, _, part = sample.name.rpartition("_")
        name = wanted.get(family)
        if name is None:
            continue
        if part == "sum":
            sums[name] = sums.get(name, 0.0) + sample.value
        elif part == "count":
            counts[name] = counts.get(name, 0.0) + sample.value
        elif part == "bucket" and (edge := _edge(sample.labels)) is not None:
            mine = buckets.setdefault(name, {})
            mine[edge] = mine.get(edge, 0.0) + sample.value
    return {
        name: Histogram(buckets.get(name, {}), sums[name], counts[name])
        for name in sums
        if name in counts
    }


def growth(before: Histogram, after: Histogram) -> Histogram | None:
    """What came between two scrapes; ``None`` when the engine began anew."""
    grown = Histogram(
        {
            edge: count - before.buckets[edge]
            for edge, count in after.buckets.items()
            if edge in before.buckets
        },
        after.total_s - before.total_s,
        after.n - before.n,
    )
    fell = grown.n < 0 or grown.total_s < -1e-9
    return None if fell or any(c < 0 for c in grown.buckets.values()) else grown


def _edge(labels: Mapping[str, str]) -> float | None:
    try:
        edge = float(labels["le"])
    except (KeyError, ValueError):
        return None
    return None if math.isnan(edge) else edge
