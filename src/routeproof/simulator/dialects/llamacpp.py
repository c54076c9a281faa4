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
    nothing,
    openai_error,
    reported,
    simple_usage,
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
    t = engine.tally
    series: list[exposition.Series] = [
        ("llamacpp:prompt_tokens_total", "counter", {}, t.computed_prompt_tokens),
        ("llamacpp:prompt_tokens_cached_total", "counter", {}, t.cached_tokens),
        ("llamacpp:prompt_seconds_total", "counter", {}, t.prefill_s),
        ("llamacpp:tokens_predicted_total", "counter", {}, t.output_tokens),
        ("llamacpp:tokens_predicted_seconds_total", "counter", {}, t.decode_s),
        ("llamacpp:n_decode_total", "counter", {}, t.passes),
        ("llamacpp:n_tokens_max", "counter", {}, t.longest_tokens),
        ("llamacpp:requests_processing", "gauge", {}, len(engine.running)),
        ("llamacpp:requests_deferred", "gauge", {}, len(engine.waiting)),
    ]
    if engine.route.speculation is not None:
        series += [
            (
                "llamacpp:spec_decode_num_draft_tokens_total",
                "counter",
                {},
                drafted_as_reported(engine, t.drafted),
            ),
            (
                "llamacpp:spec_decode_num_accepted_tokens_total",
                "counter",
                {},
                reported(engine, t.accepted),
            ),
            ("llamacpp:spec_decode_num_drafts_total", "counter", {}, t.spec_passes),
        ]
        for position, count in enumerate(t.accepted_at):
            if count:
                series.append(
                    (
                        "llamacpp:spec_decode_num_accepted_tokens_per_pos_total",
                        "counter",
                        {"position": str(position)},
                        reported(engine, count),
                    )
                )
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
    reasoning_field="reasoning_content",
    fingerprint=_fingerprint,
    details=_details,
    choice_details=nothing,
    usage=simple_usage,
    error=openai_error,
    pages={
        "/v1/models": _models,
        "/props": _props,
        "/slots": _slots,
        "/metrics": _metrics,
    },
)
