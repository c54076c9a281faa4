"""What a run writes down of the engines behind its routes."""

import contextlib
from collections.abc import Iterator

import msgspec

from routeproof.errors import EngineError
from routeproof.jobs.qualifying.route_checks import RouteChecks
from routeproof.jobs.qualifying.stand_up import Routes, Standing
from routeproof.records.store import RunFolder


def keep_answers(folder: RunFolder, arm: str, standing: Standing) -> None:
    """Store the raw answers the inventory was read from."""
    place = folder.probe_path(arm)
    place.mkdir(parents=True, exist_ok=True)
    for path, body in standing.read_back.raw.items():
        name = path.strip("/").replace("/", "_").replace("?", "_") or "root"
        (place / f"{name}.txt").write_text(body, encoding="utf-8")


CHECKS_NOTE = "route_checks"
"""The note of a manifest that holds `RouteChecks`."""


def note_checks(folder: RunFolder, checks: RouteChecks) -> None:
    """Put what is known of both routes now in the place of what was."""
    manifest = folder.read_manifest()
    notes = {**manifest.notes, CHECKS_NOTE: msgspec.to_builtins(checks)}
    folder.write_manifest(msgspec.structs.replace(manifest, notes=notes))


@contextlib.contextmanager
def deaths_noted(routes: Routes, folder: RunFolder) -> Iterator[None]:
    """Write into the manifest which launched engine died before it was stopped."""
    try:
        yield
    finally:
        arms = (("baseline", routes.baseline), ("candidate", routes.candidate))
        dead = {
            arm: standing.running.died(arm)
            for arm, standing in arms
            if standing.running is not None and standing.running.ended.done()
        }
        if dead:
            _note_deaths(folder, dead)


def _note_deaths(folder: RunFolder, dead: dict[str, EngineError]) -> None:
    manifest = folder.read_manifest()
    engines = {
        arm: {**facts, "died": dead[arm].log_tail} if arm in dead else facts
        for arm, facts in manifest.engines.items()
    }
    folder.write_manifest(msgspec.structs.replace(manifest, engines=engines))


def engine_facts(standing: Standing) -> dict[str, object]:
    """An engine in the manifest: its name, what it can do, what it cannot tell."""
    return {
        "name": standing.read_back.engine,
        "launched": standing.running is not None,
        "capabilities": dict(standing.read_back.capabilities),
        "cannot_tell": list(standing.read_back.cannot_tell),
    }
