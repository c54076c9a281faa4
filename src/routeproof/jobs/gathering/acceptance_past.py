"""The stored reference of acceptance that a proof names, kept with its run."""

import shutil
from pathlib import Path

from routeproof.errors import ConfigError, FormatError
from routeproof.gates.measure_acceptance import Past
from routeproof.jobs.gathering.gathered import Gathered
from routeproof.metrics.acceptance_drift import read_reference
from routeproof.proof.proof import Proof

KEPT_NAME = "acceptance-reference.json"


def keep_reference(proof: Proof, base: Path, folder: Path) -> None:
    """Copy the reference a proof names into a run folder, so that it can be judged.

    Raises:
        ConfigError: It is not there or cannot be read.
    """
    name = proof.performance.acceptance.reference
    if name is None:
        return
    path = base / name
    try:
        read_reference(path)
    except FormatError as error:
        raise ConfigError(
            f"{path}: {error.message}",
            key="performance.acceptance.reference",
            hint="write it with `routeproof acceptance RUN --save FILE`",
        ) from None
    shutil.copyfile(path, folder / KEPT_NAME)


def past_of(run: Gathered) -> Past | None:
    """The reference that was kept in a run; ``None`` without one."""
    path = run.folder.path / KEPT_NAME
    if run.proof is None or not path.exists():
        return None
    return Past(
        reference=read_reference(path),
        workload=run.manifest.fingerprint or "",
        fall_max_share=run.proof.performance.acceptance.fall_max_share,
    )
