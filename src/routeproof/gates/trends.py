"""Does it get worse the longer it runs? The soak, first third against last."""

import numpy as np
from scipy.special import ndtr

from routeproof.gates.facts import TrendRow
from routeproof.metrics.requests import Requests
from routeproof.records.columns import Column, Floats

TRENDED = ("time_to_first_token", "time_per_output_token", "request_latency")
FEWEST = 20
"""Requests in each third below which no trend is told."""


def trend_rows(requests: Requests) -> tuple[TrendRow, ...]:
    """Latency and acceptance over the soak, arm by arm."""
    rows = []
    for arm in ("baseline", "candidate"):
        some = requests.where(requests.at(arm=arm, phase="soak") & requests.served())
        columns = {name: some.number(name) for name in TRENDED}
        columns["acceptance_rate"] = _acceptance(some)
        for metric, column in columns.items():
            row = _trend(some, metric, arm, column)
            if row is not None:
                rows.append(row)
    return tuple(rows)


def _acceptance(requests: Requests) -> Column:
    drafted, accepted = requests.number("drafted"), requests.number("accepted")
    known = drafted.known & accepted.known & (drafted.values > 0)
    values = np.divide(
        accepted.values, drafted.values, out=np.zeros(requests.n), where=known
    )
    return Column(values, known)


def _trend(
    requests: Requests, metric: str, arm: str, column: Column
) -> TrendRow | None:
    at = requests.number("intended_s").values[column.known]
    values = column.values[column.known]
    if values.size < 3 * FEWEST:
        return None
    edges = np.quantile(at, [1 / 3, 2 / 3])
    first, last = values[at <= edges[0]], values[at > edges[1]]
    if min(first.size, last.size) < FEWEST:
        return None
    before, after = float(np.median(first)), float(np.median(last))
    return TrendRow(
        metric=metric,
        arm=arm,
        first=before,
        last=after,
        change_share=after / before - 1 if before > 0 else None,
        p_value=rank_sum_p_value(first, last),
        n=int(values.size),
    )


def rank_sum_p_value(first: Floats, last: Floats) -> float:
    """Two-sided p-value that two samples come from one distribution.

    Wilcoxon's rank sum with the correction for ties, by its normal approximation:
    both samples have at least ``FEWEST`` values. Assumes independent values.
    """
    pooled = np.concatenate([first, last])
    _, inverse, counts = np.unique(pooled, return_inverse=True, return_counts=True)
    upper = np.cumsum(counts)
    ranks = (upper - (counts - 1) / 2)[inverse]
    n, m, total = first.size, last.size, pooled.size
    ties = float((counts**3 - counts).sum()) / (total * (total - 1))
    variance = n * m / 12 * (total + 1 - ties)
    if variance <= 0:
        return 1.0
    distance = float(ranks[:n].sum()) - n * (total + 1) / 2
    return float(2 * ndtr(-abs(distance) / variance**0.5))
