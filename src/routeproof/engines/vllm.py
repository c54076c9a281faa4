"""vLLM (V1 engine, 0.10 and later).

The whole configuration is at ``/server_info`` only with ``VLLM_SERVER_DEV_MODE=1``;
without it, the labels of ``vllm:cache_config_info`` tell the KV cache, and whether
there are series about speculation tells whether the route speculates.
"""

from collections.abc import Mapping
from typing import Any

from routeproof.engines.adapter import TableAdapter
from routeproof.engines.series import Series, info_labels
from routeproof.engines.values import (
    counts,
    first_model,
    inner,
    mapping,
    model_ids,
    put,
    seconds,
    text_of,
    whole,
)
from routeproof.records.record import EngineDetails
from routeproof.routes.fields import READABLE
from routeproof.routes.read_back import ReadBack

MODELS, VERSION, METRICS = "/v1/models", "/version", "/metrics"
SERVER_INFO = "/server_info?config_format=json"

SERIES = (
    Series("running", ("vllm:num_requests_running",)),
    Series("waiting", ("vllm:num_requests_waiting",)),
    Series(
        "kv_used_share",
        ("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc"),
        across="max",
    ),
    Series(
        "kv_capacity_tokens",
        ("vllm:cache_config_info",),
        label="kv_cache_size_tokens",
        product=("num_gpu_blocks", "block_size"),
    ),
    Series("preemptions_total", ("vllm:num_preemptions_total",)),
    Series("prompt_tokens_total", ("vllm:prompt_tokens_total",)),
    Series("output_tokens_total", ("vllm:generation_tokens_total",)),
    Series("requests_total", ("vllm:request_success_total",)),
    Series(
        "errors_total",
        ("vllm:request_success_total",),
        where=(("finished_reason", "error"),),
    ),
    Series(
        "cached_tokens_total",
        ("vllm:prompt_tokens_cached_total", "vllm:prefix_cache_hits_total"),
    ),
    Series("spec_passes_total", ("vllm:spec_decode_num_drafts_total",)),
    Series("drafted_total", ("vllm:spec_decode_num_draft_tokens_total",)),
    Series(
        "accepted_total",
        (
            "vllm:spec_decode_num_accepted_tokens_total",
            "vllm:spec_decode_num_accepted_tokens",
        ),
    ),
    Series(
        "accepted_at_position_total",
        (
            "vllm:spec_decode_num_accepted_tokens_per_pos_total",
            "vllm:spec_decode_num_accepted_tokens_per_pos",
        ),
        position_label="position",
    ),
    Series("process_start_s", ("process_start_time_seconds",), across="max"),
    Series("corrupted_total", ("vllm:corrupted_requests_total",)),
)
"""Newest name first. ``gpu_cache_usage_perc`` became ``kv_cache_usage_perc`` in
#18354; the counters without ``_total`` are those of the first V1 releases."""

SPECULATION_OPTIONS = (
    "prompt_lookup_min",
    "prompt_lookup_max",
    "rejection_sample_method",
    "synthetic_acceptance_rates",
    "synthetic_acceptance_length",
    "draft_sample_method",
    "parallel_drafting",
    "use_heterogeneous_vocab",
    "enable_adaptive_verification",
    "num_speculative_tokens_per_batch_size",
)


def read_back(answers: Mapping[str, str]) -> ReadBack:
    """Version and model always; the rest where the server tells."""
    fields = {"engine.name": "vllm"}
    put(fields, "engine.version", mapping(answers.get(VERSION)).get("version"))
    model = first_model(answers.get(MODELS))
    put(fields, "model.served", model.get("id"))
    put(fields, "model", model.get("root"))
    put(fields, "context_limit_tokens", model.get("max_model_len"))
    _from_metrics(fields, answers.get(METRICS, ""))
    info = mapping(answers.get(SERVER_INFO))
    if "vllm_config" in info:
        _from_config(fields, inner(info, "vllm_config"))
        _from_system(fields, inner(info, "system_env"))
    return ReadBack(
        engine="vllm",
        fields=fields,
        cannot_tell=tuple(name for name in READABLE if name not in fields),
        models=model_ids(answers.get(MODELS)),
        raw=dict(answers),
    )


def _from_metrics(fields: dict[str, str], page: str) -> None:
    labels = info_labels(page, "vllm:cache_config_info")
    if labels.get("cache_dtype", "auto") != "auto":
        fields["kv_cache"] = labels["cache_dtype"]
    put(fields, "prefix_cache", labels.get("enable_prefix_caching"))
    put(fields, "observed.kv_capacity_tokens", _kv_tokens(labels))


def _kv_tokens(labels: Mapping[str, str]) -> str | None:
    size = labels.get("kv_cache_size_tokens", "")
    if size.isdigit():
        return size
    blocks, block = labels.get("num_gpu_blocks", ""), labels.get("block_size", "")
    if blocks.isdigit() and block.isdigit():
        return str(int(blocks) * int(block))
    return None


def _from_config(fields: dict[str, str], config: Mapping[str, Any]) -> None:
    model, cache = inner(config, "model_config"), inner(config, "cache_config")
    put(fields, "model", model.get("model"))
    put(fields, "revision", model.get("revision"))
    put(fields, "tokenizer.name", model.get("tokenizer"))
    put(fields, "tokenizer.revision", model.get("tokenizer_revision"))
    put(fields, "weights", model.get("quantization") or model.get("dtype"))
    put(fields, "context_limit_tokens", model.get("max_model_len"))
    kv = text_of(cache.get("cache_dtype"))
    # `auto` stores keys and values in the type the model computes with.
    put(fields, "kv_cache", model.get("dtype") if kv == "auto" else kv)
    put(fields, "observed.kv_capacity_tokens", cache.get("kv_cache_size_tokens"))
    put(fields, "prefix_cache", cache.get("enable_prefix_caching"))
    put(
        fields,
        "attention_backend",
        inner(config, "attention_config").get("backend"),
    )
    put(fields, "hardware.device", inner(config, "device_config").get("device"))
    fields["hardware.topology"] = _topology(inner(config, "parallel_config"))
    scheduler = inner(config, "scheduler_config")
    put(fields, "observed.max_running_requests", scheduler.get("max_num_seqs"))
    put(fields, "observed.chunked_prefill", scheduler.get("enable_chunked_prefill"))
    _from_speculation(fields, config.get("speculative_config"))


def _topology(parallel: Mapping[str, Any]) -> str:
    parts = [
        f"{short}{size}"
        for short, size in (
            ("tp", parallel.get("tensor_parallel_size")),
            ("pp", parallel.get("pipeline_parallel_size")),
            ("dp", parallel.get("data_parallel_size")),
        )
        if isinstance(size, int) and size > 1
    ]
    return " ".join(parts) or "single"


def _from_speculation(fields: dict[str, str], config: Any) -> None:
    if not isinstance(config, Mapping):
        fields["speculation.method"] = "none"
        return
    method = text_of(config.get("method"))
    put(fields, "speculation.method", method)
    put(fields, "speculation.draft_tokens", config.get("num_speculative_tokens"))
    if not (method or "").startswith("ngram"):
        put(fields, "speculation.draft.model", config.get("model"))
        put(fields, "speculation.draft.revision", config.get("revision"))
        draft = inner(config, "draft_model_config")
        put(
            fields,
            "speculation.draft.weights",
            config.get("quantization") or draft.get("dtype"),
        )
    for name in SPECULATION_OPTIONS:
        # A switch that is off is the engine's default and says nothing.
        put(fields, f"speculation.options.{name}", config.get(name) or None)


def _from_system(fields: dict[str, str], system: Mapping[str, Any]) -> None:
    for name, key in (
        ("hardware.driver", "nvidia_driver_version"),
        ("observed.gpu_models", "nvidia_gpu_models"),
    ):
        if system.get(key) not in (None, "None", ""):
            put(fields, name, system[key])


def details(body: Mapping[str, Any]) -> EngineDetails:
    """Times and speculation from ``metrics`` (needs two server flags).

    Drafted counts are after the grammar trimmed them, accepted ones before a stop
    string cut the text; passes without a draft are what is left of the output tokens,
    at least 0.
    """
    metrics = inner(body, "metrics")
    spec = inner(metrics, "speculative_decoding")
    steps = whole(spec.get("num_spec_steps"))
    accepted = whole(spec.get("num_accepted_draft_tokens"))
    output = whole(inner(body, "usage").get("completion_tokens"))
    plain = None
    if output and steps is not None and accepted is not None:
        plain = max(output - 1 - accepted - steps, 0)
    fingerprint = body.get("system_fingerprint")
    return EngineDetails(
        queue_s=seconds(metrics.get("queue_time_ms"), per_second=1000.0),
        prefill_s=seconds(metrics.get("time_to_first_token_ms"), per_second=1000.0),
        decode_s=seconds(metrics.get("generation_time_ms"), per_second=1000.0),
        drafted=whole(spec.get("num_draft_tokens")),
        accepted=accepted,
        spec_passes=steps,
        plain_passes=plain,
        passes=None if plain is None or steps is None else plain + steps,
        accepted_hist=counts(spec.get("acceptance_histogram")),
        drafted_per_position=_per_position(counts(spec.get("per_step_drafted"))),
        fingerprint=fingerprint if isinstance(fingerprint, str) else None,
    )


def _per_position(per_step: tuple[int, ...] | None) -> tuple[int, ...] | None:
    """How many passes drafted at least ``i + 1`` tokens, from drafts per pass."""
    if per_step is None:
        return None
    return tuple(
        sum(1 for drafts in per_step if drafts > i) for i in range(max(per_step))
    )


VLLM = TableAdapter(
    name="vllm",
    probe_paths=(MODELS, VERSION, SERVER_INFO, METRICS),
    metrics_path=METRICS,
    series=SERIES,
    read=read_back,
    detail=details,
    replica_labels=("engine",),
    not_exported={
        # 44448 says so itself; a grammar that fails ends its request as an error.
        "structured_failure_share": "vllm:tool_call_parser_invocations_total does not "
        "tell a failed parse from no call; failed grammars end as failed requests",
    },
)
