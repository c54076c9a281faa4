"""What the canary measures of itself, once for Prometheus and once for OTLP.

Labels are route, arm, gate and outcome only: never a tenant, a user or text that a
model or a client made up.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from routeproof.canary.deciding.state import State
from routeproof.canary.gateway import Gateway
from routeproof.canary.splitting.split import PPM
from routeproof.canary.weighing.evidence import Standing
from routeproof.errors import StoredRunError

Labels = dict[str, str]
Rows = list[tuple[Labels, float]]

PHASES = (
    "ready", "stepping", "held", "paused", "rolling_back", "rolled_back", "promoted",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Family:
    """One metric. What is unknown has no row."""

    name: str
    kind: Literal["counter", "gauge"]
    what: str
    rows: Rows


def measured(gateway: Gateway) -> list[Family]:
    """Everything as it stands now; without the state where the store is silent."""
    try:
        state = gateway.store.read(gateway.config.name)
    except StoredRunError:
        state = None
    return families(gateway, state, gateway.taster.standings())


def families(
    gateway: Gateway, state: State | None, standings: list[Standing]
) -> list[Family]:
    """Everything, in the order of the page."""
    route = {"route": gateway.config.name}
    return [
        *_traffic(gateway, route),
        *_tasting(gateway, route),
        *_state(gateway, state, route),
        *_evidence(gateway, standings, route),
    ]


def _traffic(gateway: Gateway, route: Labels) -> Iterator[Family]:
    counts = gateway.router.counts
    yield Family(
        "routeproof_requests_total", "counter", "Answered requests by arm and status.",
        [
            ({**route, "arm": arm, "status": status}, n)
            for (arm, status), n in sorted(counts.requests.items())
        ],
    )  # fmt: skip
    yield Family(
        "routeproof_fallbacks_total", "counter",
        "Canary requests sent to the baseline for a feature they use.",
        [({**route, "feature": f}, n) for f, n in sorted(counts.fallbacks.items())],
    )  # fmt: skip


def _tasting(gateway: Gateway, route: Labels) -> Iterator[Family]:
    taster, side = gateway.taster, gateway.side
    arms = ("canary", "control")
    yield Family(
        "routeproof_samples_total", "counter", "Answers taken for scoring.",
        [({**route, "arm": arm}, n) for arm, n in sorted(taster.taken.items())],
    )  # fmt: skip
    yield Family(
        "routeproof_samples_dropped_total", "counter", "Samples lost before scoring.",
        [({**route, "arm": arm}, taster.dropped[arm]) for arm in arms],
    )  # fmt: skip
    yield Family(
        "routeproof_scorer_lag_seconds", "gauge", "Age of the oldest unscored sample.",
        [(route, taster.lag_s())],
    )  # fmt: skip
    yield Family(
        "routeproof_scorer_failures_total", "counter",
        "Answers a scorer or somebody who was asked could not score.",
        [
            ({**route, "gate": name, "arm": arm}, taster.ledger.failed[name, arm])
            for name in taster.evidence.policies
            for arm in arms
        ],
    )  # fmt: skip
    yield Family(
        "routeproof_asks_total", "counter", "Answers somebody was asked about.",
        [
            ({**route, "gate": name, "arm": arm}, n)
            for (name, arm), n in sorted(side.asker.asked.items())
        ],
    )  # fmt: skip
    yield Family(
        "routeproof_asks_dropped_total", "counter", "Not asked about for want of room.",
        [({**route, "arm": arm}, side.asker.dropped[arm]) for arm in arms],
    )  # fmt: skip
    yield Family(
        "routeproof_shadow_pairs_total", "counter", "Sampled prompts by their replay.",
        [
            ({**route, "outcome": outcome}, n)
            for outcome, n in sorted((side.replayer.counts + taster.pairs).items())
        ],
    )  # fmt: skip


def _state(gateway: Gateway, state: State | None, route: Labels) -> Iterator[Family]:
    yield Family(
        "routeproof_canary_weight", "gauge", "Share the canary may get now (0..1).",
        [(route, gateway.lease.weight_ppm() / PPM)],
    )  # fmt: skip
    share = gateway.meter.share()
    yield Family(
        "routeproof_canary_observed_share", "gauge", "Share it gets (0..1).",
        [] if share is None else [(route, share)],
    )  # fmt: skip
    age = gateway.lease.age_s()
    yield Family(
        "routeproof_state_snapshot_age_seconds", "gauge", "Age of the state reading.",
        [] if age is None else [(route, age)],
    )  # fmt: skip
    yield Family(
        "routeproof_canary_state", "gauge", "1 for the phase the canary is in.",
        []
        if state is None
        else [({**route, "phase": p}, float(p == state.phase)) for p in PHASES],
    )  # fmt: skip
    yield Family(
        "routeproof_rollback_seconds", "gauge",
        "Last rollback: trigger to last candidate byte.",
        [] if gateway.rollback_s is None else [(route, gateway.rollback_s)],
    )  # fmt: skip
    yield Family(
        "routeproof_rollback_share_zero_seconds", "gauge",
        "Last rollback: trigger to an observed share of 0.",
        [] if gateway.share_zero_s is None else [(route, gateway.share_zero_s)],
    )  # fmt: skip


def _evidence(
    gateway: Gateway, standings: list[Standing], route: Labels
) -> Iterator[Family]:
    yield Family(
        "routeproof_gate_evidence", "gauge",
        "Log e-value of a signal over the value that settles it.",
        [
            ({**route, "gate": s.name, "side": side}, value)
            for s in standings
            for side, value in (
                ("harm", s.harm_log_e / s.harm_at),
                ("safe", s.safe_log_e / s.safe_at),
            )
        ],
    )  # fmt: skip
    yield Family(
        "routeproof_gate_outcome", "gauge", "1 for the outcome of a signal.",
        [
            ({**route, "gate": s.name, "outcome": s.outcome.value}, 1.0)
            for s in standings
        ],
    )  # fmt: skip
    yield Family(
        "routeproof_draft_rejection_rate", "gauge",
        "Drafted tokens that were not accepted, as a share, by arm.",
        [
            ({**route, "arm": arm}, value)
            for arm, value in gateway.taster.rejection().items()
            if value is not None
        ],
    )  # fmt: skip
