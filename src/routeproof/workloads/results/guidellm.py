"""Reports of guidellm (JSON): one result per benchmark in it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from routeproof.errors import FormatError
from routeproof.workloads.importers.lines import read_text
from routeproof.workloads.results.plausible import check_in_flight, check_times
from routeproof.workloads.results.result import Level, Measured, Result

TIMES = {
    "request_latency": ("guidellm.latency", 1.0),
    "time_to_first_token_ms": ("guidellm.ttft", 1e-3),
    "time_to_first_output_token_ms": ("guidellm.ttfot", 1e-3),
    "time_per_output_token_ms": ("guidellm.tpot", 1e-3),
    "inter_token_latency_ms": ("guidellm.itl", 1e-3),
}
"""Metric to its definition and what makes it seconds; the latency is in seconds."""

RATES = {
    "requests_per_second": ("total.request_rate", "requests/s"),
    "output_tokens_per_second": ("total.output_token_rate", "tokens/s"),
    "prompt_tokens_per_second": ("total.input_token_rate", "tokens/s"),
}
PERCENTILES = ("p50", "p90", "p95", "p99")
NOTES = (
    "guidellm's TPOT holds the time to first token, and its ITL is what others call "
    "TPOT; times are of the wall clock and of successful requests only",
)


def guidellm(path: Path) -> tuple[Result, ...]:
    """Results of a guidellm report, one per benchmark."""
    try:
        whole = msgspec.json.decode(read_text(path))
    except msgspec.DecodeError as error:
        raise FormatError(f"not JSON: {error}", path=path) from error
    benchmarks = whole.get("benchmarks") if isinstance(whole, dict) else None
    if not isinstance(benchmarks, list) or not benchmarks:
        raise FormatError(
            "not a report of guidellm: no `benchmarks`",
            path=path,
            hint="export it as JSON",
        )
    version = (whole.get("metadata") or {}).get("guidellm_version")
    spec = (whole.get("config") or {}).get("spec") or {}
    return tuple(
        _result(one, number, version, spec, path)
        for number, one in enumerate(benchmarks, 1)
    )


def _result(
    benchmark: Mapping[str, Any],
    number: int,
    version: str | None,
    spec: Mapping[str, Any],
    path: Path,
) -> Result:
    metrics = benchmark.get("metrics")
    if not isinstance(metrics, dict):
        raise FormatError(f"benchmark {number} has no `metrics`", path=path)
    strategy = (benchmark.get("config") or {}).get("strategy") or {}
    totals = metrics.get("request_totals") or {}
    measured = (*_times(metrics), *_rates(metrics))
    level = Level(
        concurrency=strategy.get("streams") or strategy.get("max_concurrency"),
        asked_rate_per_s=strategy.get("rate"),
        achieved_rate_per_s=_successful(metrics, "requests_per_second").get("mean"),
        duration_s=benchmark.get("duration"),
        completed=totals.get("successful"),
        failed=totals.get("errored"),
    )
    check_times(measured, level.duration_s, path, None)
    latency = _successful(metrics, "request_latency").get("mean")
    closed = level.concurrency if level.asked_rate_per_s is None else None
    check_in_flight(latency, level.achieved_rate_per_s, closed, path, None)
    backend = spec.get("backend") or {}
    return Result(
        tool="guidellm",
        tool_version=version,
        kind="load",
        label=f"{path.stem}, benchmark {number}",
        model=backend.get("model"),
        level=level,
        conditions=_conditions(spec, strategy),
        measured=measured,
        notes=NOTES,
    )


def _conditions(spec: Mapping[str, Any], strategy: Mapping[str, Any]) -> dict[str, str]:
    backend = spec.get("backend") or {}
    named = {
        "model": backend.get("model"),
        "request_format": backend.get("request_format"),
        "max_tokens": backend.get("max_tokens"),
        "strategy": strategy.get("type_"),
        "tokenizer": (spec.get("tokenizer") or {}).get("model"),
    }
    data = spec.get("data")
    if data is not None:
        named["data"] = msgspec.json.encode(data).decode()
    return {key: str(value) for key, value in named.items() if value is not None}


def _successful(metrics: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = metrics.get(name)
    found = value.get("successful") if isinstance(value, dict) else None
    return found if isinstance(found, dict) else {}


def _times(metrics: Mapping[str, Any]) -> tuple[Measured, ...]:
    found = []
    for name, (definition, scale) in TIMES.items():
        values = _successful(metrics, name)
        if not values.get("count"):
            continue
        listed = {"mean": values.get("mean"), **(values.get("percentiles") or {})}
        found += [
            Measured(
                name=name,
                definition_id=definition,
                unit="s",
                statistic=statistic,
                value=listed[statistic] * scale,
                n=values.get("count"),
            )
            for statistic in ("mean", *PERCENTILES)
            if listed.get(statistic) is not None
        ]
    return tuple(found)


def _rates(metrics: Mapping[str, Any]) -> tuple[Measured, ...]:
    return tuple(
        Measured(
            name=name,
            definition_id=definition,
            unit=unit,
            statistic="mean",
            value=_successful(metrics, name).get("mean"),
        )
        for name, (definition, unit) in RATES.items()
        if _successful(metrics, name).get("count")
    )
