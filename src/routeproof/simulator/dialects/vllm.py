"""vLLM 0.32: pages, metrics and per-request figures (seen on a live server)."""

from collections.abc import Sequence
from typing import Any

from routeproof.simulator import draws
from routeproof.simulator.ask import Ask
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
    openai_error,
    reported,
    simple_usage,
    version_of,
)
from routeproof.simulator.engine import Engine
from routeproof.simulator.sequence import Sequence as Answering

VERSION = "0.32.0"


def _fingerprint(engine: Engine) -> str:
    identity, changes = engine.route.identity, engine.defects.report
    after = changes.fingerprint_changes_after
    late = after is not None and engine.tally.finished >= after
    names = (
        identity.model,
        identity.weights,
        kv_cache_of(engine),
        engine.route.speculation is None,
        late,
    )
    return (
        identity.fingerprint
        or f"vllm-{version_of(engine, VERSION)}-{int(draws.unit(*names) * 2**32):08x}"
    )


def _details(
    engine: Engine, ask: Ask, sequences: Sequence[Answering]
) -> dict[str, Any]:
    wrong = engine.defects.report
    if (
        not engine.route.per_request_metrics
        or wrong.per_request_missing
        or len(sequences) > 1
    ):
        return {}
    s = sequences[0]
    first, end = s.first_s or s.arrived_s, s.end_s or s.arrived_s
    scheduled = s.scheduled_s if s.scheduled_s is not None else first
    queue = 0.0 if engine.defects.engine.hidden_queue else scheduled - s.arrived_s
    decode = end - first
    figures: dict[str, Any] = {
        "time_to_first_token_ms": (first - scheduled) * 1e3,
        "generation_time_ms": decode * 1e3,
        "queue_time_ms": queue * 1e3,
        "mean_itl_ms": decode * 1e3 / max(s.produced - 1, 1),
        "tokens_per_second": s.produced / decode if decode > 0 else None,
    }
    if engine.route.speculation is not None:
        figures["speculative_decoding"] = _speculation(engine, s)
    return {"metrics": figures}


def _speculation(engine: Engine, s: Answering) -> dict[str, Any]:
    accepted = reported(engine, s.accepted)
    drafted = drafted_as_reported(engine, s.drafted)
    steps = s.spec_passes
    spec = engine.route.speculation
    return {
        "mean_acceptance_length": 1 + accepted / steps if steps else None,
        "draft_acceptance_rate": accepted / drafted if drafted else None,
        "acceptance_histogram": s.hist,
        "num_spec_steps": steps,
        "num_accepted_draft_tokens": accepted,
        "num_draft_tokens": drafted,
        "num_spec_tokens": spec.draft_tokens if spec else 0,
    }


def _metrics(engine: Engine, now_s: float) -> tuple[str, bytes]:
    labels = {"engine": "0", "model_name": model_of(engine)}
    t = engine.tally
    series: list[exposition.Series] = [
        ("process_start_time_seconds", "gauge", {}, 1_790_000_000 + engine.started_s),
        ("process_resident_memory_bytes", "gauge", {}, 8e8 + engine.leaked_bytes),
        ("vllm:num_requests_running", "gauge", labels, len(engine.running)),
        ("vllm:num_requests_waiting", "gauge", labels, len(engine.waiting)),
        (
            "vllm:kv_cache_usage_perc",
            "gauge",
            labels,
            min(engine.kv_used / engine.kv_capacity, 1.0),
        ),
        ("vllm:num_preemptions_total", "counter", labels, t.preemptions),
        ("vllm:prompt_tokens_total", "counter", labels, t.prompt_tokens),
        ("vllm:generation_tokens_total", "counter", labels, t.output_tokens),
        ("vllm:prefix_cache_queries_total", "counter", labels, t.prompt_tokens),
        ("vllm:prefix_cache_hits_total", "counter", labels, t.cached_tokens),
        ("vllm:prompt_tokens_cached_total", "counter", labels, t.cached_tokens),
    ]
    for reason in ("stop", "length", "abort", "error"):
        series.append(
            (
                "vllm:request_success_total",
                "counter",
                labels | {"finished_reason": reason},
                t.finished_by_reason[reason],
            )
        )
    for name, total in (
        ("time_to_first_token_seconds", t.first_token_s),
        ("e2e_request_latency_seconds", t.latency_s),
        ("request_queue_time_seconds", t.queue_s),
        ("request_prefill_time_seconds", t.prefill_s),
        ("request_decode_time_seconds", t.decode_s),
    ):
        series += exposition.histogram(f"vllm:{name}", labels, total, t.finished)
    if engine.route.speculation is not None:
        series += _speculation_series(engine, labels)
    blocks = engine.kv_capacity // engine.route.memory.block_tokens
    info = {
        "block_size": str(engine.route.memory.block_tokens),
        "cache_dtype": kv_cache_of(engine),
        "enable_prefix_caching": str(engine.route.memory.prefix_cache),
        "engine": "0",
        "num_gpu_blocks": str(blocks),
    }
    series.append(("vllm:cache_config_info", "gauge", info, 1))
    return TEXT, exposition.write(series, engine.defects.report)


def _speculation_series(
    engine: Engine, labels: dict[str, str]
) -> list[exposition.Series]:
    t = engine.tally
    series: list[exposition.Series] = [
        ("vllm:spec_decode_num_drafts_total", "counter", labels, t.spec_passes),
        (
            "vllm:spec_decode_num_draft_tokens_total",
            "counter",
            labels,
            drafted_as_reported(engine, t.drafted),
        ),
        (
            "vllm:spec_decode_num_accepted_tokens_total",
            "counter",
            labels,
            reported(engine, t.accepted),
        ),
    ]
    for position, count in enumerate(t.accepted_at):
        series.append(
            (
                "vllm:spec_decode_num_accepted_tokens_per_pos_total",
                "counter",
                labels | {"position": str(position)},
                reported(engine, count),
            )
        )
    return series


def _server_info(engine: Engine, now_s: float) -> tuple[str, bytes]:
    identity, spec = engine.route.identity, engine.route.speculation
    config = None
    if spec is not None:
        config = {
            "method": spec.method,
            "model": spec.draft_model,
            "revision": spec.draft_revision,
            "num_speculative_tokens": spec.draft_tokens,
        }
        if engine.defects.report.lossy_switch:
            config["rejection_sample_method"] = "synthetic"
    return as_json(
        {
            "vllm_config": {
                "model_config": {
                    "model": model_of(engine),
                    "tokenizer": model_of(engine),
                    "revision": identity.revision,
                    "dtype": f"torch.{identity.weights}",
                    "max_model_len": engine.route.memory.context_limit_tokens,
                    "quantization": None,
                    "served_model_name": model_of(engine),
                },
                "cache_config": {
                    "cache_dtype": kv_cache_of(engine),
                    "block_size": engine.route.memory.block_tokens,
                },
                "speculative_config": config,
            },
            "vllm_env": {},
            "system_env": {},
        }
    )


def _models(engine: Engine, now_s: float) -> tuple[str, bytes]:
    limit = engine.route.memory.context_limit_tokens
    return as_json(
        model_list(
            engine, "vllm", root=model_of(engine), parent=None, max_model_len=limit
        )
    )


VLLM = Dialect(
    name="vllm",
    version=VERSION,
    chunk_per_token=False,
    finish_apart=False,
    reasoning_field="reasoning",
    fingerprint=_fingerprint,
    details=_details,
    choice_details=nothing,
    usage=simple_usage,
    error=openai_error,
    pages={
        "/v1/models": _models,
        "/version": lambda engine, now_s: as_json(
            {"version": version_of(engine, VERSION)}
        ),
        "/server_info": _server_info,
        "/metrics": _metrics,
    },
)
