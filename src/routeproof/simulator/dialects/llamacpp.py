"""llama.cpp's server, build 10434: pages, metrics, timings (seen on a live server)."""

from collections.abc import Sequence
from typing import Any

from routeproof.simulator.ask import Ask
from routeproof.simulator.dialects import exposition
from routeproof.simulator.dialects.dialect import (
    TEXT,
    Dialect,
    as_json,
    drafted_as_reported,
    model_list,
    model_of,
    reported,
    version_of,
)
from routeproof.simulator.engine import Engine
from routeproof.simulator.sequence import Sequence as Answering

VERSION = "b10434-5b1a9d2"


def _fingerprint(engine: Engine) -> str:
    return engine.route.identity.fingerprint or version_of(engine, VERSION)


def _details(
    engine: Engine, ask: Ask, sequences: Sequence[Answering]
) -> dict[str, Any]:
    if engine.defects.report.per_request_missing:
        return {}
    s = sequences[0]
    first, end = s.first_s or s.arrived_s, s.end_s or s.arrived_s
    scheduled = s.scheduled_s if s.scheduled_s is not None else first
    computed = s.ask.prompt_tokens - s.cached
    prompt_ms, predicted_ms = (first - scheduled) * 1e3, (end - first) * 1e3
    timings: dict[str, Any] = {
        "cache_n": s.cached,
        "prompt_n": computed,
        "prompt_ms": prompt_ms,
        "prompt_per_token_ms": prompt_ms / max(computed, 1),
        "prompt_per_second": computed / prompt_ms * 1e3 if prompt_ms else None,
        "predicted_n": s.produced,
        "predicted_ms": predicted_ms,
        "predicted_per_token_ms": predicted_ms / max(s.produced, 1),
        "predicted_per_second": s.produced / predicted_ms * 1e3
        if predicted_ms
        else None,
    }
    if s.drafted:
        timings["draft_n"] = drafted_as_reported(engine, s.drafted)
        timings["draft_n_accepted"] = reported(engine, s.accepted)
    return {"timings": timings}


def _metrics(engine: Engine, now_s: float) -> tuple[str, bytes]:
    t, prefix = engine.tally, "llamacpp:"
    counts = {
        "prompt_tokens_total": t.computed_prompt_tokens,
        "prompt_tokens_cached_total": t.cached_tokens,
        "prompt_seconds_total": t.prefill_s,
        "tokens_predicted_total": t.output_tokens,
        "tokens_predicted_seconds_total": t.decode_s,
        "n_decode_total": t.passes,
        "requests_processing": len(engine.running),
        "requests_deferred": len(engine.waiting),
    }
    series = exposition.family(prefix, {}, counts)
    series.append((f"{prefix}n_tokens_max", "counter", {}, t.longest_tokens))
    if engine.route.speculation is not None:
        spec = f"{prefix}spec_decode_num_"
        drafts = {
            "draft_tokens_total": drafted_as_reported(engine, t.drafted),
            "accepted_tokens_total": reported(engine, t.accepted),
            "drafts_total": t.spec_passes,
        }
        at = ((i, reported(engine, n)) for i, n in enumerate(t.accepted_at) if n)
        name = f"{spec}accepted_tokens_per_pos_total"
        series += exposition.family(spec, {}, drafts)
        series += exposition.by_label(name, {}, "position", at)
    return TEXT, exposition.write(series, engine.defects.report)


def _props(engine: Engine, now_s: float) -> tuple[str, bytes]:
    identity = engine.route.identity
    limit = engine.route.memory.context_limit_tokens
    template = engine.defects.report.declared_template or identity.chat_template
    return as_json(
        {
            "default_generation_settings": {
                "params": {
                    "temperature": 0.8,
                    "top_k": 40,
                    "top_p": 0.95,
                    "min_p": 0.05,
                    "speculative.types": "none",
                },
                "n_ctx": limit,
            },
            "total_slots": engine.route.timing.max_running,
            "model_alias": model_of(engine),
            "model_ftype": identity.weights,
            "model_path": f"/models/{model_of(engine).rsplit('/', 1)[-1]}.gguf",
            "chat_template": template,
            "bos_token": "<s>",
            "eos_token": "</s>",
            "build_info": version_of(engine, VERSION),
        }
    )


def _slots(engine: Engine, now_s: float) -> tuple[str, bytes]:
    limit = engine.route.memory.context_limit_tokens
    speculative = engine.route.speculation is not None
    busy = len(engine.running)
    slots = range(min(engine.route.timing.max_running, 64))
    return as_json(
        [
            {
                "id": i,
                "n_ctx": limit,
                "speculative": speculative,
                "is_processing": i < busy,
            }
            for i in slots
        ]
    )


def _models(engine: Engine, now_s: float) -> tuple[str, bytes]:
    meta = {
        "vocab_type": 2,
        "n_vocab": 49152,
        "n_ctx": engine.route.memory.context_limit_tokens,
        "ftype": engine.route.identity.weights,
    }
    return as_json(model_list(engine, "llamacpp", meta=meta))


LLAMACPP = Dialect(
    name="llamacpp",
    version=VERSION,
    chunk_per_token=True,
    finish_apart=True,
    fingerprint=_fingerprint,
    details=_details,
    pages={
        "/v1/models": _models,
        "/props": _props,
        "/slots": _slots,
        "/metrics": _metrics,
    },
)
