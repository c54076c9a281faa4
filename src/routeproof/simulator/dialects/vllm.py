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
    reported,
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
    t, memory = engine.tally, engine.route.memory
    process = {
        "start_time_seconds": 1_790_000_000 + engine.started_s,
        "resident_memory_bytes": 8e8 + engine.leaked_bytes,
    }
    counts = {
        "num_requests_running": len(engine.running),
        "num_requests_waiting": len(engine.waiting),
        "kv_cache_usage_perc": min(engine.kv_used / engine.kv_capacity, 1.0),
        "num_preemptions_total": t.preemptions,
        "prompt_tokens_total": t.prompt_tokens,
        "generation_tokens_total": t.output_tokens,
        "prefix_cache_queries_total": t.prompt_tokens,
        "prefix_cache_hits_total": t.cached_tokens,
        "prompt_tokens_cached_total": t.cached_tokens,
    }
    ends = ((r, t.finished_by_reason[r]) for r in ("stop", "length", "abort", "error"))
    times = {
        "time_to_first_token_seconds": t.first_token_s,
        "e2e_request_latency_seconds": t.latency_s,
        "request_queue_time_seconds": t.queue_s,
        "request_prefill_time_seconds": t.prefill_s,
        "request_decode_time_seconds": t.decode_s,
    }
    info = {
        "block_size": str(memory.block_tokens),
        "cache_dtype": kv_cache_of(engine),
        "enable_prefix_caching": str(memory.prefix_cache),
        "engine": "0",
        "num_gpu_blocks": str(engine.kv_capacity // memory.block_tokens),
    }
    series = [
        *exposition.family("process_", {}, process),
        *exposition.family("vllm:", labels, counts),
        *exposition.by_label(
            "vllm:request_success_total", labels, "finished_reason", ends
        ),
        *exposition.histograms("vllm:", labels, times, t.finished),
        *_speculation_series(engine, labels),
        *exposition.family("vllm:", info, {"cache_config_info": 1}),
    ]
    return TEXT, exposition.write(series, engine.defects.report)


def _speculation_series(
    engine: Engine, labels: dict[str, str]
) -> list[exposition.Series]:
    if engine.route.speculation is None:
        return []
    t, prefix = engine.tally, "vllm:spec_decode_num_"
    counts = {
        "drafts_total": t.spec_passes,
        "draft_tokens_total": drafted_as_reported(engine, t.drafted),
        "accepted_tokens_total": reported(engine, t.accepted),
    }
    at = ((i, reported(engine, count)) for i, count in enumerate(t.accepted_at))
    name = f"{prefix}accepted_tokens_per_pos_total"
    return [
        *exposition.family(prefix, labels, counts),
        *exposition.by_label(name, labels, "position", at),
    ]


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
    reasoning_field="reasoning",
    fingerprint=_fingerprint,
    details=_details,
    pages={
        "/v1/models": _models,
        "/version": lambda engine, now_s: as_json(
            {"version": version_of(engine, VERSION)}
        ),
        "/server_info": _server_info,
        "/metrics": _metrics,
    },
)
