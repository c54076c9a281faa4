"""The accepted-token profile of a run as a reference, and a run against one."""

from dataclasses import dataclass
from pathlib import Path

from routeproof.jobs.comparing.accepted import reference_of_run
from routeproof.jobs.gathering.gathered import gather_run
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
