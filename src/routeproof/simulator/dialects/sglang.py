"""SGLang 0.5.23: pages, metrics and per-request figures (seen on a live server)."""

from collections.abc import Sequence
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
    simple_usage,
    version_of,
)
from routeproof.simulator.engine import Engine
from routeproof.simulator.sequence import Sequence as Answering

VERSION = "0.5.23"
GIB = 1 << 30


def _counts(engine: Engine, s: Answering) -> dict[str, Any]:
    if not s.spec_passes or engine.defects.report.per_request_missing:
        return {}
    correct = reported(engine, s.accepted)
    proposed = drafted_as_reported(engine, s.drafted)
    hist = list(s.hist)
    while len(hist) > 1 and not hist[-1]:
        hist.pop()
    return {
        "spec_accept_rate": correct / proposed if proposed else 0.0,
        "spec_accept_length": s.produced / s.spec_passes,
        "spec_num_correct_drafts": correct,
        "spec_num_proposed_drafts": proposed,
        "spec_verify_ct": s.spec_passes,
        "spec_correct_drafts_histogram": hist,
    }


def _details(
    engine: Engine, ask: Ask, sequences: Sequence[Answering]
) -> dict[str, Any]:
    wanted = ask.body.get("return_spec_tokens_details")
    extra: dict[str, Any] = {
        "cached_tokens_details": {"device": sequences[0].cached, "host": 0}
    }
    counts = _counts(engine, sequences[0]) if wanted else {}
    if counts:
        extra["spec_tokens_details"] = counts
    return {"sglext": extra} if wanted else {}


def _choice_details(engine: Engine, ask: Ask, s: Answering) -> dict[str, Any]:
    if not ask.body.get("return_meta_info"):
        return {}
    first, end = s.first_s or s.arrived_s, s.end_s or s.arrived_s
    scheduled = s.scheduled_s if s.scheduled_s is not None else first
    meta: dict[str, Any] = {
        "prompt_tokens": s.ask.prompt_tokens,
        "completion_tokens": s.produced,
        "cached_tokens": s.cached,
        "num_retractions": s.preemptions,
        "queue_time": 0.0
        if engine.defects.engine.hidden_queue
        else scheduled - s.arrived_s,
        "forward_entry_time": scheduled,
        "prefill_finished_time": first,
        "e2e_latency": end - s.arrived_s,
        "first_token_latency": first - s.arrived_s,
        "weight_version": "default",
    }
    return {"meta_info": meta | _counts(engine, s)}


def _metrics(engine: Engine, now_s: float) -> tuple[str, bytes]:
    labels = {
        "engine_type": "unified",
        "model_name": model_of(engine),
        "moe_ep_rank": "0",
        "pp_rank": "0",
        "tp_rank": "0",
    }
    t, memory = engine.tally, engine.route.memory
    used, capacity = engine.kv_used, engine.kv_capacity
    counts = {
        "num_running_reqs": len(engine.running),
        "num_queue_reqs": len(engine.waiting),
        "num_used_tokens": used,
        "token_usage": min(used / capacity, 1.0),
        "max_total_num_tokens": capacity,
        "weight_memory_usage_gb": memory.weights_bytes / GIB,
        "kv_cache_memory_usage_gb": capacity * memory.kv_token_bytes / GIB,
        "prompt_tokens_total": t.prompt_tokens,
        "generation_tokens_total": t.output_tokens,
        "num_requests_total": t.finished,
        "num_retracted_requests_total": t.preemptions,
    }
    cached = (("device", t.cached_tokens),)
    computed = (
        ("decode", _decoded(engine)),
        ("prefill_compute", t.computed_prompt_tokens),
    )
    times = {
        "time_to_first_token_seconds": t.first_token_s,
        "e2e_request_latency_seconds": t.latency_s,
        "queue_time_seconds": t.queue_s,
    }
    prefix = "sglang:"
    series = [
        *exposition.family(prefix, labels, counts),
        *exposition.by_label(
            f"{prefix}cached_tokens_total", labels, "cache_source", cached
        ),
        *exposition.by_label(
            f"{prefix}realtime_tokens_total", labels, "mode", computed
        ),
        *exposition.histograms(prefix, labels, times, t.finished),
    ]
    if engine.route.speculation is not None:
        accepted = reported(engine, t.accepted)
        spec = {
            "verify_calls_total": t.verify_calls_finished,
            "accept_length": 1 + accepted / max(t.spec_passes, 1),
            "accept_rate": accepted / max(t.drafted, 1),
        }
        series += exposition.family(f"{prefix}spec_", labels, spec)
    return TEXT, exposition.write(series, engine.defects.report)


def _decoded(engine: Engine) -> int:
    """Tokens from decode passes: accepted drafts and one per verify or plain pass."""
    t = engine.tally
    if engine.route.speculation is None:
        return max(t.output_tokens - t.first_tokens, 0)
    return reported(engine, t.accepted) + t.spec_passes


def _server_info(engine: Engine, now_s: float) -> tuple[str, bytes]:
    identity, spec, memory = (
        engine.route.identity,
        engine.route.speculation,
        engine.route.memory,
    )
    wrong = engine.defects.report
    page: dict[str, Any] = {
        "model_path": model_of(engine),
        "tokenizer_path": model_of(engine),
        "served_model_name": model_of(engine),
        "revision": identity.revision,
        "dtype": identity.weights,
        "quantization": None,
        "kv_cache_dtype": kv_cache_of(engine),
        "context_length": memory.context_limit_tokens,
        "chat_template": wrong.declared_template,
        "attention_backend": "simulated",
        "max_total_tokens": engine.kv_capacity,
        "disable_radix_cache": not memory.prefix_cache,
        "speculative_algorithm": spec.method.upper() if spec else None,
        "speculative_draft_model_path": spec.draft_model if spec else None,
        "speculative_draft_model_revision": spec.draft_revision if spec else None,
        "speculative_num_steps": spec.draft_tokens if spec else None,
        "speculative_eagle_topk": 1 if spec else None,
        "speculative_num_draft_tokens": spec.draft_tokens + 1 if spec else None,
        "speculative_accept_threshold_single": 0.7 if wrong.lossy_switch else 1.0,
        "speculative_accept_threshold_acc": 1.0,
        "internal_states": [
            {
                "memory_usage": {
                    "weight": memory.weights_bytes / GIB,
                    "kvcache": engine.kv_capacity * memory.kv_token_bytes / GIB,
                    "token_capacity": engine.kv_capacity,
                }
            }
        ],
        "version": version_of(engine, VERSION),
    }
    return as_json(page)


def _models(engine: Engine, now_s: float) -> tuple[str, bytes]:
    limit = engine.route.memory.context_limit_tokens
    return as_json(
        model_list(engine, "sglang", root=model_of(engine), max_model_len=limit)
    )


def _model_info(engine: Engine, now_s: float) -> tuple[str, bytes]:
    return as_json(
        {
            "model_path": model_of(engine),
            "tokenizer_path": model_of(engine),
            "is_generation": True,
            "weight_version": "default",
        }
    )


SGLANG = Dialect(
    name="sglang",
    version=VERSION,
    finish_apart=True,
    details=_details,
    choice_details=_choice_details,
    usage=lambda engine, sequences: (
        simple_usage(engine, sequences) | {"reasoning_tokens": 0}
    ),
    error=flat_error,
    pages={
        "/v1/models": _models,
        "/server_info": _server_info,
        "/get_server_info": _server_info,
        "/model_info": _model_info,
        "/get_model_info": _model_info,
        "/metrics": _metrics,
    },
)
