"""The same run with several load processes on this machine.

One process is right up to some 256 streams; beyond that the client's own processor is
the limit. The processes share the run folder: each takes its part of every block
(``runs.shard``), they begin each block together, and each writes parts of its own.
"""

import asyncio
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from routeproof.errors import MeasurementError
from routeproof.records.manifest import StageDone, Threshold
from routeproof.records.record import Arm
from routeproof.records.store import RunFolder
from routeproof.runs.blocks import Plan
from routeproof.runs.job import write_job
from routeproof.runs.logbook import Logbook, merge_shards
from routeproof.runs.progress import Conducted, Joined, Progress
from routeproof.runs.request import Target
from routeproof.runs.session import origin_of
from routeproof.runs.shard import dead_shards, mark_dead


async def conduct_sharded(
    plan: Plan,
    targets: Mapping[Arm, Target],
    folder: RunFolder,
    *,
    shards: int,
    progress: Callable[[Progress], None] | None = None,
    before: Sequence[Threshold] = (),
) -> Conducted:
    """As ``conduct``, with ``shards`` processes.

    A process that dies is marked, the others go on without it, and what it has not
    sent is missing; the run is then invalid for the levels that were under way, and
    sending again with the same folder completes it.

    Raises:
        MeasurementError: A process gave up with an error of its own, or all died.
        StoredRunError: The folder cannot be used.
    """
    zero_wall_s = origin_of(folder).wall_s
    secrets = write_job(folder, plan, targets, zero_wall_s)
    shutil.rmtree(folder.barrier_path, ignore_errors=True)
    folder.barrier_path.mkdir()
    stored = folder.done_request_ids()
    began_s = time.monotonic()
    crew = _Crew(folder, shards, Joined(shards, progress))
    try:
        await crew.run({**os.environ, **secrets})
    finally:
        dead = dead_shards(folder.barrier_path)
        gone = {i: (at - zero_wall_s, words) for i, (at, words) in dead.items()}
        stages = stages_done(plan, folder)
        merge_shards(folder, shards, gone, before=before, stages=stages)
    for done in stages:
        Logbook(folder).note_stage(done)
    sent = folder.done_request_ids() - stored
    return Conducted(
        sent=len(sent),
        skipped=len(stored),
        failed=crew.joined.failed,
        seconds=time.monotonic() - began_s,
    )


@dataclass(slots=True)
class _Crew:
    """The processes and what they last told."""

    folder: RunFolder
    count: int
    joined: Joined
    errors: list[str] = field(default_factory=list)

    async def run(self, environ: Mapping[str, str]) -> None:
        tasks = [
            asyncio.ensure_future(self._one(index, environ))
            for index in range(self.count)
        ]
        try:
            codes = await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        if self.errors:
            raise MeasurementError(f"a load process stopped: {self.errors[0]}")
        if not any(code == 0 for code in codes):
            raise MeasurementError(
                f"all {self.count} load processes died (exit codes {codes})",
                hint="what had been stored is kept; go on with --resume",
            )

    async def _one(self, index: int, environ: Mapping[str, str]) -> int:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "routeproof.runs.worker", str(self.folder.path)),
            f"{index}/{self.count}",
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=environ,
        )
        assert process.stdout is not None and process.stderr is not None
        words = asyncio.ensure_future(process.stderr.read())
        try:
            async for line in process.stdout:
                self.joined.hear(index, msgspec.json.decode(line, type=Progress))
            code = await process.wait()
            said = (await words).decode("utf-8", "replace").strip()
        finally:
            words.cancel()
            if process.returncode is None:
                process.send_signal(signal.SIGINT)
                await process.wait()
        if code != 0:
            how = f"signal {-code}" if code < 0 else f"exit code {code}"
            mark_dead(self.folder.barrier_path, index, how)
            if code > 0:
                self.errors.append(said or how)
        return code


def stages_done(plan: Plan, folder: RunFolder) -> list[StageDone]:
    """The stages of a plan as the records in the folder tell them."""
    recorded: dict[tuple[str, str], int] = {}
    spans: dict[tuple[str, str], tuple[float, float]] = {}
    numbers = {b.number: (s.phase, s.level) for s in plan.stages for b in s.blocks}
    for part in folder.parts(only=("block", "intended_s", "end_s")):
        starts = part.number("intended_s").values.tolist()
        ends = part.number("end_s").values.tolist()
        for block, start, end in zip(
            part.number("block").values, starts, ends, strict=True
        ):
            place = numbers.get(int(block))
            if place is not None:
                recorded[place] = recorded.get(place, 0) + 1
                low, high = spans.get(place, (start, end))
                spans[place] = (min(low, start), max(high, end))
    done = []
    for stage in plan.stages:
        place = (stage.phase, stage.level)
        count, planned = recorded.get(place, 0), stage.planned
        span = spans.get(place)
        done.append(
            StageDone(
                phase=stage.phase,
                level=stage.level,
                planned=planned,
                recorded=count,
                complete=planned is None or count >= planned,
                started_s=None if span is None else span[0],
                ended_s=None if span is None else span[1],
            )
        )
    return done
