"""All runs of a route over time, from the judgements in their folders."""

from collections.abc import Iterator
from pathlib import Path

from routeproof.errors import StoredRunError
from routeproof.reports.judgement import Judgement, decode
from routeproof.reports.past import PastRun, past_run


def history(
    runs: Path, *, route: str | None = None, workload: str | None = None
) -> tuple[list[PastRun], tuple[str, ...]]:
    """The judged runs below a folder, oldest first.

    Args:
        runs: Folder that holds run folders.
        route: Only runs whose candidate has this digest (or its beginning), or whose
            model has this name.
        workload: Only runs of the workload with this fingerprint (or its beginning).

    Returns:
        The runs, and a sentence for each judgement that could not be read.

    Raises:
        StoredRunError: The folder is not there.
    """
    if not runs.is_dir():
        raise StoredRunError(
            f"{runs} is not a folder", hint="give the folder that holds the runs"
        )
    found: list[PastRun] = []
    unread: list[str] = []
    for path in sorted(_judgements(runs)):
        try:
            judgement = decode(path.read_bytes(), path=path)
        except StoredRunError as error:
            unread.append(error.message)
            continue
        if _is_wanted(judgement, route, workload):
            found.append(past_run(judgement, str(path.parent)))
    found.sort(key=lambda run: (run.started_at or "", run.run_id))
    return found, tuple(unread)


def _judgements(runs: Path) -> Iterator[Path]:
    own = runs / "judgement.json"
    if own.exists():
        yield own
    yield from runs.glob("*/judgement.json")


def _is_wanted(judgement: Judgement, route: str | None, workload: str | None) -> bool:
    run = judgement.provenance
    if workload and not (run.workload_fingerprint or "").startswith(workload):
        return False
    if not route:
        return True
    routes = judgement.evidence.routes
    model = next(
        (
            f.value
            for f in (routes.candidate.fields if routes else ())
            if f.name == "model"
        ),
        None,
    )
    return (run.candidate_digest or "").startswith(route) or model == route
