"""SGLang (0.5 and later).

``/server_info`` shows the resolved configuration of a running server, thresholds of
lossy acceptance included. Environment switches are not shown unless the server was
told to.
"""

from collections.abc import Mapping
from typing import Any

from routeproof.engines.adapter import TableAdapter
from routeproof.engines.series import Series
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

MODELS, SERVER_INFO, OLD_INFO = "/v1/models", "/server_info", "/get_server_info"
MODEL_INFO = "/model_info"
GIB = float(1 << 30)

SERIES = (
    # Every tensor-parallel rank may report the same gauge: take one, sum replicas.
    Series("running", ("sglang:num_running_reqs",), within="max"),
    Series("waiting", ("sglang:num_queue_reqs",), within="max"),
    Series("kv_used_share", ("sglang:token_usage",), within="max", across="max"),
    Series("kv_capacity_tokens", ("sglang:max_total_num_tokens",), within="max"),
    Series("kv_used_tokens", ("sglang:num_used_tokens",), within="max"),
    Series(
        "preemptions_total",
        ("sglang:num_retracted_requests_total", "sglang:num_retracted_reqs"),
        within="max",
    ),
    Series("prompt_tokens_total", ("sglang:prompt_tokens_total",)),
    Series("output_tokens_total", ("sglang:generation_tokens_total",)),
    Series("requests_total", ("sglang:num_requests_total",)),
    Series("errors_total", ("sglang:num_aborted_requests_total",)),
    Series("structured_requests_total", ("sglang:num_so_requests_total",)),
    Series("grammar_aborted_total", ("sglang:num_grammar_aborted_total",)),
    Series("grammar_timeout_total", ("sglang:num_grammar_timeout_total",)),
    Series("cached_tokens_total", ("sglang:cached_tokens_total",)),
    Series("spec_passes_total", ("sglang:spec_verify_calls_total",)),
    Series(
        "decode_tokens_total",
        ("sglang:realtime_tokens_total",),
        where=(("mode", "decode"),),
        within="max",
    ),
    Series(
        "acceptance_length_gauge",
        ("sglang:spec_accept_length",),
        within="max",
        across="max",
    ),
    Series("draft_tokens_gauge", ("sglang:spec_num_draft_tokens",), within="max"),
    Series(
        "weights_memory_bytes",
        ("sglang:weight_memory_usage_gb",),
        scale=GIB,
    ),
    Series("kv_memory_bytes", ("sglang:kv_cache_memory_usage_gb",), scale=GIB),
    Series("process_start_s", ("process_start_time_seconds",), across="max"),
)
"""There is no counter of drafted or accepted tokens. At rest, decoded tokens are one
per verify pass and one per accepted draft, so ``decode_tokens_total -
spec_passes_total`` are the accepted ones. The acceptance gauges cover the last 40
decode steps only and keep their value when idle."""

KNOWN_SPECULATION = frozenset(
    {
        "sglang:spec_accept_rate",
        "sglang:spec_cap_length",
        "sglang:spec_block_accept_length",
        "sglang:spec_num_steps",
    }
)

SPECULATION_OPTIONS = (
    "num_steps",
    "eagle_topk",
    "accept_threshold_single",
    "accept_threshold_acc",
    "use_rejection_sampling",
    "use_block_verification",
    "token_map",
    "adaptive",
    "draft_window_size",
    "attention_mode",
    "draft_attention_backend",
)

DETAIL_KEYS = {
    "passes": ("spec_verify_ct",),
    "accepted": (
        "spec_num_correct_drafts",
        "spec_accepted_drafts",
        "spec_accept_token_num",
    ),
    "drafted": (
        "spec_num_proposed_drafts",
        "spec_proposed_drafts",
        "spec_draft_token_num",
    ),
    "hist": ("spec_correct_drafts_histogram", "spec_accept_histogram"),
}
"""Newest first: 0.5.12 and later, 0.5.11, 0.5.10.post1 and earlier."""


def read_back(answers: Mapping[str, str]) -> ReadBack:
    """The resolved server arguments as route fields."""
    info = mapping(answers.get(SERVER_INFO)) or mapping(answers.get(OLD_INFO))
    model = first_model(answers.get(MODELS))
    fields = {"engine.name": "sglang"}
    put(fields, "engine.version", info.get("version"))
    put(fields, "model.served", model.get("id"))
    loaded = info.get("model_path") or mapping(answers.get(MODEL_INFO)).get(
        "model_path"
    )
    put(fields, "model", loaded)
    put(fields, "context_limit_tokens", info.get("context_length"))
    put(fields, "context_limit_tokens", model.get("max_model_len"))
    if "dtype" in info:
        _from_arguments(fields, info)
    if "speculative_algorithm" in info:
        _from_speculation(fields, info)
    return ReadBack(
        engine="sglang",
        fields=fields,
        cannot_tell=tuple(name for name in READABLE if name not in fields),
        models=model_ids(answers.get(MODELS)),
        raw=dict(answers),
    )


def _from_arguments(fields: dict[str, str], info: Mapping[str, Any]) -> None:
    put(fields, "revision", info.get("revision"))
    put(fields, "tokenizer.name", info.get("tokenizer_path"))
    put(fields, "tokenizer.chat_template", info.get("chat_template"))
    put(fields, "weights", info.get("quantization") or info.get("dtype"))
    kv = text_of(info.get("kv_cache_dtype"))
    put(fields, "kv_cache", info.get("dtype") if kv == "auto" else kv)
    put(fields, "attention_backend", _backends(info))
    put(fields, "hardware.device", info.get("device"))
    fields["hardware.topology"] = _topology(info)
    put(fields, "observed.kv_capacity_tokens", info.get("max_total_num_tokens"))
    radix_off = info.get("disable_radix_cache")
    put(fields, "prefix_cache", None if radix_off is None else not radix_off)
    put(fields, "observed.max_running_requests", info.get("max_running_requests"))
    put(fields, "observed.chunked_prefill_tokens", info.get("chunked_prefill_size"))
    put(fields, "observed.grammar_backend", info.get("grammar_backend"))
    put(fields, "observed.weight_version", info.get("weight_version"))
    put(fields, "observed.deterministic", info.get("enable_deterministic_inference"))


def _backends(info: Mapping[str, Any]) -> str | None:
    """One name, or ``prefill+decode`` where the two differ."""
    common = text_of(info.get("attention_backend"))
    prefill = text_of(info.get("prefill_attention_backend")) or common
    decode = text_of(info.get("decode_attention_backend")) or common
    return prefill if prefill == decode else f"{prefill}+{decode}"


def _topology(info: Mapping[str, Any]) -> str:
    parts = [
        f"{short}{size}"
        for short in ("tp", "pp", "dp")
        if isinstance(size := info.get(f"{short}_size"), int) and size > 1
    ]
    return " ".join(parts) or "single"


def _from_speculation(fields: dict[str, str], info: Mapping[str, Any]) -> None:
    method = text_of(info.get("speculative_algorithm"))
    if method is None:
        fields["speculation.method"] = "none"
        return
    fields["speculation.method"] = method
    draft = "speculation.draft"
    put(fields, f"{draft}.model", info.get("speculative_draft_model_path"))
    if f"{draft}.model" in fields:
        put(fields, f"{draft}.revision", info.get("speculative_draft_model_revision"))
        put(
            fields, f"{draft}.weights", info.get("speculative_draft_model_quantization")
        )
    size = whole(info.get("speculative_num_draft_tokens"))
    if size:
        # The root of the tree is counted among the draft tokens.
        fields["speculation.draft_tokens"] = str(size - 1)
    for name in SPECULATION_OPTIONS:
        value = info.get(f"speculative_{name}")
        if value is not False:
            # A switch that is off is the engine's default and says nothing.
            put(fields, f"speculation.options.{name}", value)


def details(body: Mapping[str, Any]) -> EngineDetails:
    """Counts from ``sglext`` (streams), ``meta_info`` (plain answers, ``/generate``).

    Every decode pass of a speculating server verifies, also when nothing was drafted.
    Proposed drafts are passes times the configured length, whatever was really
    proposed; tokens accepted past the end of the answer still count.
    """
    choices = body.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else {}
    meta = inner(choice, "meta_info") or inner(body, "meta_info")
    spec = inner(body, "sglext", "spec_tokens_details") or meta
    passes = whole(_first(spec, DETAIL_KEYS["passes"]))
    speculated = passes is not None
    return EngineDetails(
        queue_s=seconds(meta.get("queue_time")),
        prefill_s=seconds(meta.get("first_token_latency")),
        drafted=whole(_first(spec, DETAIL_KEYS["drafted"])),
        accepted=whole(_first(spec, DETAIL_KEYS["accepted"])),
        spec_passes=passes,
        plain_passes=0 if speculated else None,
        passes=passes,
        accepted_hist=counts(_first(spec, DETAIL_KEYS["hist"])),
    )


def _first(values: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    return next((values[name] for name in names if name in values), None)


SGLANG = TableAdapter(
    name="sglang",
    probe_paths=(MODELS, SERVER_INFO, OLD_INFO, MODEL_INFO),
    metrics_path="/metrics",
    series=SERIES,
    read=read_back,
    detail=details,
    replica_labels=("dp_rank",),
    extra_fields={"return_spec_tokens_details": True},
    known_names=KNOWN_SPECULATION,
    not_exported={
        "rejection_rate": "nothing counts drafted tokens; sglang:spec_accept_rate is a "
        "gauge that goes stale",
        "structured_failure_share": "sglang:num_grammar_aborted_total and "
        "num_grammar_timeout_total appear with the first failure",
    },
)
