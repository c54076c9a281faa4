"""trtllm-serve 1.x: JSON at /metrics, Prometheus text at /prometheus/metrics."""

from typing import Any

from routeproof.simulator.ask import Ask
from routeproof.simulator.dialects import exposition
from routeproof.simulator.dialects.dialect import (
    TEXT,
    Dialect,
    as_json,
    drafted_as_reported,
    flat_error,
    kv_cache_of,
    model_list,
    model_of,
    reported,
    version_of,
)
from routeproof.simulator.engine import Engine
from routeproof.simulator.sequence import Sequence as Answering

VERSION = "1.3.0"


def _choice_details(engine: Engine, ask: Ask, s: Answering) -> dict[str, Any]:
    passes = s.spec_passes + s.plain_passes
    if engine.defects.report.per_request_missing or not passes:
        return {}
    return {"avg_decoded_tokens_per_iter": (s.produced - 1) / passes}


def _prometheus(engine: Engine, now_s: float) -> tuple[str, bytes]:
    labels = {"model_name": model_of(engine), "engine_type": "undefined"}
    t, size = engine.tally, engine.route.memory.block_tokens
    blocks = engine.kv_capacity // size
    used = min(engine.kv_used // size, blocks)
    counts = {
        "num_requests_running": len(engine.running),
        "num_requests_waiting": len(engine.waiting),
        "kv_cache_utilization": used / max(blocks, 1),
        "kv_cache_max_blocks": blocks,
        "kv_cache_used_blocks": used,
        "kv_cache_free_blocks": blocks - used,
        "kv_cache_tokens_per_block": size,
        "kv_cache_hit_rate": t.cached_tokens / max(t.prompt_tokens, 1),
        "gpu_memory_usage_bytes": engine.memory_bytes,
        "prompt_tokens_total": t.prompt_tokens,
        "generation_tokens_total": t.output_tokens,
    }
    ends = ((reason, t.finished_by_reason[reason]) for reason in ("stop", "length"))
    times = {
        "time_to_first_token_seconds": t.first_token_s,
        "e2e_request_latency_seconds": t.latency_s,
        "request_queue_time_seconds": t.queue_s,
    }
    info = {"dtype": kv_cache_of(engine), "tokens_per_block": str(size)}
    prefix = "trtllm_"
    series = [
        *exposition.family(prefix, labels, counts),
        *exposition.by_label(
            f"{prefix}request_success_total", labels, "finished_reason", ends
        ),
        *exposition.histograms(prefix, labels, times, t.finished),
        *_speculation(engine, labels),
        *exposition.family(prefix, info, {"kv_cache_config_info": 1}),
    ]
    return TEXT, exposition.write(series, engine.defects.report)


def _speculation(engine: Engine, labels: dict[str, str]) -> list[exposition.Series]:
    if engine.route.speculation is None:
        return []
    t, prefix = engine.tally, "trtllm_spec_decode_"
    totals = {
        "num_draft_tokens_total": drafted_as_reported(engine, t.drafted),
        "num_accepted_tokens_total": reported(engine, t.accepted),
        "acceptance_length": 1 + t.accepted / max(t.spec_passes, 1),
    }
    accepted = ((i, reported(engine, n)) for i, n in enumerate(t.accepted_at))
    series = exposition.family(prefix, labels, totals)
    for name, at in (
        ("drafted_tokens_total", enumerate(t.drafted_at)),
        ("accepted_tokens_total", accepted),
    ):
        series += exposition.by_label(f"{prefix}{name}", labels, "token_position", at)
    return series


def _perf_metrics(engine: Engine, now_s: float) -> tuple[str, bytes]:
    """Requests that ended since the page was last read; reading empties it."""
    recent = engine.tally.recent
    ended = [recent.popleft() for _ in range(len(recent))]
    return as_json([_perf_record(engine, s) for s in ended])


def _perf_record(engine: Engine, s: Answering) -> dict[str, Any]:
    hidden = engine.defects.engine.hidden_queue
    times = {
        "arrival_time": s.scheduled_s if hidden else s.arrived_s,
        "first_scheduled_time": s.scheduled_s,
        "first_token_time": s.first_s,
        "last_token_time": s.end_s,
    }
    record: dict[str, Any] = {"timing_metrics": times}
    if s.drafted and not engine.defects.report.per_request_missing:
        accepted = reported(engine, s.accepted)
        drafted = drafted_as_reported(engine, s.drafted)
        record["speculative_decoding"] = {
            "acceptance_rate": accepted / drafted,
            "total_accepted_draft_tokens": accepted,
            "total_draft_tokens": drafted,
        }
    return {"request_id": s.serial, "perf_metrics": record}


TENSORRT = Dialect(
    name="tensorrt_llm",
    version=VERSION,
    choice_details=_choice_details,
    error=flat_error,
    pages={
        "/v1/models": lambda engine, now_s: as_json(model_list(engine, "tensorrt_llm")),
        "/version": lambda engine, now_s: as_json(
            {"version": version_of(engine, VERSION)}
        ),
        "/server_info": lambda engine, now_s: as_json({"disaggregated_params": {}}),
        "/metrics": lambda engine, now_s: as_json([]),
        "/perf_metrics": _perf_metrics,
        "/prometheus/metrics": _prometheus,
    },
)
