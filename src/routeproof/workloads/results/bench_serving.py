"""Results of ``vllm bench serve``, of SGLang's bench and of InferenceX.

All three descend from one client and share their keys. vLLM and SGLang write
milliseconds with the suffix ``_ms``; InferenceX writes seconds without it.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from routeproof.workloads.importers.lines import Line, read_lines
from routeproof.workloads.results.loose import count, number, text
from routeproof.workloads.results.plausible import check_in_flight, check_times
from routeproof.workloads.results.result import Level, Measured, Result

STATISTICS = ("mean", "median", "std", "p50", "p90", "p95", "p99")
TIMES = ("ttft", "tpot", "itl", "e2el")
RATES = {
    "request_throughput": ("total.request_rate", "requests/s"),
    "output_throughput": ("total.output_token_rate", "tokens/s"),
    "input_throughput": ("total.input_token_rate", "tokens/s"),
    "total_token_throughput": ("total.token_rate", "tokens/s"),
    "total_throughput": ("total.token_rate", "tokens/s"),
    "request_goodput": ("total.goodput", "requests/s"),
}
CONDITIONS = (
    "model_id", "tokenizer_id", "backend", "endpoint_type", "dataset_name",
    "num_prompts", "request_rate", "burstiness", "max_concurrency",
    "total_input_tokens", "random_input_len", "random_output_len",
)  # fmt: skip
NEEDS = ("duration", "completed", "request_throughput")


def vllm_bench(path: Path) -> tuple[Result, ...]:
    """Results of ``vllm bench serve`` (JSON, or JSONL of ``--append-result``)."""
    lines = _lines(path, "a result of vllm bench serve")
    return tuple(_result(line, "vllm", scale=1e-3) for line in lines)


def inferencex(path: Path) -> tuple[Result, ...]:
    """Results of InferenceX: vLLM's keys without ``_ms``, in seconds."""
    return tuple(
        _result(line, "inferencex", scale=1.0)
        for line in _lines(path, "a result of InferenceX")
    )


def sglang_bench(path: Path) -> tuple[Result, ...]:
    """Results of SGLang's ``bench_serving`` (JSONL, one line per run)."""
    return tuple(
        _result(line, "sglang", scale=1e-3)
        for line in _lines(path, "a result of SGLang's bench_serving")
    )


def _lines(path: Path, what: str) -> list[Line]:
    return list(read_lines(path, what, NEEDS))


def _result(line: Line, tool: str, *, scale: float) -> Result:
    row = line.row
    suffix = "" if tool == "inferencex" else "_ms"
    times = _times(row, tool, suffix, scale)
    if not times:
        other = "inferencex" if suffix else "vllm-bench"
        raise line.error(
            f"no times with the names of this tool, such as `median_ttft{suffix}`",
            hint=f"if it holds `median_ttft{'' if suffix else '_ms'}`, import it as "
            f"`{other}`",
        )
    level = Level(
        concurrency=count(row.get("max_concurrency")),
        asked_rate_per_s=_rate(row.get("request_rate")),
        achieved_rate_per_s=number(row.get("request_throughput")),
        duration_s=number(row.get("duration")),
        completed=count(row.get("completed")),
        failed=count(row.get("failed")),
    )
    measured = (*times, *_rates(row), *_speculation(row))
    check_times(measured, level.duration_s, line.path, line.number)
    latency = next((m.value for m in times if m.name == "e2el"), None)
    closed = level.concurrency if level.asked_rate_per_s is None else None
    check_in_flight(latency, level.achieved_rate_per_s, closed, line.path, line.number)
    return Result(
        tool=tool,
        kind="load",
        label=str(row.get("file") or row.get("route") or line.path.stem),
        model=text(row.get("model_id")),
        level=level,
        conditions={k: str(row[k]) for k in CONDITIONS if row.get(k) is not None},
        measured=measured,
        notes=_notes(row),
    )


def _times(
    row: Mapping[str, Any], tool: str, suffix: str, scale: float
) -> tuple[Measured, ...]:
    family = "sglang" if tool == "sglang" else "vllm"
    found = []
    for name in TIMES:
        for statistic in STATISTICS:
            value = number(row.get(f"{statistic}_{name}{suffix}"))
            if value is None and name == "e2el" and family == "sglang":
                value = number(row.get(f"{statistic}_e2e_latency{suffix}"))
            if value is not None:
                found.append(
                    Measured(
                        name=name,
                        definition_id=f"{family}.{name}",
                        unit="s",
                        statistic="p50" if statistic == "median" else statistic,
                        value=value * scale,
                        n=count(row.get("completed")) if name != "itl" else None,
                    )
                )
    return _without_doubles(found)


def _without_doubles(found: list[Measured]) -> tuple[Measured, ...]:
    """``median`` and ``p50`` are one number."""
    return tuple({(m.name, m.statistic): m for m in found}.values())


def _rates(row: Mapping[str, Any]) -> tuple[Measured, ...]:
    return tuple(
        Measured(
            name=name,
            definition_id=definition,
            unit=unit,
            statistic="total",
            value=value,
        )
        for name, (definition, unit) in RATES.items()
        if (value := number(row.get(name))) is not None
    )


def _speculation(row: Mapping[str, Any]) -> tuple[Measured, ...]:
    found = []
    rate = number(row.get("spec_decode_acceptance_rate"))
    if rate is not None:
        found.append(
            ("spec_decode_acceptance_rate", "spec.acceptance_rate", rate / 100)
        )
    length = number(row.get("spec_decode_acceptance_length", row.get("accept_length")))
    if length is not None:
        found.append(("acceptance_length", "spec.acceptance_length", length))
    return tuple(
        Measured(name=name, definition_id=id_, unit="1", statistic="total", value=value)
        for name, id_, value in found
    )


def _notes(row: Mapping[str, Any]) -> tuple[str, ...]:
    notes = []
    most, asked = (
        count(row.get("max_concurrent_requests")),
        count(row.get("max_concurrency")),
    )
    if most is not None and asked is not None and most > asked:
        notes.append(
            f"`max_concurrent_requests` is {most} where `max_concurrency` was {asked}: "
            "it counts the requests of a whole second, not of one moment"
        )
    if number(row.get("spec_decode_acceptance_length")) is not None:
        notes.append(
            "the acceptance length counts only passes that had a draft; inter-token "
            "latencies are gaps between chunks of several tokens"
        )
    return tuple(notes)


def _rate(value: Any) -> float | None:
    """The asked rate; ``None`` for ``"inf"``, which is as fast as it goes."""
    rate = number(value)
    return rate if rate is not None and rate < float("inf") else None
