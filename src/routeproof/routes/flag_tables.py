"""Flags of launch commands, as tables.

Names are those of vLLM 0.33, SGLang 0.5.23 and llama-server b10434; older spellings
stand beside them.
"""

FLAGS: dict[str, str] = {
    # llama.cpp
    "-m": "model",
    "--model": "model",
    "-md": "speculation.draft.model",
    "--model-draft": "speculation.draft.model",
    "--spec-draft-model": "speculation.draft.model",
    "--spec-type": "speculation.method",
    "--draft-max": "speculation.draft_tokens",
    "--draft": "speculation.draft_tokens",
    "--draft-n": "speculation.draft_tokens",
    "--spec-draft-n-max": "speculation.draft_tokens",
    "-ctk": "kv_cache.k",
    "--cache-type-k": "kv_cache.k",
    "-ctv": "kv_cache.v",
    "--cache-type-v": "kv_cache.v",
    "-fa": "attention_backend",
    "--flash-attn": "attention_backend",
    "-c": "observed.context_all_slots",
    "--ctx-size": "observed.context_all_slots",
    "--device": "hardware.device",
    "-dev": "hardware.device",
    "--chat-template": "tokenizer.chat_template",
    "--chat-template-file": "tokenizer.chat_template",
    # vLLM and SGLang
    "--model-path": "model",
    "--revision": "revision",
    "--tokenizer": "tokenizer.name",
    "--tokenizer-path": "tokenizer.name",
    "--tokenizer-revision": "tokenizer.revision",
    "--dtype": "weights",
    "--quantization": "weights",
    "-q": "weights",
    "--kv-cache-dtype": "kv_cache",
    "--max-model-len": "context_limit_tokens",
    "--context-length": "context_limit_tokens",
    "--attention-backend": "attention_backend",
    "--tensor-parallel-size": "hardware.topology.tp",
    "-tp": "hardware.topology.tp",
    "--tp": "hardware.topology.tp",
    "--tp-size": "hardware.topology.tp",
    "--pipeline-parallel-size": "hardware.topology.pp",
    "-pp": "hardware.topology.pp",
    "--pp-size": "hardware.topology.pp",
    "--data-parallel-size": "hardware.topology.dp",
    "-dp": "hardware.topology.dp",
    "--dp": "hardware.topology.dp",
    "--dp-size": "hardware.topology.dp",
    "--max-num-seqs": "scheduler.max_running_requests",
    "--max-running-requests": "scheduler.max_running_requests",
    "-np": "scheduler.max_running_requests",
    "--parallel": "scheduler.max_running_requests",
    "--max-num-batched-tokens": "scheduler.batched_tokens",
    "--chunked-prefill-size": "scheduler.batched_tokens",
    "--speculative-algorithm": "speculation.method",
    "--speculative-draft-model-path": "speculation.draft.model",
    "--speculative-draft-model": "speculation.draft.model",
    "--speculative-draft-model-revision": "speculation.draft.revision",
    "--speculative-draft-model-quantization": "speculation.draft.weights",
    "--speculative-num-draft-tokens": "speculation.options.num_draft_tokens",
    "--speculative-num-steps": "speculation.options.num_steps",
    "--speculative-eagle-topk": "speculation.options.eagle_topk",
}
"""Flag to route field. Flags that start with ``--speculative-`` or ``--spec-`` and
are not here become ``speculation.options.<name>``; others ``launch.<name>``."""

TURNED: dict[str, tuple[str, str]] = {
    "--enable-prefix-caching": ("prefix_cache", "true"),
    "--no-enable-prefix-caching": ("prefix_cache", "false"),
    "--disable-radix-cache": ("prefix_cache", "false"),
    "--cache-prompt": ("prefix_cache", "true"),
    "--no-cache-prompt": ("prefix_cache", "false"),
    "--enable-chunked-prefill": ("scheduler.chunked_prefill", "true"),
    "--no-enable-chunked-prefill": ("scheduler.chunked_prefill", "false"),
}
"""Switches that set a field to one of two values."""

IGNORED = frozenset(
    """--port -p --host --api-key --alias -a --served-model-name --log-file --log-level
    --log-disable --log-colors --log-prefix --log-timestamps --metrics --props --slots
    --no-webui --no-ui --enable-metrics --uds --ssl-keyfile --ssl-certfile --no-slots
    --enable-per-request-metrics --per-request-spec-decode-metrics --verbose -v
    --enable-force-include-usage --enable-prompt-tokens-details --enable-cache-report
    --disable-log-requests --disable-log-stats --uvicorn-log-level -lv --verbosity
    --api-key-file --ssl-key-file --ssl-cert-file --slot-save-path --offline
    """.split()
)
"""Flags that change how a server is reached or watched, never what it answers."""

SWITCHES = frozenset(
    """--enforce-eager --jinja --no-jinja --trust-remote-code --disable-radix-cache
    --enable-prefix-caching --no-enable-prefix-caching --enable-chunked-prefill
    --no-enable-chunked-prefill --disable-cuda-graph --enable-deterministic-inference
    --disable-overlap-schedule --skip-server-warmup --enable-auto-tool-choice --mlock
    --no-mmap --cont-batching -cb --no-cont-batching -nocb --swa-full --no-warmup
    --no-kv-offload -nkvo --metrics --props --slots --no-webui --no-ui --no-slots
    --enable-metrics --enable-per-request-metrics --enable-force-include-usage
    --enable-prompt-tokens-details --enable-cache-report --log-disable --verbose -v
    --disable-log-requests --disable-log-stats --kv-unified -kvu --no-kv-unified
    --context-shift --no-context-shift --cache-prompt --no-cache-prompt --offline
    """.split()
)
"""Flags known to take no value; of others it is guessed from what follows."""

OBSERVED_ENVIRONMENT = frozenset(
    """CUDA_VISIBLE_DEVICES HIP_VISIBLE_DEVICES HF_HOME HF_TOKEN HF_HUB_OFFLINE
    HF_HUB_CACHE TRANSFORMERS_OFFLINE LD_LIBRARY_PATH PATH HOME TMPDIR
    VLLM_SERVER_DEV_MODE VLLM_NO_USAGE_STATS VLLM_LOGGING_LEVEL DO_NOT_TRACK
    """.split()
)
"""Variables that say where things are or what is shown: noted, not compared."""

VLLM_SPECULATION = {
    "method": "speculation.method",
    "model": "speculation.draft.model",
    "revision": "speculation.draft.revision",
    "num_speculative_tokens": "speculation.draft_tokens",
    "quantization": "speculation.draft.weights",
    "tokenizer": "speculation.draft.tokenizer",
}
"""Keys of vLLM's speculative configuration; others become options."""
