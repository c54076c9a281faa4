"""What a load process needs to know to build the same plan: one file in the folder.

The file holds no secrets: keys travel in the environment, by arm.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from routeproof.engines.adapters import adapter
from routeproof.engines.endpoint import Endpoint
from routeproof.errors import StoredRunError
from routeproof.proof.workload import WorkloadSpec
from routeproof.records.files import read_bytes, write_atomically
from routeproof.records.record import Arm, Phase
from routeproof.records.store import RunFolder
from routeproof.runs.blocks import Plan
from routeproof.runs.plan import build_plan
from routeproof.runs.request import Target
from routeproof.workloads.case import Case
from routeproof.workloads.trace import Trace

_SECRET_HEADERS = frozenset({"authorization", "x-api-key", "api-key", "cookie"})


class RouteJob(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A ``Target`` as plain data, without its key."""

    url: str
    model: str
    adapter: str
    headers: dict[str, str] = {}
    verify_tls: bool = True
    unix_socket: str | None = None
    extra_fields: dict[str, Any] = {}
    ask_usage: bool = True
    pid: int | None = None
    adapter_fields: dict[str, Any] | None = None


class Job(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Arguments of ``build_plan`` and ``conduct``, and which stages to send.

    Attributes:
        zero_wall_s: Wall clock at 0 of the run's clock.
        trace_offsets_s: Arrivals of the traces that stages replay, by name; of a
            trace nothing else decides what is sent.
    """

    workload: WorkloadSpec
    arms: tuple[Arm, ...]
    phases: tuple[Phase, ...]
    seed: int
    stages: tuple[tuple[Phase, str], ...]
    cases: tuple[Case, ...]
    routes: dict[Arm, RouteJob]
    zero_wall_s: float
    trace_offsets_s: dict[str, tuple[float, ...]] = {}


def write_job(
    folder: RunFolder, plan: Plan, targets: Mapping[Arm, Target], zero_wall_s: float
) -> dict[str, str]:
    """Write the job and return the environment variables that carry its secrets.

    Raises:
        StoredRunError: The folder cannot be written.
    """
    folder.shards_path.mkdir(parents=True, exist_ok=True)
    job = Job(
        workload=plan.workload,
        arms=plan.arms,
        phases=plan.phases,
        seed=plan.seed,
        stages=tuple((s.phase, s.level) for s in plan.stages),
        cases=plan.cases,
        routes={arm: _route(target) for arm, target in targets.items()},
        zero_wall_s=zero_wall_s,
        trace_offsets_s={
            name: tuple(trace.offsets_s.tolist()) for name, trace in plan.traces.items()
        },
    )
    write_atomically(_path(folder), msgspec.json.encode(job))
    secrets: dict[str, str] = {}
    for arm, target in targets.items():
        kept = {
            name: value
            for name, value in target.endpoint.headers.items()
            if name.lower() in _SECRET_HEADERS
        }
        carried = {"api_key": target.endpoint.api_key, "headers": kept}
        secrets[_variable(arm)] = msgspec.json.encode(carried).decode()
    return secrets


def read_job(
    folder: RunFolder, environ: Mapping[str, str] | None = None
) -> tuple[Plan, dict[Arm, Target], float]:
    """The plan and the targets of a job, built anew, and zero of its clock.

    Raises:
        StoredRunError: There is no job, or it is damaged.
    """
    data = read_bytes(_path(folder), what="job of a load process")
    try:
        job = msgspec.json.decode(data, type=Job)
    except msgspec.DecodeError as error:
        raise StoredRunError(f"{_path(folder)} is damaged: {error}") from error
    given = os.environ if environ is None else environ
    plan = build_plan(
        job.cases,
        job.workload,
        arms=job.arms,
        phases=job.phases,
        seed=job.seed,
        traces={name: _arrivals(at_s) for name, at_s in job.trace_offsets_s.items()},
    )
    stages = tuple(s for s in plan.stages if (s.phase, s.level) in job.stages)
    targets = {
        arm: _target(route, given.get(_variable(arm)))
        for arm, route in job.routes.items()
    }
    return replace(plan, stages=stages), targets, job.zero_wall_s


def _route(target: Target) -> RouteJob:
    endpoint = target.endpoint
    return RouteJob(
        url=endpoint.url,
        model=target.model,
        adapter=target.adapter.name,
        headers={
            name: value
            for name, value in endpoint.headers.items()
            if name.lower() not in _SECRET_HEADERS
        },
        verify_tls=endpoint.verify_tls,
        unix_socket=endpoint.unix_socket,
        extra_fields=dict(target.extra_fields),
        ask_usage=target.ask_usage,
        pid=target.pid,
        adapter_fields=None
        if target.adapter_fields is None
        else dict(target.adapter_fields),
    )


def _target(route: RouteJob, secret: str | None) -> Target:
    carried = json.loads(secret) if secret else {}
    endpoint = Endpoint(
        url=route.url,
        headers={**route.headers, **carried.get("headers", {})},
        api_key=carried.get("api_key"),
        verify_tls=route.verify_tls,
        unix_socket=route.unix_socket,
    )
    return Target(
        endpoint=endpoint,
        model=route.model,
        adapter=adapter(route.adapter),
        extra_fields=route.extra_fields,
        ask_usage=route.ask_usage,
        pid=route.pid,
        adapter_fields=route.adapter_fields,
    )


def _arrivals(offsets_s: tuple[float, ...]) -> Trace:
    nothing = np.zeros(len(offsets_s), dtype=np.int64)
    return Trace("job", np.array(offsets_s), nothing, nothing)


def _path(folder: RunFolder) -> Path:
    return folder.shards_path / "job.json"


def _variable(arm: str) -> str:
    return f"ROUTEPROOF_SECRETS_{arm.upper()}"
