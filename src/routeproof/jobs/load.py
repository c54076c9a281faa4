"""The load generator on its own: one endpoint, one or more load levels."""

import asyncio
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import uvloop

from routeproof.engines.adapters import adapter
from routeproof.engines.endpoint import endpoint_of
from routeproof.engines.probe import probe
from routeproof.errors import ConfigError
from routeproof.jobs.environment import environment, versions
from routeproof.metrics.per_request import per_request
from routeproof.metrics.requests import Requests, gather
from routeproof.metrics.table import METRICS
from routeproof.metrics.windows import rates, within_slo
from routeproof.proof.nearest import nearest
from routeproof.proof.route import AuthSpec, RouteSpec
from routeproof.proof.workload import (
    ArrivalSpec,
    LoadSpec,
    SamplingSpec,
    WorkloadSpec,
)
from routeproof.records.columns import Floats
from routeproof.records.manifest import ClientHealth, Manifest, Threshold
from routeproof.records.store import RunFolder
from routeproof.runs.conduct import Progress, conduct
from routeproof.runs.plan import build_plan
from routeproof.runs.request import Target
from routeproof.runs.selftest import self_test
from routeproof.runs.sharded import conduct_sharded
from routeproof.stats.percentile import percentile
from routeproof.workloads.case import Case
from routeproof.workloads.cases import load_cases, write_cases
from routeproof.workloads.fingerprint import fingerprint
from routeproof.workloads.replay import load_traces, trace_digests

DISTRIBUTIONS: dict[str, str] = {
    "time_to_first_token_s": "time_to_first_token",
    "time_to_first_visible_token_s": "time_to_first_visible_token",
    "time_per_output_token_s": "time_per_output_token",
    "chunk_gap_s": "chunk_gap",
    "tokens_per_chunk": "tokens_per_chunk",
    "request_latency_s": "request_latency",
}
"""Names in the summary to metrics per request."""

QUANTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
PROMPT = "Write a short story about a lighthouse keeper and a storm."


@dataclass(frozen=True, slots=True)
class LoadOptions:
    """What is sent.

    Attributes:
        cases: Files of cases, or empty for ``prompt``.
        max_tokens: Sent with every request; ``None`` leaves it to the case.
        slo: Limits in seconds by metric, for goodput.
        shards: Load processes on this machine.
        is_tested: Test the client against a mock first, at the run's concurrency.
    """

    arrivals: ArrivalSpec
    model: str | None = None
    prompt: str = PROMPT
    cases: tuple[str, ...] = ()
    max_tokens: int | None = 64
    temperature: float = 0.0
    warmup: int = 4
    seed: int = 20261130
    timeout_s: float = 120.0
    max_failure_share: float = 1.0
    slo: Mapping[str, float] = field(default_factory=dict)
    shards: int = 1
    is_tested: bool = True
    api_key_env: str | None = None
    verify_tls: bool = True


def load(
    url: str,
    out: Path,
    options: LoadOptions,
    *,
    progress: Callable[[Progress], None] | None = None,
) -> dict[str, Any]:
    """Load one endpoint and summarise what it did.

    Args:
        url: Base URL of the API.
        out: The run folder; must not hold a run.
        options: What to send.
        progress: Called a few times a second.

    Returns:
        The summary of ``summary``; the records are in the folder.

    Raises:
        ConfigError: The endpoint or an option is wrong.
        MeasurementError: More failures than allowed.
        StoredRunError: The folder cannot be used.
    """
    options = replace(options, slo=_limits(options.slo))
    folder = RunFolder.create(out)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_send(url, folder, options, progress))
    return summary(folder, slo=options.slo)


def _limits(given: Mapping[str, float]) -> dict[str, float]:
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


async def _send(
    url: str,
    folder: RunFolder,
    options: LoadOptions,
    progress: Callable[[Progress], None] | None,
) -> None:
    auth = AuthSpec(api_key_env=options.api_key_env, verify_tls=options.verify_tls)
    endpoint = endpoint_of(RouteSpec(endpoint=url, auth=auth), os.environ)
    said = await probe(endpoint, model=options.model)
    model = options.model or (said.models[0] if said.models else None)
    if model is None:
        raise ConfigError(
            f"{url} does not say which models it serves", hint="name one with --model"
        )
    target = Target(endpoint=endpoint, model=model, adapter=adapter(said.engine))
    workload = _workload(options)
    cases = _cases(options, workload)
    write_cases(cases, folder.cases_path)
    folder.write_manifest(
        Manifest(
            run_id=folder.path.name,
            created_wall=datetime.now().astimezone().isoformat(timespec="seconds"),
            versions=versions(),
            fingerprint=fingerprint(
                cases, workload, trace_digests=trace_digests(workload, Path())
            ),
            engines={"baseline": {"name": said.engine, "launched": False}},
            environment=environment(),
            notes={"command": "load", "model": model, "slo": dict(options.slo)},
        )
    )
    plan = build_plan(
        cases,
        workload,
        arms=("baseline",),
        phases=("sweep",),
        traces=load_traces(workload, Path()),
    )
    before = await _tested(options)
    if options.shards > 1:
        await conduct_sharded(
            plan,
            {"baseline": target},
            folder,
            shards=options.shards,
            progress=progress,
        )
    else:
        await conduct(
            plan, {"baseline": target}, folder, progress=progress, before=before
        )
    manifest = folder.read_manifest()
    folder.write_manifest(msgspec.structs.replace(manifest, finished=True))


async def _tested(options: LoadOptions) -> tuple[Threshold, ...]:
    if not options.is_tested:
        return ()
    return await self_test(max(options.arrivals.concurrency, default=16))


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


def _cases(options: LoadOptions, workload: WorkloadSpec) -> tuple[Case, ...]:
    if not options.cases:
        message = {"role": "user", "content": options.prompt}
        return (Case(id="prompt", class_="load", messages=(message,)),)
    found = load_cases(workload, Path())
    if options.max_tokens is None:
        return found
    # A load test's own limit wins over those of the cases.
    limit = {"max_tokens": options.max_tokens}
    return tuple(
        msgspec.structs.replace(case, parameters={**case.parameters, **limit})
        for case in found
    )


def summary(
    folder: RunFolder, *, slo: Mapping[str, float] | None = None
) -> dict[str, Any]:
    """One document about a load run.

    Returns:
        ``requests``, ``outcomes``, ``metrics`` (each with p50, p95, p99, mean, n),
        ``client`` (valid, reasons) and ``levels`` with the same for each level.
        Percentiles count failures as infinite; they, means and rates are ``None``
        where they cannot be told.
    """
    requests = gather(per_request(part) for part in folder.parts())
    requests = requests.where(~requests.at(phase="warmup"))
    manifest = folder.read_manifest()
    limits = dict(slo or {})
    whole = _part(requests, limits)
    levels = {
        level: _part(requests.where(requests.at(phase=phase, level=level)), limits)
        for phase, level in requests.levels()
    }
    return {**whole, "client": _client(manifest.health), "levels": levels}


def _part(requests: Requests, slo: Mapping[str, float]) -> dict[str, Any]:
    outcome = requests.label("outcome")
    outcomes = {
        name: int(outcome.equal(name).sum())
        for name in ("completed", *sorted(set(outcome.names) - {"completed"}))
    }
    metrics = {name: _spread(requests, of) for name, of in DISTRIBUTIONS.items()}
    found = rates(requests, within=within_slo(requests, slo))
    for name, value in (
        ("output_token_throughput_per_s", found.output_tokens_per_s),
        ("request_throughput_per_s", found.requests_per_s),
        ("goodput_per_s", found.goodput_per_s),
    ):
        metrics[name] = {
            **dict.fromkeys(QUANTILES),
            "mean": value,
            "n": requests.n,
        }
    return {"requests": requests.n, "outcomes": outcomes, "metrics": metrics}


def _spread(requests: Requests, metric: str) -> dict[str, float | None]:
    column, served = requests.number(metric), requests.served()
    known: Floats = column.values[served & column.known]
    if not known.size:
        return {**dict.fromkeys(QUANTILES), "mean": None, "n": 0}
    failures = np.full(int((~served).sum()), np.inf)
    sample = np.concatenate([known, failures])
    spread: dict[str, float | None] = {
        name: percentile(sample, q).value for name, q in QUANTILES.items()
    }
    return {**spread, "mean": float(known.mean()), "n": int(sample.size)}


def _client(health: ClientHealth | None) -> dict[str, Any]:
    if health is None:
        return {"valid": False, "reasons": ["the client's health was not recorded"]}
    return {
        "valid": health.valid,
        "reasons": list(health.reasons),
        "notes": list(health.notes),
    }
