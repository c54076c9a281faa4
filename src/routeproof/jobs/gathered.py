"""A run folder, read once: everything a judgement is made from."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from routeproof.errors import ConfigError, StoredRunError
from routeproof.metrics.degenerate import degenerate_column
from routeproof.metrics.histogram import LogHistogram
from routeproof.metrics.per_request import COLUMNS, chunk_gaps, per_request
from routeproof.metrics.requests import Requests, gather
from routeproof.proof.file import load_proof
from routeproof.proof.proof import Proof
from routeproof.records.columns import Bools, Records
from routeproof.records.manifest import Manifest
from routeproof.records.store import RunFolder
from routeproof.scorers.answer_of import COLUMNS as SCORED_COLUMNS
from routeproof.scorers.scored import (
    UNSCORED_PHASES,
    Scores,
    concatenate,
    read_scores,
    score_records,
    write_scores,
)
from routeproof.workloads.case import Case
from routeproof.workloads.cases import read_cases

Stage = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Gathered:
    """A run in memory, a few numbers per request.

    Attributes:
        proof: ``None`` for a run without a proof file, such as a load test.
        gaps: Chunk gaps by (arm, phase, level).
        telemetry: Samples as stored; empty when none were taken.
    """

    folder: RunFolder
    manifest: Manifest
    proof: Proof | None
    cases: tuple[Case, ...]
    requests: Requests
    gaps: dict[Stage, LogHistogram]
    scores: Scores | None
    telemetry: tuple[Records, ...]


def gather_run(path: Path) -> Gathered:
    """Read a run folder; scores are made and stored if they are missing.

    Raises:
        StoredRunError: No run, or one that cannot be read.
    """
    folder = RunFolder.open(path)
    manifest = folder.read_manifest()
    cases = read_cases(folder.cases_path) if folder.cases_path.exists() else ()
    gaps: dict[Stage, LogHistogram] = {}
    requests = gather(_reduced(folder, gaps))
    return Gathered(
        folder=folder,
        manifest=manifest,
        proof=read_proof(folder, manifest),
        cases=cases,
        requests=requests,
        gaps=gaps,
        scores=scores_of(folder, cases),
        telemetry=tuple(folder.telemetry()),
    )


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
    return load_proof(folder.proof_path) if folder.proof_path.exists() else None


def _reduced(folder: RunFolder, gaps: dict[Stage, LogHistogram]) -> Iterator[Records]:
    for part in folder.parts(only=COLUMNS):
        reduced = per_request(part)
        yield reduced.with_number("is_degenerate", degenerate_column(part))
        for stage in _stages(part):
            keep = part.is_in("arm", stage[0]) & part.is_in("phase", stage[1])
            keep &= part.is_in("level", stage[2])
            found = chunk_gaps(part, keep)
            gaps[stage] = gaps[stage].plus(found) if stage in gaps else found


def _stages(part: Records) -> list[Stage]:
    columns = (part.text("arm"), part.text("phase"), part.text("level"))
    return sorted({s for s in zip(*columns, strict=True) if None not in s})


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
    whole = folder.parts(only=frozenset(SCORED_COLUMNS))
    try:
        fresh = score_records(cases, (part.where(_lacks(part, done)) for part in whole))
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
