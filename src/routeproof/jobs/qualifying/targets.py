"""Where the requests of each arm go, with the fields that both routes accept."""

import msgspec

from routeproof.jobs.qualifying.engine_papers import CHECKS_NOTE
from routeproof.jobs.qualifying.route_checks import RouteChecks
from routeproof.jobs.qualifying.stand_up import Routes, Standing
from routeproof.records.record import Arm
from routeproof.records.store import RunFolder
from routeproof.runs.request import Target


def targets(routes: Routes, folder: RunFolder) -> dict[Arm, Target]:
    """Both arms, with the request fields that both were found to accept."""
    noted = folder.read_manifest().notes.get(CHECKS_NOTE)
    checks = None if noted is None else msgspec.convert(noted, RouteChecks)
    return {
        "baseline": _target(routes.baseline, checks),
        "candidate": _target(routes.candidate, checks),
    }


def _target(standing: Standing, checks: RouteChecks | None) -> Target:
    fields = standing.adapter.request_fields()
    return Target(
        endpoint=standing.endpoint,
        model=standing.model,
        adapter=standing.adapter,
        pid=None if standing.running is None else standing.running.pid,
        adapter_fields=None if checks is None else checks.sendable(fields),
    )
