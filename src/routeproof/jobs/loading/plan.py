"""What a load run sends: its options, its target, its plan and its manifest."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path

import msgspec

from routeproof.engines.adapters import adapter
from routeproof.engines.capabilities import accepted_fields
from routeproof.engines.endpoint import endpoint_of
from routeproof.engines.probe import probe
from routeproof.errors import ConfigError, StoredRunError
from routeproof.jobs.qualifying.environment import environment, versions
from routeproof.metrics.table import METRICS
from routeproof.proof.nearest import nearest
from routeproof.proof.route import AuthSpec, RouteSpec
from routeproof.proof.workload import (
    ArrivalSpec,
    LoadSpec,
    SamplingSpec,
    WorkloadSpec,
)
from routeproof.records.manifest import Manifest
from routeproof.records.store import RunFolder
from routeproof.runs.blocks import Plan
from routeproof.runs.plan import build_plan
from routeproof.runs.request import Target
from routeproof.workloads.case import Case
from routeproof.workloads.cases import load_cases, write_cases
from routeproof.workloads.fingerprint import fingerprint
from routeproof.workloads.replay import load_traces, trace_digests
from routeproof.workloads.trace import Trace

LENGTH_ASKED = "length_asked"
"""Note of the manifest: every request had a limit of its own, so that an answer which
ends by it is what was asked for."""

SELF_TEST = "self_test"
"""Note of the manifest: how many streams the client was tried with, and why so many."""

_FIELDS_WITHIN_S = 10.0

PROMPT = "Write a short story about a lighthouse keeper and a storm."


@dataclass(frozen=True, slots=True)
class LoadOptions:
    """What is sent.

    Attributes:
        cases: Files of cases; without them ``prompt`` is sent.
        prompt: ``None`` sends the usual prompt, or, with a trace, filler text of the
            trace's own lengths.
        max_tokens: Sent with every request; ``None`` leaves it to the case.
        slo: Limits in seconds by metric, for goodput.
        shards: Load processes.
        on: Where they run: ``None`` = on this machine, else the address of a Ray
            cluster.
        is_tested: Test the client against a mock first, at the run's concurrency.
        headers: Sent with every request.
        resume: Go on with the run in the folder: send only what is missing.
    """

    arrivals: ArrivalSpec
    model: str | None = None
    prompt: str | None = None
    cases: tuple[str, ...] = ()
    max_tokens: int | None = 64
    temperature: float = 0.0
    warmup: int = 4
    seed: int = 20261130
    timeout_s: float = 120.0
    max_failure_share: float = 1.0
    slo: Mapping[str, float] = field(default_factory=dict)
    shards: int = 1
    on: str | None = None
    is_tested: bool = True
    api_key_env: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    verify_tls: bool = True
    resume: bool = False


def slo_limits(given: Mapping[str, float]) -> dict[str, float]:
    """SLO limits by metric name, with or without its unit.

    Raises:
        ConfigError: There is no such metric, or it is no time.
    """
    limits = {}
    for name, most in given.items():
        metric = METRICS.get(name.removesuffix("_s"))
        if metric is None or metric.unit != "s":
            times = sorted(m.name for m in METRICS.values() if m.unit == "s")
            near = nearest(name, times)
            raise ConfigError(
                f"`{name}` is no time of a request",
                key="--slo",
                hint=f"did you mean `{near}`?"
                if near
                else f"known: {', '.join(times)}",
            )
        limits[metric.name] = most
    return limits


async def target_of(url: str, options: LoadOptions) -> Target:
    """The endpoint with its model and the request fields that it accepts.

    Raises:
        ConfigError: Nobody is there, or it does not serve the model.
    """
    auth = AuthSpec(
        api_key_env=options.api_key_env,
        verify_tls=options.verify_tls,
        headers=dict(options.headers),
    )
    endpoint = endpoint_of(RouteSpec(endpoint=url, auth=auth), os.environ)
    said = await probe(endpoint, model=options.model)
    model = options.model or (said.models[0] if said.models else None)
    if model is None:
        raise ConfigError(
            f"{url} does not say which models it serves", hint="name one with --model"
        )
    target = Target(endpoint=endpoint, model=model, adapter=adapter(said.engine))
    fields = target.adapter.request_fields()
    if fields:
        fields = await accepted_fields(
            endpoint, model, fields, deadline_s=min(options.timeout_s, _FIELDS_WITHIN_S)
        )
    return replace(target, adapter_fields=fields)


def planned(url: str, folder: RunFolder, options: LoadOptions, target: Target) -> Plan:
    """The plan; the manifest and the cases are written into the folder.

    Raises:
        ConfigError: Cases, trace or load levels make no sense.
        StoredRunError: A resumed run was begun with another load.
    """
    workload = _workload(options)
    traces = load_traces(workload, Path())
    cases = _cases(options, workload, traces)
    plan = build_plan(
        cases, workload, arms=("baseline",), phases=("sweep",), traces=traces
    )
    mark = fingerprint(cases, workload, trace_digests=trace_digests(workload, Path()))
    if options.resume:
        _check_same(folder, mark, target)
        return plan
    write_cases(cases, folder.cases_path)
    engine = target.adapter.name
    folder.write_manifest(
        Manifest(
            run_id=folder.path.name,
            created_wall=datetime.now().astimezone().isoformat(timespec="seconds"),
            versions=versions(),
            fingerprint=mark,
            engines={"baseline": {"name": engine, "launched": False}},
            environment=environment(),
            notes={
                "command": "load",
                "endpoint": url,
                "model": target.model,
                "slo": dict(options.slo),
                "shards": options.shards,
                "load": msgspec.to_builtins(options.arrivals),
                LENGTH_ASKED: all(_has_limit(case, options) for case in cases),
            },
        )
    )
    return plan


def _check_same(folder: RunFolder, mark: str, target: Target) -> None:
    """A resumed run goes on with what it was begun with."""
    manifest = folder.read_manifest()
    before = (manifest.fingerprint, manifest.notes.get("model"))
    if before != (mark, target.model):
        raise StoredRunError(
            f"{folder.path} was begun with another load or model",
            hint="give the same options again, or another --out",
        )


def _has_limit(case: Case, options: LoadOptions) -> bool:
    return options.max_tokens is not None or "max_tokens" in case.parameters


def _workload(options: LoadOptions) -> WorkloadSpec:
    return WorkloadSpec(
        cases=options.cases or ("prompt",),
        sampling=SamplingSpec(
            temperature=options.temperature, max_tokens=options.max_tokens
        ),
        seed=options.seed,
        load=LoadSpec(
            latency=None,
            sweep=options.arrivals,
            warmup_requests=options.warmup,
            request_timeout_s=options.timeout_s,
            max_failure_share=options.max_failure_share,
        ),
    )


def _cases(
    options: LoadOptions, workload: WorkloadSpec, traces: Mapping[str, Trace]
) -> tuple[Case, ...]:
    if options.cases:
        return _limited(load_cases(workload, Path()), options.max_tokens)
    if options.prompt is None and options.arrivals.trace is not None:
        from routeproof.workloads.synthesize import synthesize

        # Its own lengths, classes and shared beginnings, not only its arrivals.
        trace = traces[options.arrivals.trace].window(
            duration_s=options.arrivals.duration_s,
            max_requests=options.arrivals.requests,
        )
        return synthesize(trace, seed=options.seed)
    message = {"role": "user", "content": options.prompt or PROMPT}
    return (Case(id="prompt", class_="load", messages=(message,)),)


def _limited(cases: tuple[Case, ...], most: int | None) -> tuple[Case, ...]:
    """A load test's own limit wins over those of the cases."""
    if most is None:
        return cases
    return tuple(
        msgspec.structs.replace(
            case, parameters={**case.parameters, "max_tokens": most}
        )
        for case in cases
    )
