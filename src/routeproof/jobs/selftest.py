"""``routeproof selftest``: which faults would this proof notice?

The proof's own cases, load, tolerances and gates are run in virtual time against a
simulated candidate with one known fault at a time, weak, typical and plain. What comes
out is a table of power: the smallest strength at which a gate fails that does not fail
on a sound candidate.
"""

import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import msgspec

from routeproof.errors import ConfigError
from routeproof.gates.result import Status
from routeproof.jobs.judge import judge
from routeproof.jobs.virtual.blind import blind_spots
from routeproof.jobs.virtual.run import Baseline, virtual_run
from routeproof.proof.file import load_proof
from routeproof.proof.proof import Proof
from routeproof.proof.route import DraftSpec, EngineSpec, RouteSpec, SpeculationSpec
from routeproof.proof.workload import ArrivalSpec, LoadSpec, WorkloadSpec
from routeproof.reports.judgement import Judgement
from routeproof.routes.resolve import resolve
from routeproof.simulator.faults import Fault, fault
from routeproof.simulator.route import (
    Dialect,
    Identity,
    SimulatedRoute,
    Speculation,
)
from routeproof.workloads.case import Case
from routeproof.workloads.cases import load_cases

USUAL = (
    "quantization_noise",
    "kv_quantization_garble",
    "repetition_loop",
    "empty_answers",
    "length_explosion",
    "faster_because_shorter",
    "over_refusal",
    "leak_under_load",
    "multi_turn_loss",
    "language_loss",
    "template_tokens_shown",
    "schema_broken",
    "call_dropped",
    "stop_leak",
    "chunks_dropped",
    "stream_cut",
    "http_500",
    "slower",
    "slower_at_peak",
    "first_token_late",
    "prefill_slower",
    "draft_version_mismatch",
    "memory_leak",
    "kv_capacity_lost",
    "errors_under_load",
)
"""The faults that are tried when none are named."""

MOST_REQUESTS = 256
"""Requests a load level is cut to: a test of the gates, not of an engine."""

_DIALECTS: dict[str, Dialect] = {
    "vllm": "vllm",
    "sglang": "sglang",
    "llama.cpp": "llamacpp",
    "llamacpp": "llamacpp",
    "llama-server": "llamacpp",
    "tensorrt-llm": "tensorrt_llm",
}


class Tried(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One strength of one fault.

    Attributes:
        checks: New failures, as ``gate: check``, the gate that should see it first.
    """

    strength: float
    is_seen: bool
    decision: str
    checks: tuple[str, ...] = ()


class PowerRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the proof would notice of one fault.

    Attributes:
        smallest: The least strength tried that was seen; ``None`` when none was.
        seen_by: The check that saw it at that strength.
        unit: What the strength means.
        lacks: What the proof does not have and the fault needs to show; only of faults
            that were not seen.
    """

    fault: str
    family: str
    what: str
    reference: str
    unit: str
    gate: str
    smallest: float | None
    seen_by: str | None
    tried: tuple[Tried, ...]
    lacks: tuple[str, ...] = ()


class Power(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The table of power of a proof.

    Attributes:
        sound: Decision on a sound candidate; the table is read against it.
        sound_failures: Checks that fail without any fault: false alarms, or a proof
            that a sound candidate of this kind cannot pass.
    """

    cases: int
    requests: int | None
    sound: str
    sound_failures: tuple[str, ...]
    rows: tuple[PowerRow, ...]


def selftest(
    proof_path: Path | None = None,
    *,
    names: Sequence[str] = (),
    listener: Callable[[str], None] | None = None,
) -> Power:
    """Run a proof's gates against known faults.

    Args:
        proof_path: The proof; the golden set with usual tolerances when ``None``.
        names: Faults to try; ``USUAL`` when empty.
        listener: Told of each fault as it is tried.

    Raises:
        ConfigError: The proof, its cases or a name is wrong.
    """
    chosen = [fault(name) for name in (names or USUAL)]
    if proof_path is None:
        proof, base = usual_proof(), Path.cwd()
    else:
        proof, base = load_proof(proof_path), proof_path.parent
    cases = load_cases(proof.workload, base)
    return power_of(proof, cases, chosen, listener or (lambda words: None))


def power_of(
    proof: Proof,
    cases: Sequence[Case],
    faults: Iterable[Fault],
    listener: Callable[[str], None],
) -> Power:
    """The table of power of a proof with its cases."""
    proof = msgspec.structs.replace(proof, workload=trimmed(proof.workload, len(cases)))
    baseline_route, candidate_route = simulated_routes(proof)
    listener(f"{len(cases)} cases, a sound candidate first")
    baseline = Baseline.play(proof, cases, baseline_route)
    bench = _Bench(proof, baseline, candidate_route)
    sound = bench.judged({})
    known = {name for name, _ in _failures(sound)}
    rows = []
    for row in faults:
        listener(f"{row.name}: {row.what}")
        found = bench.power(row, known)
        if found.smallest is None:
            lacks = blind_spots(row, cases, proof.workload)
            found = msgspec.structs.replace(found, lacks=lacks)
        rows.append(found)
    return Power(
        cases=len(cases),
        requests=baseline.plan.planned,
        sound=sound.verdict.decision.value,
        sound_failures=tuple(sorted(known)),
        rows=tuple(rows),
    )


class _Bench:
    """A proof, a baseline that has been played, a candidate to spoil."""

    def __init__(
        self, proof: Proof, baseline: Baseline, candidate: SimulatedRoute
    ) -> None:
        self._proof = proof
        self._baseline = baseline
        self._candidate = candidate

    def judged(self, faults: dict[str, float]) -> Judgement:
        """The judgement of the candidate with some faults."""
        route = msgspec.structs.replace(self._candidate, faults=faults)
        with tempfile.TemporaryDirectory(prefix="routeproof-selftest-") as place:
            folder = virtual_run(
                Path(place) / "run", self._proof, self._baseline, route
            )
            return judge(folder.path)

    def power(self, row: Fault, known: set[str]) -> PowerRow:
        """Plain case first: what it does not show, weaker ones will not either."""
        plain = self._try(row, row.high, known)
        tried = [plain]
        if plain.is_seen and row.low != row.high:
            tried.append(self._try(row, row.low, known))
            if not tried[-1].is_seen and row.usual not in (row.low, row.high):
                tried.append(self._try(row, row.usual, known))
        weakest_first = sorted(tried, key=lambda t: _weakness(row, t.strength))
        found = next((t for t in weakest_first if t.is_seen), None)
        return PowerRow(
            fault=row.name,
            family=row.family,
            what=row.what,
            reference=row.reference,
            unit=row.strength,
            gate=row.gate,
            smallest=found.strength if found else None,
            seen_by=found.checks[0] if found else None,
            tried=tuple(weakest_first),
        )

    def _try(self, row: Fault, strength: float, known: set[str]) -> Tried:
        judgement = self.judged({row.name: strength})
        fresh = [(n, g) for n, g in _failures(judgement) if n not in known]
        fresh.sort(key=lambda found: found[1] != row.gate)
        return Tried(
            strength=strength,
            is_seen=bool(fresh),
            decision=judgement.verdict.decision.value,
            checks=tuple(name for name, _ in fresh),
        )


def _failures(judgement: Judgement) -> list[tuple[str, str]]:
    """Failed checks as (``gate: check``, gate)."""
    return [
        (f"{gate.gate}: {check.name}", gate.gate)
        for gate in judgement.gates
        for check in gate.checks
        if check.status is Status.FAILED
    ]


def _weakness(row: Fault, strength: float) -> float:
    """0 for the weakest strength of a fault, growing towards its plain case."""
    return (strength - row.low) * (1.0 if row.high >= row.low else -1.0)


# -- proof and routes ----------------------------------------------------------------


def usual_proof() -> Proof:
    """The golden set against a speculative candidate, usual tolerances."""
    baseline = RouteSpec(
        endpoint="http://simulated.invalid/v1",
        model="simulated/target",
        revision="r1",
        engine=EngineSpec(name="vllm", version="0.32.0"),
    )
    spec = SpeculationSpec(
        method="eagle3",
        draft=DraftSpec(model="simulated/draft", revision="d1"),
        draft_tokens=4,
    )
    candidate = RouteSpec(
        like="baseline",
        endpoint="http://simulated.invalid/v1",
        speculation=spec,
        changes=("speculation",),
    )
    load = LoadSpec(
        quality=ArrivalSpec(concurrency=(8,)),
        latency=ArrivalSpec(concurrency=(1,), requests=64),
        sweep=ArrivalSpec(concurrency=(8, 32), requests=128),
    )
    return Proof(
        baseline=baseline, candidate=candidate, workload=WorkloadSpec(load=load)
    )


def trimmed(workload: WorkloadSpec, cases: int) -> WorkloadSpec:
    """The workload with no load level longer than ``MOST_REQUESTS`` requests."""

    def cut(spec: ArrivalSpec | None) -> ArrivalSpec | None:
        if spec is None or spec.trace is not None:
            return None
        wanted = spec.requests
        if wanted is None:
            wanted = cases if spec.duration_s is None else MOST_REQUESTS
        return msgspec.structs.replace(
            spec, requests=min(wanted, MOST_REQUESTS), duration_s=None
        )

    load = workload.load
    changed = msgspec.structs.replace(
        load,
        latency=cut(load.latency),
        sweep=cut(load.sweep),
        soak=cut(load.soak),
        request_timeout_s=min(load.request_timeout_s, 120.0),
    )
    return msgspec.structs.replace(workload, load=changed)


def simulated_routes(proof: Proof) -> tuple[SimulatedRoute, SimulatedRoute]:
    """Simulated routes that call themselves what the proof declares.

    Raises:
        ConfigError: The proof cannot be resolved.
    """
    first, second = resolve(proof)
    if first.model is None and second.model is None:
        raise ConfigError("the proof names no model", key="baseline.model")
    return _route(first), _route(second)


def _route(spec: RouteSpec) -> SimulatedRoute:
    engine = spec.engine.name.lower() if spec.engine else "vllm"
    identity = Identity(
        model=spec.model or "simulated/target",
        revision=spec.revision,
        version=spec.engine.version if spec.engine else None,
        kv_cache=spec.kv_cache or "auto",
        weights=spec.weights or "bfloat16",
    )
    return SimulatedRoute(
        dialect=_DIALECTS.get(engine, "openai"),
        identity=identity,
        speculation=_speculation(spec.speculation),
    )


def _speculation(spec: SpeculationSpec | None) -> Speculation | None:
    if spec is None or spec.method == "none":
        return None
    draft = spec.draft
    return Speculation(
        method=spec.method,
        shape="block" if "flash" in spec.method else "chain",
        draft_tokens=spec.draft_tokens or 4,
        draft_model=draft.model if draft else None,
        draft_revision=draft.revision if draft else None,
    )
