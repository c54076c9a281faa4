"""TensorRT-LLM's ``trtllm-serve`` (1.x).

``/metrics`` and ``/perf_metrics`` are queues that empty when they are read, so they
are never read here: another tool may live on them. The Prometheus page is at
``/prometheus/metrics`` and needs ``return_perf_metrics``.
"""

from collections.abc import Mapping
from typing import Any

from routeproof.engines.adapter import TableAdapter
from routeproof.engines.series import Series, info_labels
from routeproof.engines.values import (
    first_model,
    inner,
    mapping,
    model_ids,
    put,
    seconds,
    whole,
)
from routeproof.records.record import EngineDetails
from routeproof.routes.fields import READABLE
from routeproof.routes.read_back import ReadBack

MODELS, VERSION, METRICS = "/v1/models", "/version", "/prometheus/metrics"

SERIES = (
    Series("running", ("trtllm_num_requests_running", "num_requests_running")),
    Series("waiting", ("trtllm_num_requests_waiting", "num_requests_waiting")),
    Series(
        "kv_used_share",
        ("trtllm_kv_cache_utilization", "kv_cache_utilization"),
        across="max",
    ),
    Series("kv_max_blocks", ("trtllm_kv_cache_max_blocks",)),
    Series("kv_tokens_per_block", ("trtllm_kv_cache_tokens_per_block",), across="max"),
    Series("prompt_tokens_total", ("trtllm_prompt_tokens_total",)),
    Series("output_tokens_total", ("trtllm_generation_tokens_total",)),
    Series("requests_total", ("trtllm_request_success_total", "request_success_total")),
    Series("errors_total", ("trtllm_request_error_total", "request_error_total")),
    Series("cached_tokens_total", ("trtllm_prompt_cached_tokens_total",)),
    Series("drafted_total", ("trtllm_spec_decode_num_draft_tokens_total",)),
    Series("accepted_total", ("trtllm_spec_decode_num_accepted_tokens_total",)),
    Series(
        "drafted_at_position_total",
        ("trtllm_spec_decode_drafted_tokens_total",),
        position_label="token_position",
    ),
    Series(
        "accepted_at_position_total",
        ("trtllm_spec_decode_accepted_tokens_total",),
        position_label="token_position",
    ),
    Series(
        "acceptance_length_gauge",
        ("trtllm_spec_decode_acceptance_length",),
        across="max",
    ),
    Series(
        "draft_overhead_gauge", ("trtllm_spec_decode_draft_overhead",), across="max"
    ),
    Series("memory_bytes", ("trtllm_gpu_memory_usage_bytes",)),
    Series("process_start_s", ("process_start_time_seconds",), across="max"),
)
"""Builds before 1.2 wrote the names without a prefix."""

CONFIG_INFO = {
    "trtllm_model_config_info": {
        "model": "model",
        "dtype": "observed.dtype",
        "quantization": "weights",
        "max_model_len": "context_limit_tokens",
        "gpu_type": "hardware.device",
    },
    "trtllm_kv_cache_config_info": {
        "cache_dtype": "kv_cache",
        "enable_block_reuse": "prefix_cache",
    },
    "trtllm_cache_config_info": {
        "cache_dtype": "kv_cache",
        "enable_block_reuse": "prefix_cache",
    },
    "trtllm_speculative_config_info": {
        "spec_method": "speculation.method",
        "spec_num_tokens": "speculation.draft_tokens",
        "spec_draft_model": "speculation.draft.model",
    },
}
"""Labels of the configuration series and the route fields they are."""

_NOTHING = frozenset({"", "undefined", "none", "None", "null", "auto"})


def read_back(answers: Mapping[str, str]) -> ReadBack:
    """Version, model, and the labels of the configuration series."""
    fields = {"engine.name": "tensorrt-llm"}
    put(fields, "engine.version", mapping(answers.get(VERSION)).get("version"))
    model = first_model(answers.get(MODELS))
    put(fields, "model.served", model.get("id"))
    page = answers.get(METRICS, "")
    for series, names in CONFIG_INFO.items():
        labels = info_labels(page, series)
        for label, name in names.items():
            if labels.get(label, "") not in _NOTHING:
                fields.setdefault(name, labels[label])
    dtype = fields.pop("observed.dtype", None)
    if "weights" not in fields and dtype is not None:
        fields["weights"] = dtype
    spec = info_labels(page, "trtllm_speculative_config_info")
    if spec.get("spec_enabled", "").lower() == "false":
        fields["speculation.method"] = "none"
    topology = _topology(info_labels(page, "trtllm_parallel_config_info"))
    if topology:
        fields["hardware.topology"] = topology
    return ReadBack(
        engine="tensorrt-llm",
        fields=fields,
        cannot_tell=tuple(name for name in READABLE if name not in fields),
        models=model_ids(answers.get(MODELS)),
        raw=dict(answers),
    )


def _topology(labels: Mapping[str, str]) -> str | None:
    if not labels:
        return None
    parts = [
        f"{short}{size}"
        for short, size in (
            ("tp", labels.get("tensor_parallel_size", "1")),
            ("pp", labels.get("pipeline_parallel_size", "1")),
            ("ep", labels.get("expert_parallel_size", "1")),
        )
        if size.isdigit() and int(size) > 1
    ]
    return " ".join(parts) or "single"


def details(body: Mapping[str, Any]) -> EngineDetails:
    """Counts from a performance record, or passes from the choice field.

    Takes one entry of ``/perf_metrics``, the record of the ``trtllm.perf_metrics``
    event, or a response. ``avg_decoded_tokens_per_iter`` is output tokens after the
    first per pass, so it gives all passes together, rounded.
    """
    record = _record(body)
    timing = inner(record, "timing_metrics")
    spec = inner(record, "speculative_decoding")
    accepted = whole(spec.get("total_accepted_draft_tokens"))
    return EngineDetails(
        queue_s=_between(timing, "arrival_time", "first_scheduled_time"),
        prefill_s=_between(timing, "first_scheduled_time", "first_token_time"),
        decode_s=_between(timing, "first_token_time", "last_token_time"),
        drafted=whole(spec.get("total_draft_tokens")),
        accepted=accepted,
        passes=_passes(body),
    )


def _record(body: Mapping[str, Any]) -> Mapping[str, Any]:
    for place in (("perf_metrics",), ("phases", "server"), ("phases", "gen")):
        found = inner(body, *place)
        if found:
            return found
    return body


def _between(timing: Mapping[str, Any], start: str, end: str) -> float | None:
    first, last = seconds(timing.get(start)), seconds(timing.get(end))
    if first is None or last is None or last < first:
        return None
    return last - first


def _passes(body: Mapping[str, Any]) -> int | None:
    choices = body.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    rate = seconds(inner(choice).get("avg_decoded_tokens_per_iter"))
    output = whole(inner(body, "usage").get("completion_tokens"))
    if not rate or not output:
        return None
    return round((output - 1) / rate)


TENSORRT_LLM = TableAdapter(
    name="tensorrt-llm",
    probe_paths=(MODELS, VERSION, METRICS),
    metrics_path=METRICS,
    series=SERIES,
    read=read_back,
    detail=details,
    known_names=frozenset(CONFIG_INFO),
    not_exported={
        "structured_failure_share": "trtllm_request_error_total tells the HTTP status "
        "and not the reason",
    },
)
