"""Reports of inference-perf: a folder, one report, or rows of a sweep.

A sweep is a JSONL of ``{"config", "stage", "kind", "report"}`` with, beside it, a
``routes.jsonl`` of ``{"config", "image", "model", "args", "accelerator"}``.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from routeproof.workloads.importers.lines import Line, read_lines
from routeproof.workloads.results.arguments import read_arguments
from routeproof.workloads.results.loose import count, mapping, number, text
from routeproof.workloads.results.plausible import check_times
from routeproof.workloads.results.result import Level, Measured, Result

TIMES = {
    "request_latency": "inference_perf.latency",
    "time_to_first_token": "inference_perf.ttft",
    "time_per_output_token": "inference_perf.tpot",
    "normalized_time_per_output_token": "inference_perf.ntpot",
    "inter_token_latency": "inference_perf.itl",
}
RATES = {
    "requests_per_sec": ("total.request_rate", "requests/s"),
    "output_tokens_per_sec": ("total.output_token_rate", "tokens/s"),
    "input_tokens_per_sec": ("total.input_token_rate", "tokens/s"),
    "total_tokens_per_sec": ("total.token_rate", "tokens/s"),
}
STATISTICS = ("mean", "min", "median", "p90", "p95", "p99", "max")
STAGE_FILE = re.compile(r"stage_(\d+)_lifecycle_metrics\.json\Z")
BURST_SHARE = 0.1
"""A median token gap below this share of the time per token means bursts."""


def inference_perf(path: Path) -> tuple[Result, ...]:
    """One result per load stage; server-side reports and summaries are left aside."""
    routes = _routes(path)
    results = []
    for line, config, stage, report in _reports(path):
        route = routes.get(config, {})
        arguments, faults = read_arguments(_args(route))
        results.append(
            _result(line, report, f"{config}, stage {stage}", route, arguments, faults)
        )
    if not results:
        raise Line(path, 1, {}).error("no report of a load stage in it")
    return tuple(results)


def _reports(path: Path) -> Iterator[tuple[Line, str, str, Mapping[str, Any]]]:
    if path.is_dir():
        found = [
            (m[1], one) for one in path.iterdir() if (m := STAGE_FILE.match(one.name))
        ]
        for stage, one in sorted(found, key=lambda pair: int(pair[0])):
            for line in read_lines(one, "a report of inference-perf", ("successes",)):
                yield line, path.name, stage, line.row
        return
    for line in read_lines(path, "reports of inference-perf", ()):
        if "successes" in line.row:
            yield line, path.stem, "0", line.row
            continue
        for key in ("config", "stage", "kind", "report"):
            if key not in line.row:
                raise line.error(f"not a report of inference-perf: no key `{key}`")
        if line.row["kind"] == "lifecycle" and line.row["stage"] != "summary":
            report = line.mapping("report")
            yield line, line.text("config"), str(line.row["stage"]), report


def _routes(path: Path) -> dict[str, Mapping[str, Any]]:
    beside = path.parent / "routes.jsonl"
    if path.is_dir() or not beside.exists():
        return {}
    lines = read_lines(beside, "routes of a sweep", ("config", "args"))
    return {line.text("config"): line.row for line in lines}


def _args(route: Mapping[str, Any]) -> list[str]:
    given = route.get("args")
    return [str(one) for one in given] if isinstance(given, list) else []


def _result(
    line: Line,
    report: Mapping[str, Any],
    label: str,
    route: Mapping[str, Any],
    arguments: Mapping[str, str],
    faults: tuple[str, ...],
) -> Result:
    load = mapping(report.get("load_summary"))
    served = mapping(report.get("successes"))
    latency = served.get("latency")
    if not isinstance(latency, dict):
        raise line.error("the report has no `successes.latency`")
    completed = count(served.get("count"))
    measured = (*_times(latency, completed), *_rates(mapping(served.get("throughput"))))
    duration_s = number(load.get("send_duration"))
    # Requests outlive the sending: the last one may take as long as the longest.
    longest_s = number(mapping(latency.get("request_latency")).get("max"))
    whole_s = duration_s + longest_s if duration_s and longest_s else None
    check_times(measured, whole_s, line.path, line.number)
    conditions = {
        k: str(route[k]) for k in ("image", "model", "accelerator") if k in route
    }
    conditions |= {f"args.{name}": value for name, value in arguments.items()}
    return Result(
        tool="inference-perf",
        kind="load",
        label=label,
        model=text(route.get("model")),
        level=Level(
            asked_rate_per_s=number(load.get("requested_rate")),
            achieved_rate_per_s=number(load.get("achieved_rate")),
            duration_s=duration_s,
            completed=completed,
            failed=count(mapping(report.get("failures")).get("count")),
        ),
        conditions=conditions,
        measured=measured,
        faults=faults,
        notes=_notes(latency),
    )


def _times(latency: Mapping[str, Any], n: int | None) -> tuple[Measured, ...]:
    return tuple(
        Measured(
            name=name,
            definition_id=definition,
            unit="s",
            statistic="p50" if statistic == "median" else statistic,
            value=value,
            n=n if name != "inter_token_latency" else None,
        )
        for name, definition in TIMES.items()
        for statistic in STATISTICS
        if (value := number(mapping(latency.get(name)).get(statistic))) is not None
        and not (name == "inter_token_latency" and statistic == "min")
    )


def _rates(throughput: Mapping[str, Any]) -> tuple[Measured, ...]:
    return tuple(
        Measured(
            name=name,
            definition_id=definition,
            unit=unit,
            statistic="total",
            value=value,
        )
        for name, (definition, unit) in RATES.items()
        if (value := number(throughput.get(name))) is not None
    )


def _notes(latency: Mapping[str, Any]) -> tuple[str, ...]:
    gap = number(mapping(latency.get("inter_token_latency")).get("median"))
    token = number(mapping(latency.get("time_per_output_token")).get("median"))
    notes = ["output tokens were counted by the client's tokenizer, which is not named"]
    if gap is not None and token and gap < BURST_SHARE * token:
        notes.append(
            f"the median token gap is {gap * 1e3:.2f} ms where a token takes "
            f"{token * 1e3:.1f} ms: the client saw bursts, gaps are not token latency"
        )
    return tuple(notes)
