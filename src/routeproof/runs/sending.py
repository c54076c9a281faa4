"""Send one block: closed (a slot frees, the next goes) or open (by the clock)."""

import asyncio
import math
from collections.abc import Iterator, Sequence
from time import monotonic_ns

from routeproof.records.record import Key
from routeproof.runs.backlog import Backlog
from routeproof.runs.blocks import Block, Plan, Planned
from routeproof.runs.capture import Capture
from routeproof.runs.client import Client
from routeproof.runs.request import (
    Body,
    Target,
    body_of,
    head_of,
    path_of,
    request_of,
)

MAX_IN_FLIGHT = 8192
"""An open block starts no more than this at once; what is due beyond it is recorded
as ``not_started``."""

_LEAD_NS = 20_000_000
"""Between the start of an open block and its first arrival, for the loop to settle."""


class Sender:
    """Makes and sends the requests of one block.

    Attributes:
        first_offset_s: Where an open block begins: a resumed one at the first request
            that is missing.
        shard: Number of this process, for the records.
    """

    def __init__(
        self, block: Block, plan: Plan, target: Target, client: Client, backlog: Backlog
    ) -> None:
        self.block = block
        self.first_offset_s = 0.0
        self.shard = 0
        self._plan = plan
        self._target = target
        self._client = client
        self._backlog = backlog
        self._heads: dict[str, bytes] = {}
        self._bodies: dict[tuple[int, int], Body] = {}
        self._seeded = plan.workload.sampling.seed is not None

    def prepare(self, planned: Sequence[Planned]) -> None:
        """Encode the bodies before the clock runs."""
        for path in {path_of(case) for case in self._plan.cases}:
            self._heads[path] = head_of(self._target.endpoint, path)
        for one in planned:
            self._body(one)

    async def send(self, planned: Planned, due_ns: int | None = None) -> int:
        """Send one request and hand its capture on; when it ended."""
        case = self._plan.cases[planned.case]
        head = self._heads[path_of(case)]
        request = request_of(head, self._body(planned).data, planned.request_id)
        capture = await self._client.send(request, due_ns)
        self._backlog.add(capture, self.key(planned), self._target.adapter)
        return capture.end_ns

    async def send_turns(
        self,
        turns: Sequence[Planned],
        due_ns: int | None = None,
        *,
        ends_ns: int | None = None,
    ) -> None:
        """Send the turns of a session, each so long after the answer before it.

        A turn that fails does not end the session: every arm gets the same requests.
        What would begin at ``ends_ns`` or later is not sent.
        """
        ended_ns = await self.send(turns[0], due_ns)
        for planned in turns[1:]:
            due_ns = ended_ns + int(planned.think_s * 1e9)
            if ends_ns is not None and due_ns >= ends_ns:
                return
            await _until(due_ns)
            ended_ns = await self.send(planned, due_ns)

    def not_started(self, planned: Planned, due_ns: int) -> None:
        """Keep a request that was due and could not be sent."""
        capture = Capture(due_ns, end_ns=monotonic_ns())
        words = f"{MAX_IN_FLIGHT} requests were in flight already"
        capture.failure = ("not_started", words)
        self._backlog.add(capture, self.key(planned), self._target.adapter)

    def key(self, planned: Planned) -> Key:
        """Which request it is, for its record."""
        block = self.block
        return Key(
            request_id=planned.request_id,
            arm=block.arm,
            phase=block.phase,
            level=block.level,
            block=block.number,
            case_id=self._plan.cases[planned.case].id,
            trial=planned.trial,
            shard=self.shard,
            asked=self._body(planned).asked,
        )

    def _body(self, planned: Planned) -> Body:
        where = (planned.case, planned.trial if self._seeded else 0)
        body = self._bodies.get(where)
        if body is None:
            body = self._bodies[where] = body_of(
                self._plan.cases[planned.case],
                self._target,
                self._plan.workload.sampling,
                stream=self._plan.workload.stream,
                trial=planned.trial,
                nonce=self.block.nonce,
                prefill_only=self.block.prefill_only,
            )
        return body


async def send_block(sender: Sender, requests: Iterator[Planned]) -> None:
    """Send the requests of the sender's block, each in its way.

    A block that runs by the clock starts nothing new after its time and then waits
    for what is in flight: cutting it off would lose the longest answers.
    """
    if sender.block.offsets_s is None:
        await _closed(sender, requests)
    else:
        await _open(sender, requests)


async def _closed(sender: Sender, requests: Iterator[Planned]) -> None:
    block = sender.block
    began_ns, ends_ns = monotonic_ns(), None
    if block.duration_s is not None:
        ends_ns = began_ns + int(block.duration_s * 1e9)
    sessions = in_sessions(requests)

    async def slot(start_s: float) -> None:
        if start_s:
            await _until(began_ns + int(start_s * 1e9))
        for turns in sessions:
            await sender.send_turns(turns, ends_ns=ends_ns)
            if ends_ns is not None and monotonic_ns() >= ends_ns:
                return

    streams = block.concurrency or 1
    if block.count is not None:
        streams = min(streams, block.count)
    starts = [0.0] * streams
    if block.starts_s is not None:
        starts = block.starts_s[:streams].tolist()
    tasks = [asyncio.ensure_future(slot(start)) for start in starts]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()


async def _open(sender: Sender, requests: Iterator[Planned]) -> None:
    loop = asyncio.get_running_loop()
    running: set[asyncio.Task[None]] = set()
    start_ns = monotonic_ns() + _LEAD_NS - int(sender.first_offset_s * 1e9)
    try:
        for turns in in_sessions(requests):
            due_ns = start_ns + int((turns[0].offset_s or 0.0) * 1e9)
            wait_ns = due_ns - monotonic_ns()
            if wait_ns > 0:
                await _sleep(wait_ns)
                while monotonic_ns() < due_ns:
                    await asyncio.sleep(0)
            if len(running) >= MAX_IN_FLIGHT:
                for planned in turns:
                    sender.not_started(planned, due_ns)
                continue
            task = loop.create_task(sender.send_turns(turns, due_ns))
            running.add(task)
            task.add_done_callback(running.discard)
        if running:
            await asyncio.gather(*running)
    finally:
        for task in running:
            task.cancel()


def in_sessions(requests: Iterator[Planned]) -> Iterator[list[Planned]]:
    """Requests of one session together, in order; others one by one."""
    held: list[Planned] = []
    for planned in requests:
        if planned.session is None:
            yield [planned]
            continue
        if held and held[0].session != planned.session:
            yield held
            held = []
        held.append(planned)
    if held:
        yield held


async def _until(due_ns: int) -> None:
    """Wait for a moment; many may wait at once, so nothing spins."""
    while (wait_ns := due_ns - monotonic_ns()) > 0:
        await _sleep(wait_ns)


async def _sleep(wait_ns: int) -> None:
    # uvloop's timers count whole milliseconds and may ring early; half a millisecond
    # late on average is kept as latency, early would hide some.
    await asyncio.sleep(math.ceil(wait_ns / 1e6) / 1e3)
