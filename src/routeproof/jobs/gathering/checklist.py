"""The `atrt` object: a runtime checklist filled in from a run."""

from routeproof.gates.evidence import Evidence
from routeproof.gates.facts import LatencyRow
from routeproof.gates.slo import target_load
from routeproof.reports.judgement import Atrt
from routeproof.routes.inventory import Inventory
from routeproof.verdict import Verdict

_FRAMEWORK = ("engine.name", "engine.version", "engine.commit", "engine.maturity")
_ROUTE = (
    "model",
    "revision",
    "weights",
    "kv_cache",
    "attention_backend",
    "speculation.method",
    "speculation.draft.model",
    "speculation.draft.revision",
    "speculation.draft_tokens",
    "speculation.placement",
    "hardware.device",
    "context_limit_tokens",
)
_LATENCY = ("time_to_first_token", "time_per_output_token", "request_latency")


def atrt(evidence: Evidence, verdict: Verdict) -> Atrt:
    """The checklist of one run; ``None`` where the run cannot tell."""
    routes = evidence.routes
    candidate = None if routes is None else routes.candidate
    baseline = None if routes is None else routes.baseline
    return Atrt(
        framework=_fields(candidate, _FRAMEWORK),
        route=_fields(candidate, _ROUTE),
        baseline=_fields(baseline, (*_FRAMEWORK, *_ROUTE)),
        acceptance=dict(evidence.acceptance.overall),
        latency=_latency(evidence),
        memory=_memory(evidence),
        decision=verdict.decision.value,
        stop_use=verdict.stop_use,
    )


def _fields(
    inventory: Inventory | None, names: tuple[str, ...]
) -> dict[str, str | None]:
    return {
        name: None if inventory is None else inventory.value(name) for name in names
    }


def _latency(evidence: Evidence) -> dict[str, float | None]:
    """Candidate percentiles at the target load, and the gain."""
    load = target_load(evidence)
    rows = {
        row.metric: row
        for row in evidence.speed.latencies
        if row.arm == "candidate" and (row.phase, row.level) == load
    }
    found: dict[str, float | None] = {}
    for metric in _LATENCY:
        for q in (0.5, 0.95, 0.99):
            name = f"{metric}_s_p{round(q * 100)}"
            found[name] = _percentile(rows.get(metric), q)
    wanted = evidence.agreed.performance.gain.metric
    gains = [r for r in evidence.speed.ratios if r.metric == wanted and r.of == "mean"]
    at_load = [r for r in gains if (r.phase, r.level) == load]
    found["gain_ratio"] = at_load[0].gain if at_load else None
    return found


def _percentile(row: LatencyRow | None, q: float) -> float | None:
    if row is None:
        return None
    return next((p.value for p in row.percentiles if p.q == q), None)


def _memory(evidence: Evidence) -> dict[str, float | None]:
    found: dict[str, float | None] = {}
    for row in evidence.stability.memory:
        found[f"{row.name}_peak"] = row.peak.candidate
        found[f"{row.name}_peak_ratio"] = row.peak.ratio()
    return found
