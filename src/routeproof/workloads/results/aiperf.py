"""Summaries of AIPerf (``profile_export_aiperf.json``)."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from routeproof.errors import FormatError
from routeproof.workloads.importers.lines import read_text
from routeproof.workloads.results.loose import count, mapping, number, objects, text
from routeproof.workloads.results.plausible import check_in_flight, check_times
from routeproof.workloads.results.result import Level, Measured, Result

TIMES = {
    "request_latency": "aiperf.latency",
    "time_to_first_token": "aiperf.ttft",
    "time_to_first_output_token": "aiperf.ttfot",
    "inter_token_latency": "aiperf.itl",
    "inter_chunk_latency": "aiperf.icl",
}
RATES = {
    "request_throughput": ("total.request_rate", "requests/sec"),
    "output_token_throughput": ("total.output_token_rate", "tokens/sec"),
    "input_token_throughput": ("total.input_token_rate", "tokens/sec"),
    "total_token_throughput": ("total.token_rate", "tokens/sec"),
    "goodput": ("total.goodput", "requests/sec"),
}
SECONDS = {"ms": 1e-3, "sec": 1.0, "s": 1.0, "us": 1e-6, "ns": 1e-9}
STATISTICS = ("avg", "p50", "p90", "p95", "p99")


def aiperf(path: Path) -> tuple[Result, ...]:
    """The result of an AIPerf summary; units are taken from the file."""
    try:
        whole = msgspec.json.decode(read_text(path))
    except msgspec.DecodeError as error:
        raise FormatError(
            f"not JSON: {error}",
            path=path,
            hint="take profile_export_aiperf.json, not the JSONL beside it",
        ) from error
    if not isinstance(whole, dict) or "aiperf_version" not in whole:
        raise FormatError("not a summary of AIPerf: no `aiperf_version`", path=path)
    if not isinstance(whole.get("request_latency"), dict):
        raise FormatError(
            "a file of AIPerf, but not its summary: no `request_latency`",
            path=path,
            hint="take profile_export_aiperf.json",
        )
    return (_result(whole, path),)


def _result(whole: Mapping[str, Any], path: Path) -> Result:
    settings = mapping(whole.get("input_config"))
    phase = next(iter(objects(settings.get("phases"))), {})
    measured = (*_times(whole, path), *_rates(whole, path))
    level = Level(
        concurrency=count(phase.get("concurrency")),
        asked_rate_per_s=number(phase.get("rate")) or number(phase.get("request_rate")),
        achieved_rate_per_s=_average(whole, "request_throughput"),
        duration_s=_average(whole, "benchmark_duration"),
        completed=count(_average(whole, "request_count")),
        failed=count(_average(whole, "error_request_count")),
    )
    check_times(measured, level.duration_s, path, None)
    latency = next((m.value for m in measured if m.name == "request_latency"), None)
    closed = level.concurrency if level.asked_rate_per_s is None else None
    check_in_flight(latency, level.achieved_rate_per_s, closed, path, None)
    models = objects(mapping(settings.get("models")).get("items"))
    return Result(
        tool="aiperf",
        tool_version=text(whole["aiperf_version"]),
        kind="load",
        label=path.parent.name + "/" + path.stem,
        model=text(models[0].get("name")) if models else None,
        level=level,
        conditions=_conditions(settings, models),
        measured=measured,
        faults=("the run was cancelled",) if whole.get("was_cancelled") else (),
        notes=_notes(whole),
    )


def _conditions(
    settings: Mapping[str, Any], models: list[Mapping[str, Any]]
) -> dict[str, str]:
    named = {
        "models": [one.get("name") for one in models],
        "endpoint_type": mapping(settings.get("endpoint")).get("type"),
        "streaming": mapping(settings.get("endpoint")).get("streaming"),
        "datasets": settings.get("datasets"),
        "phases": settings.get("phases"),
        "tokenizer": mapping(settings.get("tokenizer")).get("name"),
    }
    return {
        key: value if isinstance(value, str) else msgspec.json.encode(value).decode()
        for key, value in named.items()
        if value is not None
    }


def _times(whole: Mapping[str, Any], path: Path) -> tuple[Measured, ...]:
    found = []
    for name, definition in TIMES.items():
        values = whole.get(name)
        if not isinstance(values, dict):
            continue
        scale = SECONDS.get(str(values.get("unit")))
        if scale is None:
            raise FormatError(
                f"`{name}` has the unknown unit `{values.get('unit')}`",
                path=path,
                hint=f"known: {', '.join(SECONDS)}",
            )
        found += [
            Measured(
                name=name,
                definition_id=definition,
                unit="s",
                statistic="mean" if statistic == "avg" else statistic,
                value=value * scale,
                n=count(values.get("count")),
            )
            for statistic in STATISTICS
            if (value := number(values.get(statistic))) is not None
        ]
    return tuple(found)


def _rates(whole: Mapping[str, Any], path: Path) -> tuple[Measured, ...]:
    found = []
    for name, (definition, unit) in RATES.items():
        value = _average(whole, name)
        if value is None:
            continue
        if whole[name].get("unit") != unit:
            raise FormatError(
                f"`{name}` has the unit `{whole[name].get('unit')}`, not `{unit}`",
                path=path,
            )
        found.append(
            Measured(
                name=name,
                definition_id=definition,
                unit=unit.replace("/sec", "/s"),
                statistic="total",
                value=value,
            )
        )
    return tuple(found)


def _notes(whole: Mapping[str, Any]) -> tuple[str, ...]:
    apart = _average(whole, "usage_prompt_tokens_diff_pct")
    if not apart:
        return ()
    return (
        f"the client's tokenizer and the server differ by {apart:.1f} % on the prompt "
        "tokens (another tokenizer, or the chat template): per-token times are the "
        "client's",
    )


def _average(whole: Mapping[str, Any], name: str) -> float | None:
    return number(mapping(whole.get(name)).get("avg"))
