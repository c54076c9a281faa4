"""Targets, cases and plans for the tests of runs."""

import asyncio
from typing import Any

import uvloop

from routeproof.engines.endpoint import Endpoint
from routeproof.proof.workload import ArrivalSpec, LoadSpec, WorkloadSpec
from routeproof.records.record import EngineDetails, Key
from routeproof.runs.capture import Capture
from routeproof.runs.client import Client, Limits
from routeproof.runs.parse import Origin, parse
from routeproof.runs.request import Target, head_of, request_of
from routeproof.workloads.case import Case


class PlainAdapter:
    """Adds nothing and reads ``details`` as they stand in the last chunk."""

    name = "plain"
    metrics_path = ""

    def read_back(self, answers: Any) -> Any:
        raise AssertionError("not asked in these tests")

    def counters(self, exposition: str, at_s: float) -> Any:
        raise AssertionError("not asked in these tests")

    def request_fields(self) -> dict[str, Any]:
        return {}

    def details(self, body: Any) -> EngineDetails:
        return EngineDetails(**body.get("details", {}))


def a_target(url, **changes):
    given = {"endpoint": Endpoint(url), "model": "m", "adapter": PlainAdapter()}
    return Target(**{**given, **changes})


def some_cases(n):
    return tuple(_case(i) for i in range(n))


def _case(number):
    messages = ({"role": "user", "content": f"question {number}"},)
    return Case(id=f"case-{number}", class_="factual_qa", messages=messages)


def a_workload(phase="quality", *, load=None, trials=1, seed=7, **arrivals):
    stage = ArrivalSpec(**(arrivals or {"concurrency": (1,)}))
    stages = {"quality": stage, "latency": None} if phase == "quality" else {}
    if phase != "quality":
        stages = {phase: stage}
    return WorkloadSpec(
        trials=trials, seed=seed, load=LoadSpec(**stages, **(load or {}))
    )


def a_key(**changes):
    given = {
        "request_id": "r0",
        "arm": "baseline",
        "phase": "quality",
        "level": "c1",
        "block": 0,
        "case_id": "case-0",
        "trial": 0,
    }
    return Key(**{**given, **changes})


async def asked(
    url, *, limits=None, path="chat/completions", body=b"{}", endpoint=None
):
    """One request to ``url``, as a capture."""
    endpoint = endpoint or Endpoint(url)
    client = Client(endpoint, limits or Limits(total_s=10.0))
    try:
        return await client.send(request_of(head_of(endpoint, path), body, "r0"))
    finally:
        await client.close()


def record_of(capture, *, adapter=None):
    return parse(capture, a_key(), adapter or PlainAdapter(), Origin(0, 0.0))


def run(coroutine):
    """Run on the loop that the product uses."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(coroutine)


MS = 1_000_000


def captured(reads, *, end_ms=None, status=200, failure=None, headers=()):
    """A capture with the given (milliseconds, bytes) reads; the request began at 0."""
    last_ms = reads[-1][0] if reads else 0
    return Capture(
        intended_ns=0,
        dispatched_ns=1,
        sent_ns=2,
        first_byte_ns=(reads[0][0] if reads else 1) * MS,
        end_ns=(last_ms if end_ms is None else end_ms) * MS,
        status=status,
        headers=list(headers),
        stamps=[ms * MS for ms, _ in reads],
        pieces=[data for _, data in reads],
        size_bytes=sum(len(data) for _, data in reads),
        failure=failure,
    )
