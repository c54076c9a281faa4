"""A run folder, read once: everything a judgement is made from."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from routeproof.errors import ConfigError, StoredRunError
from routeproof.gates.facts import JudgeRow
from routeproof.gates.probed import Probed
from routeproof.jobs.gathering.drill_evidence import with_drill
from routeproof.jobs.gathering.judges import JUDGED, held_against, judged
from routeproof.jobs.gathering.reduced import reduced_parts
from routeproof.jobs.gathering.sandbox_notes import keep_self_test
from routeproof.jobs.gathering.stored_probes import stored_probes
from routeproof.jobs.reviewing.people import people_of
from routeproof.metrics.histogram import LogHistogram
from routeproof.metrics.pairs import with_partners
from routeproof.metrics.requests import Requests, gather
from routeproof.metrics.stages import Stage
from routeproof.proof.file import load_proof
from routeproof.proof.proof import Proof
from routeproof.records.columns import Bools, Records
from routeproof.records.manifest import Manifest
from routeproof.records.store import RunFolder
from routeproof.scorers.scored import (
    UNSCORED_PHASES,
    Scores,
    columns_for,
    concatenate,
    read_scores,
    score_records,
    write_scores,
)
from routeproof.scorers.world import batch_scorers
from routeproof.workloads.case import Case
from routeproof.workloads.cases import read_cases


@dataclass(frozen=True, slots=True)
class Gathered:
    """A run in memory, a few numbers per request.

    Attributes:
        proof: ``None`` for a run without a proof file, such as a load test.
        gaps: Chunk gaps by (arm, phase, level).
        scores: Of scorers, judges and people; ``None`` without cases.
        telemetry: Samples as stored; empty when none were taken.
        judges: Judge models and people, each with whether it can be believed.
        probed: Small questions put to both routes; ``None`` when none were.
    """

    folder: RunFolder
    manifest: Manifest
    proof: Proof | None
    cases: tuple[Case, ...]
    requests: Requests
    gaps: dict[Stage, LogHistogram]
    scores: Scores | None
    telemetry: tuple[Records, ...]
    judges: tuple[JudgeRow, ...] = ()
    probed: Probed | None = None


def gather_run(path: Path) -> Gathered:
    """Read a run folder; scores are made and stored if they are missing.

    Raises:
        StoredRunError: No run, or one that cannot be read.
    """
    folder = RunFolder.open(path)
    manifest = folder.read_manifest()
    cases = read_cases(folder.cases_path) if folder.cases_path.exists() else ()
    gaps: dict[Stage, LogHistogram] = {}
    requests = with_partners(gather(_requests(folder, gaps)))
    proof = read_proof(folder, manifest)
    scores, judges = with_judges(folder, proof, cases)
    return Gathered(
        folder=folder,
        manifest=manifest,
        proof=proof,
        cases=cases,
        requests=requests,
        gaps=gaps,
        scores=scores,
        telemetry=tuple(folder.telemetry()),
        judges=judges,
        probed=stored_probes(folder),
    )


def with_judges(
    folder: RunFolder, proof: Proof | None, cases: tuple[Case, ...]
) -> tuple[Scores | None, tuple[JudgeRow, ...]]:
    """All scores of a run: of its scorers, its judges and its people.

    Raises:
        StoredRunError: A stored file is damaged, or a record names what is not there.
    """
    scores = scores_of(folder, cases)
    if scores is None:
        return None, ()
    said, people = judged(folder, proof, cases), people_of(folder, cases)
    model = () if said.scores is None else (said.scores,)
    rows = (
        held_against(row, people.against(model[0], row.scorer) if model else None)
        for row in said.rows
    )
    further = (*model, *people.scores)
    whole = concatenate((scores, *further)) if further else scores
    return whole, (*rows, *people.rows)


def judged_scores(path: Path) -> Scores | None:
    """Scores that the judges of a run gave; ``None`` when it has none.

    Raises:
        StoredRunError: The folder is no run, or is damaged.
    """
    folder = RunFolder.open(path)
    if not folder.manifest_path.exists():
        return None
    cases = read_cases(folder.cases_path) if folder.cases_path.exists() else ()
    proof = read_proof(folder, folder.read_manifest())
    return judged(folder, proof, cases).scores


def read_proof(folder: RunFolder, manifest: Manifest) -> Proof | None:
    """The proof a run was made for, from its manifest, else from its file."""
    if manifest.proof:
        try:
            return msgspec.convert(manifest.proof, Proof)
        except msgspec.ValidationError as error:
            raise StoredRunError(
                f"{folder.manifest_path}: the proof in it cannot be read: {error}",
                hint="judge it with the version of routeproof that made it",
            ) from None
    if not folder.proof_path.exists():
        return None
    return with_drill(load_proof(folder.proof_path), folder.path)


def _requests(folder: RunFolder, gaps: dict[Stage, LogHistogram]) -> Iterator[Records]:
    """The requests part by part; chunk gaps are added up on the way."""
    for part in reduced_parts(folder):
        for stage, each in part.gaps:
            gaps[stage] = gaps[stage].plus(each) if stage in gaps else each
        yield part.requests


def scores_of(folder: RunFolder, cases: tuple[Case, ...]) -> Scores | None:
    """Scores of every answer: those stored, and new ones for what they lack.

    Returns:
        ``None`` for a run without cases: there is nothing to score against.

    Raises:
        StoredRunError: A record names a case or a scorer that is not there.
    """
    if not cases:
        return None
    stored = read_scores(folder.scores_path) if folder.scores_path.exists() else None
    done = set() if stored is None else set(stored.request_id.tolist())
    light = folder.parts(only=("request_id", "phase"))
    if stored is not None and not any(_lacks(part, done).any() for part in light):
        return stored
    whole = folder.parts(only=frozenset(columns_for(cases)))
    lacking = (part.where(_lacks(part, done)) for part in whole)
    # What judges say is read from their replies each time, never stored twice.
    plain = tuple(
        msgspec.structs.replace(
            case, scorers=tuple(name for name in case.scorers if name not in JUDGED)
        )
        for case in cases
    )
    try:
        with batch_scorers(plain) as batch:
            fresh = score_records(plain, lacking, batch=batch)
            keep_self_test(folder, batch)
    except ConfigError as error:
        raise StoredRunError(error.message, hint=error.hint) from None
    scores = fresh if stored is None else concatenate((stored, fresh))
    if fresh.n or stored is None:
        write_scores(folder.scores_path, scores)
    return scores


def _lacks(part: Records, done: set[str]) -> Bools:
    """True for a request that should have a score and has none."""
    return ~part.is_in("phase", UNSCORED_PHASES) & ~part.is_in("request_id", done)


def file_digest(path: Path) -> str | None:
    """SHA-256 of a file, ``None`` when there is none."""
    if not path.exists():
        return None
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
