"""The canary's Prometheus page and its alert rules.

Labels are route, arm, gate and outcome only: never a tenant, a user or text that a
model or a client made up.
"""

from collections.abc import Iterable

from routeproof.canary.evidence import Standing
from routeproof.canary.gateway import Gateway
from routeproof.canary.split import PPM
from routeproof.canary.state import State

Labels = dict[str, str]

PHASES = (
    "ready", "stepping", "held", "paused", "rolling_back", "rolled_back", "promoted",
)  # fmt: skip


class _Page:
    def __init__(self) -> None:
        self.lines: list[str] = []

    def family(
        self, name: str, kind: str, what: str, rows: Iterable[tuple[Labels, float]]
    ) -> None:
        self.lines += [f"# HELP {name} {what}", f"# TYPE {name} {kind}"]
        for labels, value in rows:
            inside = ",".join(f'{k}="{_quoted(v)}"' for k, v in labels.items())
            self.lines.append(f"{name}{{{inside}}} {value:.10g}")


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def metrics_page(
    gateway: Gateway, state: State | None, standings: list[Standing]
) -> str:
    """The page in the Prometheus text format. What is unknown has no line."""
    page = _Page()
    _traffic(page, gateway)
    _standing(page, gateway, state, standings)
    return "\n".join([*page.lines, ""])


def _traffic(page: _Page, gateway: Gateway) -> None:
    """What passed and what was tasted."""
    route = {"route": gateway.config.name}
    counts, taster = gateway.router.counts, gateway.taster
    page.family(
        "routeproof_requests_total", "counter", "Answered requests by arm and status.",
        (
            ({**route, "arm": arm, "status": status}, n)
            for (arm, status), n in sorted(counts.requests.items())
        ),
    )  # fmt: skip
    page.family(
        "routeproof_fallbacks_total", "counter",
        "Canary requests sent to the baseline for a feature they use.",
        (({**route, "feature": f}, n) for f, n in sorted(counts.fallbacks.items())),
    )  # fmt: skip
    page.family(
        "routeproof_samples_total", "counter", "Answers taken for scoring.",
        (({**route, "arm": arm}, n) for arm, n in sorted(taster.taken.items())),
    )  # fmt: skip
    page.family(
        "routeproof_samples_dropped_total", "counter", "Samples lost before scoring.",
        (({**route, "arm": arm}, taster.dropped[arm]) for arm in ("canary", "control")),
    )  # fmt: skip


def _standing(
    page: _Page, gateway: Gateway, state: State | None, standings: list[Standing]
) -> None:
    """Where the canary stands, and the evidence on each signal."""
    route = {"route": gateway.config.name}
    weight = gateway.lease.weight_ppm() / PPM
    page.family(
        "routeproof_canary_weight", "gauge", "Share the canary may get now (0..1).",
        [(route, weight)],
    )  # fmt: skip
    share = gateway.meter.share()
    page.family(
        "routeproof_canary_observed_share", "gauge", "Share it gets (0..1).",
        [] if share is None else [(route, share)],
    )  # fmt: skip
    age = gateway.lease.age_s()
    page.family(
        "routeproof_state_snapshot_age_seconds", "gauge", "Age of the state reading.",
        [] if age is None else [(route, age)],
    )  # fmt: skip
    page.family(
        "routeproof_canary_state", "gauge", "1 for the phase the canary is in.",
        []
        if state is None
        else (({**route, "phase": p}, float(p == state.phase)) for p in PHASES),
    )  # fmt: skip
    page.family(
        "routeproof_gate_evidence", "gauge",
        "Log e-value of a signal over the value that settles it.",
        (
            ({**route, "gate": s.name, "side": side}, value)
            for s in standings
            for side, value in (
                ("harm", s.harm_log_e / s.harm_at),
                ("safe", s.safe_log_e / s.safe_at),
            )
        ),
    )  # fmt: skip
    page.family(
        "routeproof_gate_outcome", "gauge", "1 for the outcome of a signal.",
        (
            ({**route, "gate": s.name, "outcome": s.outcome.value}, 1.0)
            for s in standings
        ),
    )  # fmt: skip
    page.family(
        "routeproof_draft_rejection_rate", "gauge",
        "Drafted tokens that were not accepted, as a share, by arm.",
        (
            ({**route, "arm": arm}, value)
            for arm, value in gateway.taster.rejection().items()
            if value is not None
        ),
    )  # fmt: skip
    page.family(
        "routeproof_rollback_seconds", "gauge",
        "Last rollback: trigger to last candidate byte.",
        [] if gateway.rollback_s is None else [(route, gateway.rollback_s)],
    )  # fmt: skip


ALERTS = """\
groups:
  - name: routeproof
    rules:
      - alert: CanaryRolledBack
        expr: routeproof_canary_state{phase=~"rolling_back|rolled_back"} == 1
        annotations: {summary: "{{ $labels.route }} was rolled back"}
      - alert: CanaryHeld
        expr: routeproof_canary_state{phase="held"} == 1
        for: 15m
        annotations: {summary: "{{ $labels.route }} waits for evidence"}
      - alert: CanaryShareAboveWeight
        expr: routeproof_canary_observed_share > routeproof_canary_weight + 0.05
        for: 2m
        annotations: {summary: "{{ $labels.route }} serves more than it may"}
      - alert: CanaryStateStale
        expr: routeproof_state_snapshot_age_seconds > 10
        for: 1m
        annotations: {summary: "{{ $labels.route }} runs without fresh state"}
      - alert: CanarySamplesDropped
        expr: rate(routeproof_samples_dropped_total[5m]) > 0
        for: 10m
        annotations: {summary: "{{ $labels.route }} loses samples"}
      - alert: CanarySilent
        expr: absent(routeproof_canary_state)
        for: 2m
        annotations: {summary: "no canary reports its state"}
      - alert: CanaryWeightSilent
        expr: absent(routeproof_canary_weight)
        for: 2m
        annotations: {summary: "no canary reports its weight"}
      - alert: CanaryShareSilent
        expr: absent(routeproof_canary_observed_share)
        for: 30m
        annotations: {summary: "no share is observed: no traffic, or no gateway"}
      - alert: CanaryAgeSilent
        expr: absent(routeproof_state_snapshot_age_seconds)
        for: 2m
        annotations: {summary: "no canary reports the age of its state"}
      - alert: CanarySamplesSilent
        expr: absent(routeproof_samples_total)
        for: 30m
        annotations: {summary: "no answer is tasted"}
      - alert: CanaryDropsSilent
        expr: absent(routeproof_samples_dropped_total)
        for: 30m
        annotations: {summary: "nobody counts lost samples"}
"""
"""Alert rules; each has a twin that fires when its series is gone."""
