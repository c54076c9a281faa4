"""llama.cpp's ``llama-server``.

``/props`` names neither the draft model nor the type of the KV cache, and its
``speculative.types`` is the request default, not the route: with a draft loaded it
still reads ``none`` (build 10434). ``/slots`` tells whether a slot can speculate, and
which way once it has served a request.
"""

import hashlib
from collections.abc import Mapping
from typing import Any

from routeproof.engines.adapter import TableAdapter
from routeproof.engines.series import Series
from routeproof.engines.values import (
    first_model,
    inner,
    json_value,
    mapping,
    model_ids,
    put,
    seconds,
    text_of,
    whole,
)
from routeproof.records.record import EngineDetails
from routeproof.routes.read_back import ReadBack

MODELS, PROPS, SLOTS = "/v1/models", "/props", "/slots"

SERIES = (
    Series("running", ("llamacpp:requests_processing",)),
    Series("waiting", ("llamacpp:requests_deferred",)),
    Series("prompt_tokens_total", ("llamacpp:prompt_tokens_total",)),
    Series("cached_tokens_total", ("llamacpp:prompt_tokens_cached_total",)),
    Series("output_tokens_total", ("llamacpp:tokens_predicted_total",)),
    Series("decode_calls_total", ("llamacpp:n_decode_total",)),
    Series("spec_passes_total", ("llamacpp:spec_decode_num_drafts_total",)),
    Series("drafted_total", ("llamacpp:spec_decode_num_draft_tokens_total",)),
    Series("accepted_total", ("llamacpp:spec_decode_num_accepted_tokens_total",)),
    Series(
        "accepted_at_position_total",
        ("llamacpp:spec_decode_num_accepted_tokens_per_pos_total",),
        position_label="position",
    ),
    Series("kv_used_share", ("llamacpp:kv_cache_usage_ratio",), across="max"),
)

NO_REQUESTS = "llama-server counts no requests, and none that failed"

CANNOT_TELL = (
    "revision",
    "kv_cache",
    "attention_backend",
    "speculation.draft.model",
    "speculation.draft.revision",
    "speculation.draft_tokens",
    "speculation.placement",
    "hardware.device",
    "hardware.driver",
    "hardware.topology",
)

_SAMPLERS = (
    "temperature",
    "top_k",
    "top_p",
    "min_p",
    "repeat_penalty",
    "presence_penalty",
    "frequency_penalty",
)


def read_back(answers: Mapping[str, str]) -> ReadBack:
    """Build, model file, weights, context, template and sampler defaults."""
    props = mapping(answers.get(PROPS))
    meta = inner(first_model(answers.get(MODELS)), "meta")
    defaults = inner(props, "default_generation_settings")
    fields = {"engine.name": "llama.cpp"}
    build = text_of(props.get("build_info"))
    if build is not None and "unknown" not in build:
        # Builds outside its own tree call themselves `b0-unknown`.
        fields["engine.version"] = build
    put(fields, "model.served", first_model(answers.get(MODELS)).get("id"))
    put(fields, "model", props.get("model_path"))
    put(fields, "weights", props.get("model_ftype") or meta.get("ftype"))
    put(fields, "context_limit_tokens", defaults.get("n_ctx") or meta.get("n_ctx"))
    put(fields, "observed.parallel_slots", props.get("total_slots"))
    put(fields, "observed.parameters", meta.get("n_params"))
    put(fields, "observed.model_bytes", meta.get("size"))
    put(fields, "tokenizer.vocabulary_size", meta.get("n_vocab"))
    put(fields, "tokenizer.bos", props.get("bos_token"))
    put(fields, "tokenizer.eos", props.get("eos_token"))
    template = props.get("chat_template")
    if isinstance(template, str) and template:
        fields["tokenizer.chat_template_digest"] = _sha256(template)
    for name in _SAMPLERS:
        put(fields, f"sampler_defaults.{name}", inner(defaults, "params").get(name))
    method = _speculation(json_value(answers.get(SLOTS)))
    if method is not None:
        fields["speculation.method"] = method
    cannot = CANNOT_TELL if method else (*CANNOT_TELL, "speculation.method")
    return ReadBack(
        engine="llama.cpp",
        fields=fields,
        cannot_tell=tuple(name for name in cannot if name not in fields),
        models=model_ids(answers.get(MODELS)),
        raw=dict(answers),
    )


def _speculation(slots: Any) -> str | None:
    """The method, ``none``, or ``None`` when the slots only say that there is one."""
    rows = (
        [row for row in slots if isinstance(row, dict)]
        if isinstance(slots, list)
        else []
    )
    flags = [
        row["speculative"] for row in rows if isinstance(row.get("speculative"), bool)
    ]
    if not flags:
        return None
    if not any(flags):
        return "none"
    for row in rows:
        types = text_of(inner(row, "params").get("speculative.types"))
        named = [t for t in (types or "").split(",") if t not in ("", "none")]
        if named:
            return ",".join(named)
    return None


def details(body: Mapping[str, Any]) -> EngineDetails:
    """Counts and times from ``timings``.

    The server counts drafted and accepted tokens but not passes. Every output token
    after the first comes from a pass, one of its own and its accepted drafts, so all
    passes together are ``predicted_n - 1 - draft_n_accepted``; how many of them had a
    draft is not told. ``draft_n`` is left out of the answer when it is 0, so timings
    without it say that nothing was drafted.
    """
    timings = inner(body, "timings")
    predicted = whole(timings.get("predicted_n"))
    drafted = whole(timings.get("draft_n"))
    accepted = whole(timings.get("draft_n_accepted"))
    if predicted is not None and "draft_n" not in timings:
        drafted = accepted = 0
    passes = None
    if predicted and accepted is not None:
        passes = max(predicted - 1 - accepted, 0)
    fingerprint = body.get("system_fingerprint")
    return EngineDetails(
        prefill_s=seconds(timings.get("prompt_ms"), per_second=1000.0),
        decode_s=seconds(timings.get("predicted_ms"), per_second=1000.0),
        drafted=drafted,
        accepted=accepted,
        spec_passes=0 if drafted == 0 else None,
        plain_passes=passes if drafted == 0 else None,
        passes=passes,
        fingerprint=fingerprint if isinstance(fingerprint, str) else None,
    )


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


LLAMA_CPP = TableAdapter(
    name="llama.cpp",
    probe_paths=(MODELS, PROPS, SLOTS, "/health"),
    metrics_path="/metrics",
    series=SERIES,
    read=read_back,
    detail=details,
    not_exported={
        "verify_passes_per_request": NO_REQUESTS,
        "request_latency_mean_s": "there is no histogram of times",
        "error_share": NO_REQUESTS,
        "structured_failure_share": NO_REQUESTS,
    },
)
