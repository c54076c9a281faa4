"""From telemetry and outcomes to memory, events and trends."""

import re
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from routeproof.gates.evidence import Stability
from routeproof.gates.facts import Arms, MemoryRow, Row
from routeproof.gates.timeline import time_bins
from routeproof.gates.trends import trend_rows
from routeproof.metrics.requests import Requests
from routeproof.metrics.telemetry import Series, Slope, series_of, slope
from routeproof.records.columns import Records
from routeproof.records.manifest import Manifest

ARMS = ("baseline", "candidate", "control")

GAUGES: dict[str, str] = {
    "device_memory_bytes": "bytes",
    "process_rss_bytes": "bytes",
    "memory_bytes": "bytes",
    "kv_used_share": "1",
    "kv_capacity_tokens": "tokens",
    "running": "requests",
    "waiting": "requests",
    "power_w": "W",
}
"""Series shown by their peak, with their unit."""

COUNTERS: dict[str, str] = {"preemptions_total": "preemptions"}
"""Series shown by their growth over the run."""

NORMAL_STOPS = "normal_stops"
"""Event row that counts answers of the soak that ended by themselves."""

UNKNOWN = Arms()
_DEVICE_POWER = re.compile(r"device\d+_power_w")

SOAK_WARM_IN = 0.2
"""Share of the soak left out before its slope: caches fill, pools grow."""

Samples = Mapping[tuple[str, str], Series]
Summary = Callable[[Series], float | None]


def measure_stability(
    requests: Requests,
    telemetry: Sequence[Records],
    manifest: Manifest,
    *,
    alpha: float = 0.05,
    capacity_tokens: Arms = UNKNOWN,
) -> Stability:
    """What broke, what grew, and when.

    Args:
        requests: Every request of the run.
        telemetry: Samples as stored.
        manifest: For what became of launched engines.
        alpha: One-sided error rate of slopes.
        capacity_tokens: KV capacity as the engines stated it when they were read back,
            for those that do not export it as a metric.
    """
    samples = with_power(series_of(telemetry))
    soak = soak_window_s(requests)
    return Stability(
        memory=with_capacity(memory_rows(samples, soak, alpha), capacity_tokens),
        trends=trend_rows(requests),
        events=(*event_rows(requests), *engine_events(samples, manifest)),
        timeline=time_bins(requests),
        soak_s=None if soak is None else soak[1] - soak[0],
        has_telemetry=any(name in GAUGES for _, name in samples),
    )


def with_power(samples: Samples) -> Samples:
    """The samples with the power of all devices together as ``power_w`` of each arm."""
    found = dict(samples)
    for arm in ARMS:
        devices = [
            series
            for (of, name), series in samples.items()
            if of == arm and _DEVICE_POWER.fullmatch(name)
        ]
        if not devices or (arm, "power_w") in samples:
            continue
        at_s, place = np.unique(
            np.concatenate([each.at_s for each in devices]), return_inverse=True
        )
        values = np.concatenate([each.values for each in devices])
        sums = np.bincount(place, values).astype(np.float64)
        found[arm, "power_w"] = Series(at_s, sums)
    return found


def with_capacity(
    rows: tuple[MemoryRow, ...], capacity_tokens: Arms
) -> tuple[MemoryRow, ...]:
    """The rows with a KV capacity that was stated and not sampled."""
    name = "kv_capacity_tokens"
    known = (capacity_tokens.baseline, capacity_tokens.candidate)
    if any(row.name == name for row in rows) or known == (None, None):
        return rows
    stated = MemoryRow(
        name=name, unit=GAUGES[name], peak=capacity_tokens, source="inventory"
    )
    return (*rows, stated)


def soak_window_s(requests: Requests) -> tuple[float, float] | None:
    """Start and end of the soak on the run's clock; ``None`` without a soak."""
    keep = requests.at(phase="soak")
    start, end = requests.number("intended_s"), requests.number("end_s")
    keep &= start.known & end.known
    if not keep.any():
        return None
    return float(start.values[keep].min()), float(end.values[keep].max())


def memory_rows(
    samples: Samples, soak: tuple[float, float] | None, alpha: float
) -> tuple[MemoryRow, ...]:
    """Peak, last value and slope of every sampled resource of both arms."""
    rows = [
        _gauge(samples, name, unit, soak, alpha)
        for name, unit in GAUGES.items()
        if any((arm, name) in samples for arm in ARMS)
    ]
    rows += [
        MemoryRow(
            name=shown,
            unit="count",
            peak=_arms(samples, name, Series.increase),
            samples=_arms(samples, name, _size),
            source=name,
        )
        for name, shown in COUNTERS.items()
        if any((arm, name) in samples for arm in ARMS)
    ]
    return tuple(rows)


def _gauge(
    samples: Samples,
    name: str,
    unit: str,
    soak: tuple[float, float] | None,
    alpha: float,
) -> MemoryRow:
    def trend(series: Series) -> Slope | None:
        if soak is None:
            return slope(series, alpha=alpha)
        start = soak[0] + SOAK_WARM_IN * (soak[1] - soak[0])
        return slope(series.between(start, soak[1]), alpha=alpha)

    slopes = {arm: trend(samples[arm, name]) for arm in ARMS if (arm, name) in samples}
    return MemoryRow(
        name=name,
        unit=unit,
        peak=_arms(samples, name, Series.peak),
        after_drain=_arms(samples, name, Series.last),
        per_hour=Arms(**{arm: s.per_hour for arm, s in slopes.items() if s}),
        per_hour_low=Arms(**{arm: s.low for arm, s in slopes.items() if s}),
        samples=_arms(samples, name, _size),
        source="telemetry",
    )


def _arms(samples: Samples, name: str, of: Summary) -> Arms:
    return Arms(
        **{arm: of(samples[arm, name]) for arm in ARMS if (arm, name) in samples}
    )


def _size(series: Series) -> float | None:
    return float(series.values.size)


def event_rows(requests: Requests) -> tuple[Row, ...]:
    """Ends that tell of a broken server, counted by arm."""
    status, outcome = requests.number("http_status"), requests.label("outcome")
    timeout = outcome.equal("timeout")
    kinds = {
        "http_5xx": status.known & (status.values >= 500),
        "timeouts": timeout,
        "stuck_streams": timeout & requests.number("first_byte_s").known,
        "connection_errors": outcome.equal("connection_error"),
        "cut_short": outcome.equal("cut_short"),
    }
    normal = requests.served() & ~outcome.equal("truncated")
    soak = requests.at(phase="soak")
    rows: list[Row] = []
    for arm in ARMS:
        of_arm = requests.at(arm=arm)
        if of_arm.any():
            rows += [
                {"arm": arm, "name": name, "count": int((kind & of_arm).sum())}
                for name, kind in kinds.items()
            ]
        in_soak = of_arm & soak
        if in_soak.any():
            rows.append(
                {
                    "arm": arm,
                    "name": NORMAL_STOPS,
                    "count": int((normal & in_soak).sum()),
                    "of": int(in_soak.sum()),
                }
            )
    return tuple(rows)


def engine_events(samples: Samples, manifest: Manifest) -> tuple[Row, ...]:
    """Deaths of engines we launched, and restarts seen in their telemetry."""
    rows: list[Row] = []
    for arm in ("baseline", "candidate"):
        engine = manifest.engines.get(arm)
        if isinstance(engine, dict) and engine.get("launched"):
            rows.append({"arm": arm, "name": "crashes", "count": int("died" in engine)})
        starts = samples.get((arm, "process_start_s"))
        counters = [s for (a, n), s in samples.items() if a == arm and "_total" in n]
        if starts is not None or counters:
            count = max(
                0 if starts is None else starts.changes(),
                max((each.resets() for each in counters), default=0),
            )
            rows.append({"arm": arm, "name": "restarts", "count": count})
    return tuple(rows)
