"""When requests ended, and how: the time line of a run in bins."""

import numpy as np

from routeproof.gates.facts import TimeBin
from routeproof.metrics.requests import Requests

MOST_BINS = 100


def time_bins(requests: Requests) -> tuple[TimeBin, ...]:
    """Requests by the bin in which they ended, arm by arm and phase by phase.

    A request that never ended stands where it was due. What was taken over from an
    earlier run lies before the start and is left out.
    """
    is_own = requests.number("intended_s").values >= 0
    if not is_own.all():
        requests = requests.where(is_own)
    if not requests.n:
        return ()
    end, due = requests.number("end_s"), requests.number("intended_s")
    at = np.where(end.known, end.values, due.values)
    first, last = float(at.min()), float(at.max())
    width = max(1.0, float(np.ceil((last - first) / MOST_BINS)))
    place = np.minimum(((at - first) / width).astype(np.int64), MOST_BINS - 1)
    arm, phase = requests.label("arm"), requests.label("phase")
    keys = (place * 16 + arm.codes) * 16 + phase.codes
    outcome, latency = requests.label("outcome"), requests.number("request_latency")
    order = np.argsort(keys, kind="stable")
    edges = np.flatnonzero(np.diff(keys[order])) + 1
    bins = []
    for rows in np.split(order, edges):
        start = first + float(place[rows[0]]) * width
        counts = np.bincount(outcome.codes[rows], minlength=len(outcome.names))
        known = latency.known[rows]
        bins.append(
            TimeBin(
                start_s=start,
                end_s=start + width,
                arm=arm.of(int(rows[0])) or "",
                phase=phase.of(int(rows[0])) or "",
                outcomes={
                    name: int(count)
                    for name, count in sorted(zip(outcome.names, counts, strict=True))
                    if count
                },
                median_latency_s=float(np.median(latency.values[rows][known]))
                if known.any()
                else None,
            )
        )
    return tuple(bins)
