"""A route that is not what it says, or not what the other one is."""

from routeproof.simulator.faults.fault import Apply, Fault, setting, whole


def _row(
    name: str,
    reference: str,
    what: str,
    gate: str,
    checks: tuple[str, ...],
    apply: Apply,
) -> Fault:
    return Fault(
        name, "identity", reference, what, "none", 1.0, 1.0, 1.0, gate, checks, apply
    )


IDENTITY: tuple[Fault, ...] = (
    _row(
        "other_model",
        "recordings: unknown model names give 200",
        "another model is served than was written down",
        "parity",
        ("model", "parity", "contradict", "tokenizer", "undeclared"),
        setting("report", declared_model="simulated/other"),
    ),
    _row(
        "kv_cache_quantized_unasked",
        "vllm #41343; sglang server_info",
        "the KV cache is quantized and nobody declared it",
        "parity",
        ("kv_cache", "parity", "undeclared"),
        setting("report", declared_kv_cache="fp8_e5m2"),
    ),
    _row(
        "engine_upgraded_unasked",
        "vllm #50435; vllm-ascend #9871",
        "another engine version than was written down",
        "parity",
        ("engine", "version", "parity", "undeclared"),
        setting("report", declared_version="0.33.1"),
    ),
    _row(
        "lossy_switch",
        "vLLM rejection_sample_method; SGLang thresholds",
        "a switch that makes speculation lossy or fake is on",
        "inventory",
        ("synthetic", "lossless", "mode", "speculation"),
        setting("report", lossy_switch=True),
    ),
    _row(
        "fingerprint_changes",
        "recordings: five routes, five fingerprints",
        "the route changes in the middle of the run",
        "parity",
        ("fingerprint", "changed"),
        setting("report", fingerprint_changes_after=lambda s: 100),
    ),
    Fault(
        "prompt_longer_by_tokens",
        "identity",
        "vLLM #15695: double BOS",
        "the same prompts have more tokens than on the baseline",
        "tokens",
        1.0,
        1.0,
        20.0,
        "parity",
        ("prompt", "template", "tokens"),
        setting("report", extra_bos_tokens=whole),
    ),
)
