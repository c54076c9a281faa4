"""One of several load processes: ``routeproof worker FOLDER --shard i/n``.

Every process builds the plan of the job in the folder and sends its share. Under
Kubernetes Indexed Jobs, ``--shard`` is the completion index and the folder a shared
volume; ``routeproof.runs.sharded`` starts the processes on one machine.
"""

import asyncio
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import uvloop

from routeproof.errors import ConfigError, RouteproofError
from routeproof.records.store import RunFolder
from routeproof.runs.conduct import Conducted, Progress, conduct
from routeproof.runs.job import read_job
from routeproof.runs.shard import FolderBarrier, Shard

_BARRIER_SLACK_S = 60.0


async def work(
    path: Path,
    index: int,
    count: int,
    *,
    start_at: float | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Conducted:
    """Send share ``index`` of ``count`` of the job in the folder.

    Args:
        path: The run folder, seen by all processes.
        index: Number of this process, from 0.
        count: How many processes there are.
        start_at: Wall clock (Unix, s) before which nothing is sent.
        progress: Called a few times a second.

    Raises:
        RouteproofError: As ``conduct``, or there is no job.
    """
    folder = RunFolder.open(path, shard=index)
    plan, targets, zero_wall_s = read_job(folder)
    patience_s = plan.workload.load.request_timeout_s + _BARRIER_SLACK_S
    barrier = FolderBarrier(folder.barrier_path, index, count, patience_s)
    shard = Shard(index, count, barrier, start_at, zero_wall_s)
    return await conduct(plan, targets, folder, progress=progress, shard=shard)


def _tell(progress: Progress) -> None:
    """A line on standard output: how far this process is."""
    print(msgspec.json.encode(progress).decode(), flush=True)


def carry_out(
    path: Path,
    shard: str,
    *,
    seed: int | None = None,
    start_at: float | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Conducted:
    """``work`` on a loop of its own, with the arguments as a person writes them.

    Args:
        path: The run folder.
        shard: ``i/n``, from 0.
        seed: Must be the job's, if given.
        start_at: As for ``work``.
        progress: As for ``work``.

    Raises:
        ConfigError: The shard or the seed cannot be.
        RouteproofError: As ``work``.
    """
    index, _, count = shard.partition("/")
    if not (index.isdecimal() and count.isdecimal() and int(index) < int(count)):
        raise ConfigError(
            f"`{shard}` is no shard", key="--shard", hint="i/n with i below n: 3/8"
        )
    if seed is not None:
        plan, *_ = read_job(RunFolder.open(path))
        if plan.seed != seed:
            raise ConfigError(
                f"the job in {path} has the seed {plan.seed}, not {seed}",
                key="--seed",
                hint="all processes of a run share one seed",
            )
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        going = work(path, int(index), int(count), start_at=start_at, progress=progress)
        return runner.run(going)


def main(arguments: Sequence[str] | None = None) -> int:
    """What ``runs.sharded`` starts, without the imports of the command line."""
    path, shard = sys.argv[1:] if arguments is None else arguments
    try:
        carry_out(Path(path), shard, progress=_tell)
    except RouteproofError as error:
        print(str(error), file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
