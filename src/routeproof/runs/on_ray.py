"""The same run on a Ray cluster: load processes on other machines (extra ``ray``).

The contract is that of ``runs.worker``: every process builds the same plan and sends
its share, blocks begin together. What the shared folder does on one machine, one
actor does here: it holds the barrier, and takes the Parquet parts that the processes
finish, so that the driver can store them while the run goes on.
"""

import asyncio
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from routeproof.errors import ConfigError, MeasurementError
from routeproof.records.files import write_atomically
from routeproof.records.manifest import Threshold
from routeproof.records.record import Arm
from routeproof.records.store import RunFolder
from routeproof.runs.blocks import Plan
from routeproof.runs.conduct import conduct
from routeproof.runs.job import read_job, write_job
from routeproof.runs.logbook import Logbook, merge_shards
from routeproof.runs.progress import Conducted, Joined, Progress
from routeproof.runs.request import Target
from routeproof.runs.session import origin_of
from routeproof.runs.shard import Shard
from routeproof.runs.sharded import stages_done

_LEAD_S = 0.1
_FETCH_EVERY_S = 1.0

Part = tuple[str, bytes]
"""Path below the run folder, content."""


class Meeting:
    """The barrier and the mailbox; one actor, its methods run one at a time.

    Clocks of the machines are taken to agree to a few milliseconds (NTP).
    """

    def __init__(self, count: int) -> None:
        self._alive = set(range(count))
        self._here: dict[int, set[int]] = {}
        self._starts: dict[int, float] = {}
        self._gone: dict[int, tuple[float, str]] = {}
        self._parts: list[Part] = []
        self._told: dict[int, Progress] = {}
        self._turn = asyncio.Event()

    async def meet(self, block: int, shard: int) -> float:
        """Wait for all shards that are alive; the common start (Unix, s)."""
        self._here.setdefault(block, set()).add(shard)
        self._stir()
        while not self._here[block] >= self._alive:
            await self._turn.wait()
        return self._starts.setdefault(block, time.time() + _LEAD_S)

    async def leave(self, shard: int, words: str | None) -> None:
        """A shard is done, or gone (with words); nobody waits for it any more."""
        self._alive.discard(shard)
        if words is not None:
            self._gone[shard] = (time.time(), words)
        self._stir()

    async def put(self, part: Part) -> None:
        """Take a finished part."""
        self._parts.append(part)

    async def take(self) -> list[Part]:
        """Hand out and forget the parts that came since."""
        parts, self._parts = self._parts, []
        return parts

    async def tell(self, shard: int, progress: Progress) -> None:
        """Take how far a shard is."""
        self._told[shard] = progress

    async def told(self) -> dict[int, Progress]:
        """How far each shard said last that it is."""
        return dict(self._told)

    async def gone(self) -> dict[int, tuple[float, str]]:
        """Shards that died: wall clock and how."""
        return dict(self._gone)

    def _stir(self) -> None:
        self._turn.set()
        self._turn = asyncio.Event()


class _ActorBarrier:
    def __init__(self, actor: Any, shard: int) -> None:
        self._actor = actor
        self._shard = shard

    async def meet(self, block: int) -> float:
        start: float = await self._actor.meet.remote(block, self._shard)
        return start


class _SentFolder(RunFolder):
    """A run folder whose parts are sent to the driver as they are finished."""

    actor: Any
    done: frozenset[str]

    def flush(self) -> Path | None:
        path = super().flush()
        if path is not None:
            self.send(path)
        return path

    def done_request_ids(self) -> set[str]:
        return set(self.done)

    def send(self, path: Path) -> None:
        name = str(path.relative_to(self.path))
        self.actor.put.remote((name, path.read_bytes()))


async def conduct_on_ray(
    plan: Plan,
    targets: Mapping[Arm, Target],
    folder: RunFolder,
    *,
    shards: int,
    address: str = "auto",
    progress: Callable[[Progress], None] | None = None,
    before: Sequence[Threshold] = (),
) -> Conducted:
    """As ``conduct``, with ``shards`` processes spread over a Ray cluster.

    Args:
        plan: From ``build_plan``.
        targets: The route of each arm, by addresses that all machines reach.
        folder: On the driver; parts arrive there within seconds.
        shards: How many processes, one CPU each.
        address: Of the cluster (``ray://host:10001``), or ``auto``.
        progress: Called about once a second, with all processes together.
        before: Checks of ``runs.selftest.self_test``, to be kept with the others.

    Raises:
        ConfigError: Ray is not installed, or the cluster is not there.
        MeasurementError: All processes died.
        StoredRunError: The folder cannot be used.
    """
    ray = _connected(address)
    zero_wall_s = origin_of(folder).wall_s
    secrets = write_job(folder, plan, targets, zero_wall_s)
    job = (folder.shards_path / "job.json").read_bytes()
    stored = folder.done_request_ids()
    began_s = time.monotonic()
    actor = ray.remote(num_cpus=0)(Meeting).remote(shards)
    send = ray.remote(num_cpus=1, max_retries=0, scheduling_strategy="SPREAD")(_send)
    done = ray.put(frozenset(stored))
    tasks = [send.remote(actor, (i, shards), job, secrets, done) for i in range(shards)]
    failed = 0
    try:
        joined = Joined(shards, progress)
        failed = await _follow(ray, actor, tasks, (folder, joined))
    finally:
        for task in tasks:
            ray.cancel(task, force=False)
        gone = await actor.gone.remote()
        await _store(actor, folder)
        late = {i: (at - zero_wall_s, words) for i, (at, words) in gone.items()}
        stages = stages_done(plan, folder)
        merge_shards(folder, shards, late, before=before, stages=stages)
    if len(gone) == shards:
        raise MeasurementError(f"all {shards} load processes died: {gone[0][1]}")
    for stage in stages:
        Logbook(folder).note_stage(stage)
    sent = folder.done_request_ids() - stored
    return Conducted(
        sent=len(sent),
        skipped=len(stored),
        failed=failed,
        seconds=time.monotonic() - began_s,
    )


def _connected(address: str) -> Any:
    try:
        import ray
    except ImportError as error:
        raise ConfigError(
            "Ray is not installed", hint="pip install 'routeproof[ray]'"
        ) from error
    if not ray.is_initialized():
        try:
            ray.init(address=address, log_to_driver=False)
        except (ConnectionError, RuntimeError, ValueError) as error:
            raise ConfigError(f"no Ray cluster at {address}: {error}") from error
    return ray


async def _follow(
    ray: Any, actor: Any, tasks: list[Any], to: tuple[RunFolder, Joined]
) -> int:
    """Store parts as they come; say which shards are gone; until all have ended.

    Returns:
        How many requests failed, of the shards that ended well.
    """
    failed, (folder, joined) = 0, to
    numbers = {task: index for index, task in enumerate(tasks)}
    waiting = list(tasks)
    while waiting:
        ended, waiting = await asyncio.to_thread(
            ray.wait, waiting, num_returns=1, timeout=_FETCH_EVERY_S
        )
        for task in ended:
            words = None
            try:
                failed += await task
            except ray.exceptions.RayError as error:
                words = str(error).strip().splitlines()[-1][:200]
            await actor.leave.remote(numbers[task], words)
        await _store(actor, folder)
        for index, told in (await actor.told.remote()).items():
            joined.hear(index, told)
    return failed


async def _store(actor: Any, folder: RunFolder) -> None:
    for name, content in await actor.take.remote():
        path = folder.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(_free(path), content)


def _free(path: Path) -> Path:
    """A name that is not taken: an earlier part of the run had the same shards."""
    while path.exists() and path.suffix == ".parquet":
        stem, number = path.stem.rsplit("-", 1)
        path = path.with_name(f"{stem}-{int(number) + 1:06d}.parquet")
    return path


def _send(
    actor: Any,
    shard: tuple[int, int],
    job: bytes,
    secrets: Mapping[str, str],
    done: frozenset[str],
) -> int:
    """The task: send one share; returns how many requests failed."""
    import uvloop

    index, count = shard
    with tempfile.TemporaryDirectory(prefix="routeproof-shard-") as place:
        folder = _SentFolder(Path(place), shard=index)
        for name in ("records", "telemetry", "shards"):
            (folder.path / name).mkdir()
        folder.actor, folder.done = actor, done
        (folder.shards_path / "job.json").write_bytes(job)
        plan, targets, zero_wall_s = read_job(folder, secrets)
        part = Shard(index, count, _ActorBarrier(actor, index), None, zero_wall_s)
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            going = conduct(
                plan,
                targets,
                folder,
                progress=lambda told: actor.tell.remote(index, told),
                shard=part,
            )
            result = runner.run(going)
        folder.send(folder.shard_path(index))
        for path in sorted((folder.path / "telemetry").iterdir()):
            folder.send(path)
        return result.failed
