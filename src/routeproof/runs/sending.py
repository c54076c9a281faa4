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
from routeproof.runs.request import Target, body_of, head_of, path_of, request_of

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
        self._bodies: dict[tuple[int, int], bytes] = {}
        self._seeded = plan.workload.sampling.seed is not None

    def prepare(self, planned: Sequence[Planned]) -> None:
        """Encode the bodies before the clock runs."""
        for path in {path_of(case) for case in self._plan.cases}:
            self._heads[path] = head_of(self._target.endpoint, path)
        for one in planned:
            self._body(one)

    async def send(self, planned: Planned, due_ns: int | None = None) -> None:
        """Send one request and hand its capture on."""
        case = self._plan.cases[planned.case]
        head = self._heads[path_of(case)]
        request = request_of(head, self._body(planned), planned.request_id)
        capture = await self._client.send(request, due_ns)
        self._backlog.add(capture, self.key(planned), self._target.adapter)

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
        )

    def _body(self, planned: Planned) -> bytes:
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
    ends_ns = None
    if block.duration_s is not None:
        ends_ns = monotonic_ns() + int(block.duration_s * 1e9)

    async def slot() -> None:
        for planned in requests:
            await sender.send(planned)
            if ends_ns is not None and monotonic_ns() >= ends_ns:
                return

    tasks = [asyncio.ensure_future(slot()) for _ in range(block.concurrency or 1)]
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
        for planned in requests:
            due_ns = start_ns + int((planned.offset_s or 0.0) * 1e9)
            wait_ns = due_ns - monotonic_ns()
            if wait_ns > 0:
                # uvloop's timers count whole milliseconds and may ring early; half a
                # millisecond late on average is kept as latency, early would hide some.
                await asyncio.sleep(math.ceil(wait_ns / 1e6) / 1e3)
                while monotonic_ns() < due_ns:
                    await asyncio.sleep(0)
            if len(running) >= MAX_IN_FLIGHT:
                sender.not_started(planned, due_ns)
                continue
            task = loop.create_task(sender.send(planned, due_ns))
            running.add(task)
            task.add_done_callback(running.discard)
        if running:
            await asyncio.gather(*running)
    finally:
        for task in running:
            task.cancel()
