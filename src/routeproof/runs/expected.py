"""How many streams a run will have open at once, before it has begun.

A closed level says it. An open one says when requests arrive, and how long they take
only the engine knows: so a few requests are sent before the run, and the arrivals of
the plan are counted as if each took as long as the slowest of those. Under load they
take longer; the number is a floor, and the client watches itself during the run too.
"""

import asyncio
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from routeproof.runs.blocks import Block, Plan
from routeproof.runs.client import Client, Limits
from routeproof.runs.request import Target, body_of, head_of, path_of, request_of

FEWEST_STREAMS = 16
"""Taken for an open level when nothing better is known, and never gone below."""

MOST_STREAMS = 1024
"""No more is taken for an open level: the mock shares the machine with the client."""

_PILOTS = 3
_PILOT_WITHIN_S = 20.0
_NONCE = "pilot"
"""Stands before the prompts, so that no prefix cache is warmed."""


@dataclass(frozen=True, slots=True)
class Expected:
    """Streams at once.

    Attributes:
        why: Where the number is from, as a clause.
    """

    streams: int
    why: str


async def expected_streams(
    plan: Plan, target: Target, *, may_send: bool = True
) -> Expected:
    """The most streams that a plan will have open at once.

    Args:
        plan: What will be sent.
        target: Where to.
        may_send: Whether a few requests may go before the run.
    """
    blocks = [block for stage in plan.stages for block in stage.blocks]
    closed = max(map(_slots, blocks), default=0)
    arrivals = [b.offsets_s for b in blocks if b.offsets_s is not None]
    if not arrivals:
        return Expected(max(closed, 1), "the highest concurrency")
    latency_s = await _latency_s(plan, target) if may_send else None
    if latency_s is None:
        found = Expected(FEWEST_STREAMS, "how long a request takes is not known")
    else:
        found = _of_arrivals(arrivals, latency_s)
    return found if found.streams >= closed else Expected(closed, "the highest level")


def _slots(block: Block) -> int:
    """Streams of a closed block: no more than it has requests."""
    slots = block.concurrency or 0
    return slots if block.count is None else min(slots, block.count)


def _of_arrivals(arrivals: list[NDArray[np.float64]], latency_s: float) -> Expected:
    most = max(most_at_once(offsets_s, latency_s) for offsets_s in arrivals)
    streams = min(max(most, FEWEST_STREAMS), MOST_STREAMS)
    why = f"{most} arrivals within the {latency_s:.2g} s that a first request took"
    if streams < most:
        why += f"; no more than {MOST_STREAMS} are tried"
    elif streams > most:
        why += f"; no fewer than {FEWEST_STREAMS} are tried"
    return Expected(streams, why)


def most_at_once(offsets_s: NDArray[np.float64], latency_s: float) -> int:
    """Most requests in flight when each takes ``latency_s``.

    Example:
        >>> most_at_once(np.array([0.0, 0.1, 0.2, 5.0]), 0.15)
        2
    """
    gone = np.searchsorted(offsets_s, offsets_s - latency_s, side="right")
    return int((np.arange(1, len(offsets_s) + 1) - gone).max(initial=0))


async def _latency_s(plan: Plan, target: Target) -> float | None:
    """The slowest of a few first requests; ``None`` when none was answered."""
    n = len(plan.cases)
    cases = [plan.cases[i] for i in sorted({0, n // 2, n - 1})][:_PILOTS]
    limit_s = min(plan.workload.load.request_timeout_s, _PILOT_WITHIN_S)
    client = Client(target.endpoint, Limits(total_s=limit_s))
    requests = []
    for number, case in enumerate(cases):
        body = body_of(
            case,
            target,
            plan.workload.sampling,
            stream=plan.workload.stream,
            nonce=_NONCE,
        ).data
        head = head_of(target.endpoint, path_of(case))
        requests.append(request_of(head, body, f"pilot/{number}"))
    try:
        captures = await asyncio.gather(*map(client.send, requests))
    finally:
        await client.close()
    answered = [
        (one.end_ns - one.dispatched_ns) / 1e9
        for one in captures
        if one.status == 200 and (one.failure is None or one.failure[0] == "timeout")
    ]
    return max(answered, default=None)
