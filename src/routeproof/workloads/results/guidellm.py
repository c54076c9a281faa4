"""Reports of guidellm (JSON): one result per benchmark in it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from routeproof.errors import FormatError
from routeproof.workloads.importers.lines import read_text
from routeproof.workloads.results.loose import count, mapping, number, text
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
    version = text(mapping(whole.get("metadata")).get("guidellm_version"))
    spec = mapping(mapping(whole.get("config")).get("spec"))
    return tuple(
        _result(mapping(one), place, version, spec, path)
        for place, one in enumerate(benchmarks, 1)
    )


def _result(
    benchmark: Mapping[str, Any],
    place: int,
    version: str | None,
    spec: Mapping[str, Any],
    path: Path,
) -> Result:
    metrics = benchmark.get("metrics")
    if not isinstance(metrics, dict):
        raise FormatError(f"benchmark {place} has no `metrics`", path=path)
    strategy = mapping(mapping(benchmark.get("config")).get("strategy"))
    totals = mapping(metrics.get("request_totals"))
    measured = (*_times(metrics), *_rates(metrics))
    level = Level(
        concurrency=count(strategy.get("streams"))
        or count(strategy.get("max_concurrency")),
        asked_rate_per_s=number(strategy.get("rate")),
        achieved_rate_per_s=_mean(metrics, "requests_per_second"),
        duration_s=number(benchmark.get("duration")),
        completed=count(totals.get("successful")),
        failed=count(totals.get("errored")),
    )
    check_times(measured, level.duration_s, path, None)
    latency = _mean(metrics, "request_latency")
    closed = level.concurrency if level.asked_rate_per_s is None else None
    check_in_flight(latency, level.achieved_rate_per_s, closed, path, None)
    backend = mapping(spec.get("backend"))
    return Result(
        tool="guidellm",
        tool_version=version,
        kind="load",
        label=f"{path.stem}, benchmark {place}",
        model=text(backend.get("model")),
        level=level,
        conditions=_conditions(spec, strategy),
        measured=measured,
        notes=NOTES,
    )


def _conditions(spec: Mapping[str, Any], strategy: Mapping[str, Any]) -> dict[str, str]:
    backend = mapping(spec.get("backend"))
    named = {
        "model": backend.get("model"),
        "request_format": backend.get("request_format"),
        "max_tokens": backend.get("max_tokens"),
        "strategy": strategy.get("type_"),
        "tokenizer": mapping(spec.get("tokenizer")).get("model"),
    }
    data = spec.get("data")
    if data is not None:
        named["data"] = msgspec.json.encode(data).decode()
    return {key: str(value) for key, value in named.items() if value is not None}


def _successful(metrics: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    return mapping(mapping(metrics.get(name)).get("successful"))


def _mean(metrics: Mapping[str, Any], name: str) -> float | None:
    """The mean over successful requests; guidellm writes 0 where there were none."""
    values = _successful(metrics, name)
    return number(values.get("mean")) if count(values.get("count")) else None


def _times(metrics: Mapping[str, Any]) -> tuple[Measured, ...]:
    found = []
    for name, (definition, scale) in TIMES.items():
        values = _successful(metrics, name)
        n = count(values.get("count"))
        if not n:
            continue
        listed = {"mean": values.get("mean"), **mapping(values.get("percentiles"))}
        found += [
            Measured(
                name=name,
                definition_id=definition,
                unit="s",
                statistic=statistic,
                value=value * scale,
                n=n,
            )
            for statistic in ("mean", *PERCENTILES)
            if (value := number(listed.get(statistic))) is not None
        ]
    return tuple(found)


def _rates(metrics: Mapping[str, Any]) -> tuple[Measured, ...]:
    return tuple(
        Measured(
            name=name,
            definition_id=definition,
            unit=unit,
            statistic="mean",
            value=value,
        )
        for name, (definition, unit) in RATES.items()
        if (value := _mean(metrics, name)) is not None
    )
