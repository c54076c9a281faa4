"""trtllm-serve 1.x: JSON at /metrics, Prometheus text at /prometheus/metrics."""

from typing import Any

from routeproof.simulator.ask import Ask, BadRequest
from routeproof.simulator.dialects import exposition
from routeproof.simulator.dialects.dialect import (
    TEXT,
    Dialect,
    as_json,
    drafted_as_reported,
    kv_cache_of,
    model_list,
    model_of,
    nothing,
    reported,
    simple_usage,
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
    t, memory = engine.tally, engine.route.memory
    blocks = engine.kv_capacity // memory.block_tokens
    used = min(engine.kv_used // memory.block_tokens, blocks)
    series: list[exposition.Series] = [
        ("trtllm_num_requests_running", "gauge", labels, len(engine.running)),
        ("trtllm_num_requests_waiting", "gauge", labels, len(engine.waiting)),
        ("trtllm_kv_cache_utilization", "gauge", labels, used / max(blocks, 1)),
        ("trtllm_kv_cache_max_blocks", "gauge", labels, blocks),
        ("trtllm_kv_cache_used_blocks", "gauge", labels, used),
        ("trtllm_kv_cache_free_blocks", "gauge", labels, blocks - used),
        ("trtllm_kv_cache_tokens_per_block", "gauge", labels, memory.block_tokens),
        (
            "trtllm_kv_cache_hit_rate",
            "gauge",
            labels,
            t.cached_tokens / max(t.prompt_tokens, 1),
        ),
        ("trtllm_gpu_memory_usage_bytes", "gauge", labels, engine.memory_bytes),
        ("trtllm_prompt_tokens_total", "counter", labels, t.prompt_tokens),
        ("trtllm_generation_tokens_total", "counter", labels, t.output_tokens),
    ]
    for reason in ("stop", "length"):
        series.append(
            (
                "trtllm_request_success_total",
                "counter",
                labels | {"finished_reason": reason},
                t.finished_by_reason[reason],
            )
        )
    for name, total in (
        ("time_to_first_token_seconds", t.first_token_s),
        ("e2e_request_latency_seconds", t.latency_s),
        ("request_queue_time_seconds", t.queue_s),
    ):
        series += exposition.histogram(f"trtllm_{name}", labels, total, t.finished)
    if engine.route.speculation is not None:
        series += _speculation(engine, labels)
    series.append(
        (
            "trtllm_kv_cache_config_info",
            "gauge",
            {
                "dtype": kv_cache_of(engine),
                "tokens_per_block": str(memory.block_tokens),
            },
            1,
        )
    )
    return TEXT, exposition.write(series, engine.defects.report)


def _speculation(engine: Engine, labels: dict[str, str]) -> list[exposition.Series]:
    t = engine.tally
    series: list[exposition.Series] = [
        (
            "trtllm_spec_decode_num_draft_tokens_total",
            "counter",
            labels,
            drafted_as_reported(engine, t.drafted),
        ),
        (
            "trtllm_spec_decode_num_accepted_tokens_total",
            "counter",
            labels,
            reported(engine, t.accepted),
        ),
    ]
    for position, count in enumerate(t.drafted_at):
        at = labels | {"token_position": str(position)}
        series.append(("trtllm_spec_decode_drafted_tokens_total", "counter", at, count))
    for position, count in enumerate(t.accepted_at):
        at = labels | {"token_position": str(position)}
        series.append(
            (
                "trtllm_spec_decode_accepted_tokens_total",
                "counter",
                at,
                reported(engine, count),
            )
        )
    series.append(
        (
            "trtllm_spec_decode_acceptance_length",
            "gauge",
            labels,
            1 + t.accepted / max(t.spec_passes, 1),
        )
    )
    return series


def _error(problem: BadRequest) -> dict[str, Any]:
    return {
        "object": "error",
        "message": problem.message,
        "type": problem.kind,
        "param": problem.parameter,
        "code": problem.status,
    }


TENSORRT = Dialect(
    name="tensorrt_llm",
    version=VERSION,
    chunk_per_token=False,
    finish_apart=False,
    reasoning_field="reasoning_content",
    fingerprint=lambda engine: None,
    details=nothing,
    choice_details=_choice_details,
    usage=simple_usage,
    error=_error,
    pages={
        "/v1/models": lambda engine, now_s: as_json(model_list(engine, "tensorrt_llm")),
        "/version": lambda engine, now_s: as_json(
            {"version": version_of(engine, VERSION)}
        ),
        "/server_info": lambda engine, now_s: as_json({"disaggregated_params": {}}),
        "/metrics": lambda engine, now_s: as_json([]),
        "/prometheus/metrics": _prometheus,
    },
)
