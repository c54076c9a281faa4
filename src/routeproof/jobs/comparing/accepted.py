"""How the acceptance of a route moved between two runs of one workload."""

from routeproof.errors import FormatError
from routeproof.gates.acceptance_reference import reference_from
from routeproof.gates.measure_acceptance import like_of, own_requests
from routeproof.jobs.gathering.evidence_of import facts_of, routes_of
from routeproof.jobs.gathering.gathered import Gathered
from routeproof.metrics.acceptance_drift import TOLERANCE, Drift, Reference, drift


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
