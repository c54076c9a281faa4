"""One of several load processes: ``python -m routeproof.runs.worker FOLDER``.

Every process builds the plan of the job in the folder and sends its share. Under
Kubernetes Indexed Jobs, ``--shard`` is the completion index and the folder a shared
volume; ``routeproof.runs.sharded`` starts the processes on one machine.
"""

import argparse
import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec
import uvloop

from routeproof.errors import RouteproofError
from routeproof.records.store import RunFolder
from routeproof.runs.conduct import Conducted, Progress, conduct
from routeproof.runs.job import read_job
from routeproof.runs.shard import FolderBarrier, Shard

_BARRIER_SLACK_S = 60.0


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """A line on standard output: how far this process is."""

    phase: str
    level: str
    arm: str
    done: int
    planned: int | None
    failed: int
    left_s: float | None


async def work(
    path: Path, index: int, count: int, *, start_at: float | None = None
) -> Conducted:
    """Send share ``index`` of ``count`` of the job in the folder.

    Args:
        path: The run folder, seen by all processes.
        index: Number of this process, from 0.
        count: How many processes there are.
        start_at: Wall clock (Unix, s) before which nothing is sent.

    Raises:
        RouteproofError: As ``conduct``, or there is no job.
    """
    folder = RunFolder.open(path, shard=index)
    plan, targets, zero_wall_s = read_job(folder)
    patience_s = plan.workload.load.request_timeout_s + _BARRIER_SLACK_S
    barrier = FolderBarrier(folder.barrier_path, index, count, patience_s)
    shard = Shard(index, count, barrier, start_at, zero_wall_s)
    return await conduct(plan, targets, folder, progress=_tell, shard=shard)


def _tell(progress: Progress) -> None:
    told = Told(
        phase=progress.phase,
        level=progress.level,
        arm=progress.arm,
        done=progress.done,
        planned=progress.planned,
        failed=progress.failed,
        left_s=progress.left_s,
    )
    print(msgspec.json.encode(told).decode(), flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; its exit code is that of the error, 0 when all was sent."""
    parser = argparse.ArgumentParser(prog="python -m routeproof.runs.worker")
    parser.add_argument("folder", type=Path, help="the run folder, with its job")
    parser.add_argument("--shard", default="0/1", help="this process: i/n, from 0")
    parser.add_argument("--seed", type=int, help="must be the job's, if given")
    parser.add_argument("--start-at", type=float, help="Unix time of the first block")
    given = parser.parse_args(arguments)
    index, _, count = given.shard.partition("/")
    if not (index.isdecimal() and count.isdecimal() and int(index) < int(count)):
        parser.error(f"--shard is i/n with i below n, not {given.shard}")
    try:
        if given.seed is not None:
            _check_seed(given.folder, given.seed)
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(
                work(given.folder, int(index), int(count), start_at=given.start_at)
            )
    except RouteproofError as error:
        print(str(error), file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return 130
    return 0


def _check_seed(path: Path, seed: int) -> None:
    plan, *_ = read_job(RunFolder.open(path))
    if plan.seed != seed:
        raise RouteproofError(
            f"the job in {path} has the seed {plan.seed}, not {seed}",
            hint="all processes of a run share one seed",
        )


if __name__ == "__main__":
    sys.exit(main())
