"""`routeproof judge`: a run folder to its judgement, the same on every machine."""

import hashlib
from collections.abc import Iterable
from pathlib import Path

from routeproof import __version__
from routeproof.gates.evidence import Evidence
from routeproof.gates.result import Check, GateResult, Status
from routeproof.gates.table import judge as judge_gates
from routeproof.jobs.gathering.checklist import atrt
from routeproof.jobs.gathering.evidence_of import evidence_of
from routeproof.jobs.gathering.gathered import Gathered, file_digest, gather_run
from routeproof.jobs.gathering.search_record import SEARCH_NAME, search_tables
from routeproof.records.files import write_atomically
from routeproof.reports.judgement import (
    Evidenced,
    Judgement,
    Provenance,
    WorstSlice,
    encode,
)
from routeproof.verdict import Verdict, decide


def judge(run_folder: Path) -> Judgement:
    """Judge a run and write ``judgement.json`` beside its records.

    A pure function of the folder: scores that are missing are made and stored, then
    metrics, gates and verdict follow from what is there. No clock and no randomness
    but the run's own seed enters.

    Raises:
        StoredRunError: The folder is no run, or it is damaged.
    """
    run = gather_run(run_folder)
    judgement = judgement_of(run, evidence_of(run))
    write_atomically(run.folder.judgement_path, encode(judgement))
    return judgement


def judgement_of(run: Gathered, evidence: Evidence) -> Judgement:
    """Gates, verdict and everything reports show of one run."""
    gates = judge_gates(evidence)
    verdict = decide(gates)
    return Judgement(
        headline=headline(verdict),
        verdict=verdict,
        gates=gates,
        evidence=evidence,
        provenance=provenance(run, evidence),
        worst=worst_slice(gates, evidence),
        more_evidence=more_evidence(gates),
        atrt=atrt(evidence, verdict),
        tables=search_tables(run.folder),
    )


def headline(verdict: Verdict) -> str:
    """The decision and its first reason, one sentence."""
    return f"{verdict.decision.upper().replace('_', ' ')}: {verdict.reasons[0]}"


def provenance(run: Gathered, evidence: Evidence) -> Provenance:
    """What was judged, by which versions."""
    manifest, routes = run.manifest, evidence.routes
    end = run.requests.number("end_s").where_known()
    folder = run.folder
    digests = {
        "records": _digest_of_all(folder.part_paths()),
        "proof": file_digest(folder.proof_path),
        "cases": file_digest(folder.cases_path),
        "search": file_digest(folder.path / SEARCH_NAME),
    }
    return Provenance(
        run_id=manifest.run_id,
        started_at=manifest.created_wall,
        routeproof_version=__version__,
        workload_fingerprint=manifest.fingerprint,
        baseline_digest=None if routes is None else routes.baseline.digest,
        candidate_digest=None if routes is None else routes.candidate.digest,
        seed=None if run.proof is None else run.proof.workload.seed,
        cases=len(run.cases),
        requests=run.requests.n,
        duration_s=float(end.max()) if end.size else None,
        scorers=_scorer_versions(run),
        digests={name: found for name, found in digests.items() if found},
        environment={
            key: str(value) for key, value in sorted(manifest.environment.items())
        },
    )


def _digest_of_all(paths: Iterable[Path]) -> str:
    """One digest over the digests of all parts, in their order."""
    whole = hashlib.sha256()
    for path in paths:
        whole.update((file_digest(path) or "").encode())
    return whole.hexdigest()


def _scorer_versions(run: Gathered) -> dict[str, int]:
    if run.scores is None:
        return {}
    pairs = zip(run.scores.scorer.tolist(), run.scores.version.tolist(), strict=True)
    return dict(sorted(set(pairs)))


def worst_slice(gates: Iterable[GateResult], evidence: Evidence) -> WorstSlice | None:
    """The quality question that is worst: failed first, then by its estimate."""
    checks = [
        check
        for gate in gates
        if gate.gate == "correctness"
        for check in gate.checks
        if check.kind == "difference"
        and check.estimate is not None
        and check.n
        # A probe asks no case: it has no pairs to read.
        and not check.name.startswith("probe[")
    ]
    harmed = [check for check in checks if (check.estimate or 0.0) < 0]
    if not harmed:
        return None
    worst = min(harmed, key=_badness)
    examples = [
        flip
        for flip in evidence.quality.flips
        if flip.direction == "loss"
        and worst.slice.get("class", flip.class_) == flip.class_
        and worst.slice.get("phase", flip.phase) == flip.phase
        and worst.slice.get("level", flip.level) == flip.level
    ]
    return WorstSlice(
        question=worst.name, reason=worst.reason, examples=tuple(examples[:2])
    )


def _badness(check: Check) -> tuple[bool, float]:
    return check.status is not Status.FAILED, check.estimate or 0.0


def more_evidence(gates: Iterable[GateResult]) -> tuple[Evidenced, ...]:
    """Every open question that more requests would settle, with how many."""
    return tuple(
        Evidenced(
            question=check.name,
            have=check.n or 0,
            need=check.n_needed,
            unit="pairs" if gate.gate == "correctness" else "requests",
            reason=check.reason,
        )
        for gate in gates
        for check in gate.checks
        if check.status is Status.INCONCLUSIVE and check.n_needed is not None
    )
