"""The page of a load run, made from its folder."""

from pathlib import Path
from typing import Any

from routeproof.jobs.loading.plan import SELF_TEST
from routeproof.jobs.loading.summary import (
    Measured,
    bins_of,
    in_flight,
    level_part,
    measured,
    speed_of,
)
from routeproof.records.files import write_atomically
from routeproof.records.store import RunFolder
from routeproof.reports.load_page import LoadRun, render


def write_page(folder: RunFolder) -> Path:
    """Write ``report.html`` into the run folder.

    Raises:
        StoredRunError: The folder cannot be read or written.
    """
    run = measured(folder)
    manifest = run.manifest
    page = LoadRun(
        title=f"Load of {manifest.notes.get('endpoint', 'an endpoint')}",
        about=f"{manifest.run_id} · {manifest.created_wall}",
        facts=_facts(run),
        outcomes={
            level: level_part(run, phase, level)["outcomes"]
            for phase, level in run.requests.levels()
        },
        speed=speed_of(run),
        bins=bins_of(run),
        in_flight=in_flight(run),
        health=manifest.health,
    )
    path = folder.path / "report.html"
    write_atomically(path, render(page).encode())
    return path


def _facts(run: Measured) -> dict[str, str]:
    manifest = run.manifest
    notes = manifest.notes
    return {
        "endpoint": str(notes.get("endpoint", "")),
        "model": str(notes.get("model", "")),
        "engine": str(manifest.engines.get("baseline", {}).get("name", "")),
        "load": _load(notes.get("load")),
        "processes": str(notes.get("shards", 1)),
        "client tried with": str(notes.get(SELF_TEST, "nothing")),
        "SLOs": ", ".join(f"{k} within {v:g} s" for k, v in run.slo.items()) or "none",
        "finished": "yes" if manifest.finished else "no: it was ended early",
        "routeproof": manifest.versions.routeproof,
        "event loop": manifest.versions.event_loop or "",
        "machine": manifest.versions.platform,
    }


def _load(asked: Any) -> str:
    if not isinstance(asked, dict):
        return ""
    told = {name: value for name, value in asked.items() if value}
    if not asked.get("request_rate"):
        told.pop("arrivals", None)
    if told.get("arrivals") != "gamma":
        told.pop("burstiness", None)
    return ", ".join(f"{name} {_words(value)}" for name, value in told.items())


def _words(value: Any) -> str:
    if isinstance(value, list | tuple):
        return " ".join(f"{each:g}" for each in value)
    return f"{value:g}" if isinstance(value, int | float) else str(value)
