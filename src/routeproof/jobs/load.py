"""The load generator on its own: one endpoint, one or more load levels."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import uvloop

from routeproof.errors import MeasurementError
from routeproof.jobs.loading.plan import (
    SELF_TEST,
    LoadOptions,
    planned,
    slo_limits,
    target_of,
)
from routeproof.records.manifest import Threshold
from routeproof.records.record import Arm
from routeproof.records.store import RunFolder
from routeproof.runs.blocks import Plan
from routeproof.runs.conduct import Progress, conduct
from routeproof.runs.expected import expected_streams
from routeproof.runs.job import read_job, write_job
from routeproof.runs.logbook import Logbook, merge_shards
from routeproof.runs.on_ray import conduct_on_ray
from routeproof.runs.request import Target
from routeproof.runs.selftest import self_test
from routeproof.runs.shard import dead_shards
from routeproof.runs.sharded import conduct_sharded, stages_done
from routeproof.runs.sockets import allow_streams

if TYPE_CHECKING:
    from routeproof.jobs.loading.summary import Measured

__all__ = ["Loaded", "LoadOptions", "collect", "load", "prepare"]

_Listeners = tuple[Callable[[Progress], None] | None, Callable[[str], None] | None]


@dataclass(frozen=True, slots=True)
class Loaded:
    """What came of a load run.

    Attributes:
        is_interrupted: Ctrl-C ended it; what had finished is here all the same.
        page: The page in the run folder.
    """

    run: "Measured"
    is_interrupted: bool
    page: Path


def load(
    url: str,
    out: Path,
    options: LoadOptions,
    *,
    progress: Callable[[Progress], None] | None = None,
    say: Callable[[str], None] | None = None,
) -> Loaded:
    """Load one endpoint and measure what it does.

    Args:
        url: Base URL of the API.
        out: The run folder; must not hold a run, unless it is resumed.
        options: What to send.
        progress: Called a few times a second.
        say: Takes a sentence about what happens before the first request.

    Returns:
        What was measured; records and page are in the folder.

    Raises:
        ConfigError: The endpoint or an option is wrong.
        MeasurementError: More failures than allowed; what was measured is kept.
        StoredRunError: The folder cannot be used.
        KeyboardInterrupt: Interrupted before anything was sent.
    """
    options = replace(options, slo=slo_limits(options.slo))
    folder = RunFolder.open(out) if options.resume else RunFolder.create(out)
    is_interrupted = False
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(_send(url, folder, options, (progress, say)))
    except KeyboardInterrupt:
        if not folder.part_paths():
            raise
        is_interrupted = True
    except MeasurementError as error:
        if folder.part_paths():
            _shown(folder)
        raise MeasurementError(
            error.message,
            hint=f"what was measured is in {out}; mend the endpoint and go on with "
            "--resume, or raise --max-failure-share",
        ) from error
    return _shown(folder, is_interrupted=is_interrupted)


def prepare(url: str, out: Path, options: LoadOptions) -> Path:
    """Write a plan for ``routeproof worker``; nothing is sent but the probe.

    Returns:
        The run folder, to be shared by all workers.

    Raises:
        ConfigError: The endpoint or an option is wrong.
        StoredRunError: The folder cannot be used.
    """
    options = replace(options, slo=slo_limits(options.slo))
    folder = RunFolder.create(out)

    async def written() -> None:
        target = await target_of(url, options)
        plan = planned(url, folder, options, target)
        write_job(folder, plan, {"baseline": target}, time.time())
        folder.barrier_path.mkdir()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(written())
    return folder.path


def collect(path: Path, shards: int) -> Loaded:
    """Put together what the workers of a prepared plan have written.

    Raises:
        StoredRunError: The folder cannot be read.
    """
    folder = RunFolder.open(path)
    plan, _, zero_wall_s = read_job(folder)
    stages = stages_done(plan, folder)
    dead = dead_shards(folder.barrier_path)
    gone = {i: (at - zero_wall_s, words) for i, (at, words) in dead.items()}
    for shard in range(shards):
        if shard not in gone and not folder.shard_path(shard).exists():
            gone[shard] = (0.0, "it has written nothing")
    merge_shards(folder, shards, gone, stages=stages)
    for stage in stages:
        Logbook(folder).note_stage(stage)
    _finish(folder)
    return _shown(folder)


def _shown(folder: RunFolder, *, is_interrupted: bool = False) -> Loaded:
    # Imported after the run: charts and statistics take a second to load.
    from routeproof.jobs.loading.page import write_page
    from routeproof.jobs.loading.summary import measured

    return Loaded(measured(folder), is_interrupted, write_page(folder))


async def _send(
    url: str, folder: RunFolder, options: LoadOptions, listeners: _Listeners
) -> None:
    progress, say = listeners
    if options.on is None:
        allow_streams(
            -(-max(options.arrivals.concurrency, default=1) // options.shards)
        )
    target = await target_of(url, options)
    plan = planned(url, folder, options, target)
    before = await _tested(plan, target, options, (folder, say))
    targets: dict[Arm, Target] = {"baseline": target}
    if options.on is not None:
        await conduct_on_ray(
            plan,
            targets,
            folder,
            shards=options.shards,
            address=options.on,
            progress=progress,
            before=before,
        )
    elif options.shards > 1:
        await conduct_sharded(
            plan,
            targets,
            folder,
            shards=options.shards,
            progress=progress,
            before=before,
        )
    else:
        await conduct(plan, targets, folder, progress=progress, before=before)
    _finish(folder)


def _finish(folder: RunFolder) -> None:
    manifest = folder.read_manifest()
    folder.write_manifest(msgspec.structs.replace(manifest, finished=True))


async def _tested(
    plan: Plan,
    target: Target,
    options: LoadOptions,
    to: tuple[RunFolder, Callable[[str], None] | None],
) -> tuple[Threshold, ...]:
    """The client against the mock, with the streams that one process will have.

    What is expected, and why, is kept in the manifest's notes.
    """
    if not options.is_tested:
        return ()
    folder, say = to
    expected = await expected_streams(plan, target, may_send=options.warmup > 0)
    streams = -(-expected.streams // options.shards)
    words = f"{streams} streams ({expected.why})"
    if options.shards > 1:
        words = f"{streams} streams per process ({expected.why})"
    if say is not None:
        say(f"testing the load client against a mock: {words}")
    manifest = folder.read_manifest()
    notes = {**manifest.notes, SELF_TEST: words}
    folder.write_manifest(msgspec.structs.replace(manifest, notes=notes))
    return await self_test(streams)
