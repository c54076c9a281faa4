"""The accepted-token profile of a run as a reference, and a run against one."""

from dataclasses import dataclass
from pathlib import Path

from routeproof.errors import FormatError
from routeproof.gates.acceptance_reference import reference_from
from routeproof.gates.measure_acceptance import like_of, own_requests
from routeproof.jobs.gathering.evidence_of import facts_of, routes_of
from routeproof.jobs.gathering.gathered import Gathered, gather_run
from routeproof.metrics.acceptance_drift import (
    TOLERANCE,
    Drift,
    Reference,
    drift,
    read_reference,
    write_reference,
)


@dataclass(frozen=True, slots=True)
class Accepted:
    """The acceptance of a run.

    Attributes:
        reference: Its integers.
        moved: Against an earlier one; empty when none was given.
    """

    reference: Reference
    moved: tuple[Drift, ...] = ()


def acceptance(
    run: Path,
    *,
    against: Path | None = None,
    save: Path | None = None,
    fall_max_share: float = TOLERANCE,
) -> Accepted:
    """The acceptance of the candidate of a run, and how it moved.

    Args:
        run: A run folder.
        against: A reference file, or the folder of an earlier run.
        save: Where to keep it as a reference.
        fall_max_share: Relative fall that is let pass.

    Raises:
        StoredRunError: No run, or one that cannot be read.
        FormatError: The reference cannot be read, was made on another workload, or
            the run tells nothing of speculation.
    """
    now = reference_of_run(gather_run(run))
    then = None
    if against is not None:
        is_run = against.is_dir()
        then = (
            reference_of_run(gather_run(against)) if is_run else read_reference(against)
        )
    moved = () if then is None else drift(then, now, tolerance=fall_max_share)
    if save is not None:
        write_reference(save, now)
    return Accepted(now, moved)


def acceptance_drift(
    then: Gathered, now: Gathered, *, fall_max_share: float = TOLERANCE
) -> tuple[Drift, ...]:
    """How acceptance moved between two runs of one workload, paired by case.

    Empty when one of them tells nothing of speculation.

    Raises:
        FormatError: The workloads differ.
    """
    try:
        old, new = reference_of_run(then), reference_of_run(now)
    except NoCounts:
        return ()
    return drift(old, new, tolerance=fall_max_share)


class NoCounts(FormatError):
    """A run that tells nothing of speculation."""


def reference_of_run(run: Gathered) -> Reference:
    """The integers of the candidate of a run.

    Raises:
        NoCounts: It tells nothing of speculation.
    """
    requests = run.requests
    found = reference_from(
        requests,
        own_requests(requests),
        facts_of(run),
        like=like_of(routes_of(run)),
        workload=run.manifest.fingerprint or "",
        run=run.manifest.run_id,
    )
    if found.overall.source == "none":
        raise NoCounts(
            "no answer of the candidate carries counts of speculation",
            path=run.folder.path,
            hint="switch the engine's per-request counts on; see docs/engines.md",
        )
    return found
