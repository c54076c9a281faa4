"""Does memory grow for as long as the engine runs?"""

from routeproof.gates.facts import MemoryRow
from routeproof.gates.result import Check, Status

PEAKS = ("device_memory_bytes", "process_rss_bytes", "memory_bytes")
"""Series whose peak counts as memory, the most telling first."""

NOTABLE_PER_HOUR = 0.01
"""Growth per hour, as a share of the peak, that is not passed over where no limit was
agreed: at this pace a process has grown by a quarter in a day."""


def absent(name: str, limit: float | None) -> list[Check]:
    """A limit that nothing was sampled to hold to."""
    if limit is None:
        return []
    reason = f"a limit of {limit:g} is agreed, and nothing was sampled to hold it to"
    return [Check(name=name, status=Status.NOT_MEASURED, reason=reason, limit=limit)]


def leak_checks(
    rows: dict[str, MemoryRow], limit: float | None, soak_s: float | None
) -> list[Check]:
    """The slope of memory over the soak, against its limit.

    Without an agreed limit a growth that is shown, is notable and goes beyond the
    baseline's stays open: whether it may is for people to say.
    """
    row = next((rows[name] for name in PEAKS if name in rows), None)
    if row is None or row.per_hour.candidate is None:
        return absent("leak", limit)
    slope = row.per_hour.candidate
    shown = f"{row.name} grows by {slope:.3g} bytes an hour"
    is_open = limit is None and soak_s is not None and _is_notable(row)
    status, reason = _judged(row, slope, limit, soak_s, shown=shown)
    return [
        Check(
            name="leak",
            status=status,
            reason=reason,
            kind="value",
            unit="bytes/h",
            baseline=row.per_hour.baseline,
            candidate=slope,
            limit=limit,
            required=limit is not None or is_open,
        )
    ]


def _judged(
    row: MemoryRow,
    slope: float,
    limit: float | None,
    soak_s: float | None,
    *,
    shown: str,
) -> tuple[Status, str]:
    low = row.per_hour_low.candidate
    if soak_s is None:
        return Status.INCONCLUSIVE, f"{shown}, without a soak to trust it"
    if limit is None:
        if _is_notable(row):
            return (
                Status.INCONCLUSIVE,
                f"{shown}, more than the baseline; agree on "
                "`memory.leak_bytes_per_hour_max`",
            )
        return Status.PASSED, f"{shown}; no limit is agreed"
    if low is not None and low > limit:
        return Status.FAILED, f"{shown}, more than the {limit:.3g} agreed"
    if slope > limit:
        return Status.INCONCLUSIVE, f"{shown}, perhaps over {limit:.3g}"
    return Status.PASSED, f"{shown}, inside the {limit:.3g} agreed"


def _is_notable(row: MemoryRow) -> bool:
    low, peak = row.per_hour_low.candidate, row.peak.candidate
    if low is None or not peak:
        return False
    return low - max(row.per_hour.baseline or 0.0, 0.0) > NOTABLE_PER_HOUR * peak
