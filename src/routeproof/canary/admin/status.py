"""What the dashboard shows, as plain data."""

from collections.abc import Mapping
from typing import Any

from routeproof.canary.admin.http import Request
from routeproof.canary.gateway import Gateway
from routeproof.canary.samples.spool import Sample
from routeproof.canary.splitting.split import PPM
from routeproof.errors import StoredRunError

SAMPLES_MAX = 500
ARMS = ("control", "canary")


def status(gateway: Gateway) -> dict[str, Any]:
    """Everything that changes from second to second.

    With a store that cannot be read the last state known is shown, and the store's
    error beside it.
    """
    taster, side = gateway.taster, gateway.side
    try:
        state, error = gateway.store.read(gateway.config.name), None
    except StoredRunError as problem:
        state, error = gateway.lease.state(), problem.message
    return {
        "name": gateway.config.name,
        "labels": dict(gateway.config.labels),
        "upstreams": dict(gateway.config.upstreams),
        "state": state,
        "weight": gateway.lease.weight_ppm() / PPM,
        "blind": gateway.blind,
        "observed_share": gateway.meter.share(),
        "steps": [w / PPM for w in gateway.config.steps.weights_ppm],
        "minimum_scored": gateway.config.steps.minimum_scored,
        "signals": taster.standings(),
        "stale": taster.staleness(),
        "lag_s": taster.lag_s(),
        "samples": dict(taster.taken),
        "dropped": dict(taster.dropped),
        "spared": taster.evidence.spared,
        "requests": [
            {"arm": arm, "status": status, "n": n}
            for (arm, status), n in sorted(gateway.router.counts.requests.items())
        ],
        "latency": taster.latency(),
        "slices": taster.slice_rows(),
        "rejection": taster.rejection(),
        "shadow": _shadow(gateway),
        "asked": {
            "counts": _nested(side.asker.asked),
            "over_budget": dict(side.asker.over_budget),
            "dropped": dict(side.asker.dropped),
            "problem": side.asker.last_error,
        },
        "otlp": None
        if side.exporter is None
        else {
            "sent": dict(side.exporter.sent),
            "lost": dict(side.exporter.lost),
            "problem": side.exporter.last_error,
        },
        "rollback_s": gateway.rollback_s,
        "share_zero_s": gateway.share_zero_s,
        "store_error": error or gateway.controller.last_error,
    }


def _shadow(gateway: Gateway) -> dict[str, Any] | None:
    """What became of sampled prompts; ``None`` where none is replayed."""
    replayer = gateway.side.replayer
    if not replayer.privacy.replay:
        return None
    return {
        "waiting": replayer.waiting(),
        "counts": dict(replayer.counts + gateway.taster.pairs),
        "problem": replayer.last_error,
    }


def _nested(counts: Mapping[tuple[str, str], int]) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for (name, arm), n in sorted(counts.items()):
        found.setdefault(name, {})[arm] = n
    return found


def samples(gateway: Gateway, request: Request) -> list[Sample]:
    """The newest samples of both arms, newest first.

    Query: ``limit``; ``bad`` with the name of a signal, or ``any``, for those alone
    that it found bad; ``pairs=1`` for those alone that were replayed.

    Raises:
        ValueError: The limit is no number.
    """
    limit = max(1, min(int(request.one("limit", "50")), SAMPLES_MAX))
    bad, pairs = request.one("bad", ""), request.one("pairs", "") == "1"
    if not bad and not pairs:
        return gateway.taster.spool.latest(limit)
    found = gateway.taster.spool.latest(10 * SAMPLES_MAX)
    wanted = (s for s in found if _is_wanted(s, bad, pairs))
    return [s for s, _ in zip(wanted, range(limit), strict=False)]


def _is_wanted(sample: Sample, bad: str, pairs: bool) -> bool:
    if pairs and sample.shadow is None:
        return False
    sides = [sample.signals or {}]
    if sample.shadow is not None:
        sides.append(sample.shadow.signals)
    if bad == "any":
        return any(value for side in sides for value in side.values())
    return not bad or any(side.get(bad) for side in sides)
