"""From telemetry and outcomes to memory, events and trends."""

from collections.abc import Sequence

from routeproof.gates.evidence import Stability
from routeproof.gates.facts import Row
from routeproof.gates.timeline import time_bins
from routeproof.metrics.requests import Requests
from routeproof.records.columns import Records
from routeproof.records.manifest import Manifest


def measure_stability(
    requests: Requests, telemetry: Sequence[Records], manifest: Manifest
) -> Stability:
    """What broke, what grew, and when."""
    return Stability(
        events=event_rows(requests),
        timeline=time_bins(requests),
        has_telemetry=any(part.n for part in telemetry),
    )


def event_rows(requests: Requests) -> tuple[Row, ...]:
    """Ends that tell of a broken server, counted by arm."""
    status = requests.number("http_status")
    outcome = requests.label("outcome")
    kinds = {
        "http_5xx": status.known & (status.values >= 500),
        "timeouts": outcome.equal("timeout"),
        "connection_errors": outcome.equal("connection_error"),
        "cut_short": outcome.equal("cut_short"),
    }
    rows: list[Row] = []
    for arm in ("baseline", "candidate", "control"):
        of_arm = requests.at(arm=arm)
        if of_arm.any():
            rows += [
                {"arm": arm, "name": name, "count": int((kind & of_arm).sum())}
                for name, kind in kinds.items()
            ]
    return tuple(rows)
