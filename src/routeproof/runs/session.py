"""One call of ``conduct``: sends block after block and keeps what comes back."""

import asyncio
import gc
import itertools
import math
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import replace
from time import monotonic_ns

from routeproof.records.manifest import StageDone, Threshold
from routeproof.records.record import Arm, Record
from routeproof.records.store import RunFolder
from routeproof.runs.backlog import Backlog
from routeproof.runs.blocks import CONTROL, Block, Plan, Planned, Stage
from routeproof.runs.capture import Capture
from routeproof.runs.client import Client, Limits
from routeproof.runs.logbook import Logbook
from routeproof.runs.parse import Origin
from routeproof.runs.progress import Progress, Tally
from routeproof.runs.request import Target
from routeproof.runs.sending import Sender, send_block
from routeproof.runs.shard import Shard, every
from routeproof.runs.telemetry import EVERY_S, Sampler, open_nvml
from routeproof.runs.until import Until
from routeproof.runs.watch import Watch

FLUSH_EVERY_S = 2.0
TICK_S = 0.25
_REFUSED = "usage_refused_by"


class Session:
    """The state of one call of ``conduct``."""

    def __init__(
        self,
        plan: Plan,
        routes: Mapping[Arm, Target],
        folder: RunFolder,
        *,
        progress: Callable[[Progress], None] | None,
        before: Sequence[Threshold],
        shard: Shard,
        until: Until | None = None,
    ) -> None:
        self._progress = progress
        self._shard = shard
        self._until = until
        self._unwanted = 0
        self._plan = plan
        self._routes = dict(routes)
        self._folder = folder
        self._done = folder.done_request_ids()
        self.tally = Tally(plan, self._done)
        self._clients: dict[int, Client] = {}
        self._flushed_s = time.monotonic()
        self._stage: Stage | None = None
        self._stage_done = 0
        origin = origin_of(folder, self._shard.zero_wall_s)
        self._origin = origin
        self._backlog = Backlog(origin, self._take)
        self._watch = Watch()
        self._logbook = Logbook(folder, before, alone=self._shard.count == 1)
        self._refused_by = self._logbook.recall(_REFUSED)
        self._drop_usage()
        self._sampler = Sampler(_apart(routes), folder, origin, open_nvml())

    def enter(self, stage: Stage) -> None:
        """A stage begins; its blocks follow."""
        self._stage = stage
        self._stage_done = self._unwanted = 0
        self._stage_began_s = self._origin.seconds(monotonic_ns())

    def leave(self, stage: Stage) -> None:
        """Store the stage's records and write it into the manifest."""
        self._folder.flush()
        self._sampler.flush()
        self._logbook.note_health(self._watch)
        ended_s = self._origin.seconds(monotonic_ns())
        planned = stage.planned
        self._logbook.note_stage(
            StageDone(
                phase=stage.phase,
                level=stage.level,
                planned=planned,
                recorded=self._stage_done,
                complete=planned is None
                or self._stage_done + self._unwanted >= planned,
                started_s=self._stage_began_s,
                ended_s=ended_s,
            )
        )

    async def block(self, block: Block) -> None:
        """Send what is missing of one block."""
        if block.count is None and self._logbook.is_done(block.number):
            return
        share = self._shard.share(block)
        if share is None:
            await self._shard.meet(block.number)
            return
        whole, (block, offset, step) = block, share
        missing = self._missing(whole, every(whole.requests(), offset, step))
        first = list(itertools.islice(missing, block.count or block.n_cases))
        if not first:
            await self._shard.meet(block.number)
            return
        target = self._routes[block.arm]
        client = self._client(target)
        sender = Sender(block, self._plan, target, client, self._backlog)
        sender.shard = self._shard.index
        sender.prepare(first)
        sender.first_offset_s = self._first_offset_s(whole)
        await client.open(min(block.concurrency or 1, len(first)))
        arm = "baseline" if block.arm == CONTROL else block.arm
        await self._sample(arm, thorough=True)
        opened = client.opened
        await self._shard.meet(block.number)
        self._watch.enter()
        await self._beside(
            send_block(sender, itertools.chain(first, missing)),
            self._keep(block),
            self._watch.sample_lag(block),
            self._sampler.keep_sampling(arm, every_s=self._sample_every_s()),
        )
        self._backlog.drain()
        self._drop_usage()
        self._watch.leave(block, client.opened - opened)
        await self._sample(arm)
        gc.collect()
        self.tally.check_failures()
        self._report(block)
        if block.count is None:
            self._folder.flush()
            self._logbook.note_block(block.number)
        elif self._flush_is_due():
            self._folder.flush()

    async def close(self) -> None:
        """Keep everything that has finished."""
        for client in self._clients.values():
            await client.close()
        self._backlog.drain()
        self._folder.flush()
        self._sampler.flush()
        self._logbook.note_health(self._watch)

    async def _beside(self, *all_: Coroutine[None, None, None]) -> None:
        """Run them until the first ends; what any of them raises ends the block."""
        tasks = [asyncio.ensure_future(one) for one in all_]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            ended = await asyncio.gather(*tasks, return_exceptions=True)
        for result in ended:
            if isinstance(result, Exception):
                raise result

    async def _keep(self, block: Block) -> None:
        """While a block runs: parse, store, report, apply the failure rule."""
        while True:
            await asyncio.sleep(TICK_S)
            await self._backlog.drain_gently()
            self.tally.check_failures()
            self._report(block)
            if self._flush_is_due():
                await asyncio.to_thread(self._folder.flush)

    def _flush_is_due(self) -> bool:
        now_s = time.monotonic()
        if now_s - self._flushed_s < FLUSH_EVERY_S:
            return False
        self._flushed_s = now_s
        return True

    def _drop_usage(self) -> None:
        """Ask no arm for usage once a server refused to be asked.

        Seen in the warm-up, before anything is measured, and done for all arms: they
        must get the same requests.
        """
        if self._refused_by is None or not self._routes["baseline"].ask_usage:
            return
        self._routes = {
            arm: replace(target, ask_usage=False)
            for arm, target in self._routes.items()
        }
        self._logbook.remember(_REFUSED, self._refused_by)
        self._watch.note(
            f"{self._refused_by} refuses `stream_options`: no arm is asked for usage, "
            "and output tokens are unknown unless the server tells them unasked"
        )

    def _take(self, record: Record, capture: Capture) -> None:
        answer = record.answer
        if answer.outcome == "http_error" and "stream_options" in (answer.error or ""):
            if record.key.phase == "warmup":
                self._refused_by = record.key.arm
        self._folder.append((record,))
        self._watch.see(record, capture)
        self._stage_done += 1
        self.tally.count(record)

    def _first_offset_s(self, block: Block) -> float:
        """Due time of the first request of an open block that has no record."""
        if block.offsets_s is None:
            return 0.0
        left = (p for p in block.requests() if p.request_id not in self._done)
        first = next(left, None)
        resumed = first is not None and not first.request_id.endswith("/0")
        return float(first.offset_s or 0.0) if first is not None and resumed else 0.0

    async def _sample(self, arm: str, *, thorough: bool = False) -> None:
        if self._shard.index == 0:
            await self._sampler.sample(arm, thorough=thorough)

    def _sample_every_s(self) -> float:
        """The first of several processes samples for all."""
        return EVERY_S if self._shard.index == 0 else math.inf

    def _missing(self, block: Block, requests: Iterator[Planned]) -> Iterator[Planned]:
        for planned in requests:
            if planned.request_id in self._done:
                self._stage_done += 1
            elif self._until is not None and not self._until.is_wanted(block, planned):
                self._unwanted += 1
            else:
                yield planned

    def _client(self, target: Target) -> Client:
        found = self._clients.get(id(target.endpoint))
        if found is None:
            total_s = self._plan.workload.load.request_timeout_s
            found = Client(target.endpoint, Limits(total_s=total_s))
            self._clients[id(target.endpoint)] = found
        return found

    def _report(self, block: Block) -> None:
        if self._progress is None or self._stage is None:
            return
        self._progress(
            Progress(
                phase=self._stage.phase,
                level=block.level,
                arm=block.arm,
                done=self._stage_done,
                planned=self._stage.planned,
                failed=self.tally.failed,
                left_s=self.tally.left_s(),
            )
        )


def _apart(routes: Mapping[Arm, Target]) -> dict[str, Target]:
    """Arms with a route of their own; the control usually has the baseline's."""
    apart: dict[str, Target] = {}
    for arm, target in routes.items():
        if all(target is not other for other in apart.values()):
            apart[arm] = target
    return apart


def origin_of(folder: RunFolder, zero_wall_s: float | None = None) -> Origin:
    """Zero of the run's clock; a resumed run goes on on the time line of its start."""
    now_ns, wall_s = monotonic_ns(), time.time()
    zero_s = zero_wall_s
    for records in folder.parts(only=("wall_s", "intended_s")):
        if zero_s is None:
            wall, intended = records.number("wall_s"), records.number("intended_s")
            zero_s = float(wall.values[0] - intended.values[0])
        break
    if zero_s is None:
        return Origin(now_ns, wall_s)
    return Origin(now_ns - int((wall_s - zero_s) * 1e9), zero_s)
