"""What a launch command says about a route, by tables of flags.

A command line is the only witness for what an engine cannot be asked (the draft
model and the KV-cache type of llama.cpp, for example). Names are those of vLLM 0.33,
SGLang 0.5.23 and llama-server b10434.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from routeproof.routes.fields import NONE

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

SECRET = re.compile(r"key|token|secret|password|credential", re.IGNORECASE)

_VLLM_SPECULATION = {
    "method": "speculation.method",
    "model": "speculation.draft.model",
    "revision": "speculation.draft.revision",
    "num_speculative_tokens": "speculation.draft_tokens",
    "quantization": "speculation.draft.weights",
    "tokenizer": "speculation.draft.tokenizer",
}


def arguments(command: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Flags of a command with their values; ``true`` for a switch.

    Several values after one flag are joined by a space. What comes before the first
    flag (the program, a subcommand, a positional model) gives nothing, except the
    model of ``vllm serve MODEL`` and ``trtllm-serve MODEL``.
    """
    twisted = malformed_words(command)
    words = [word for word in command if word not in twisted]
    for before, word in zip(words, words[1:], strict=False):
        if before == "serve" or before.endswith("trtllm-serve"):
            if not word.startswith("-") and word != "serve":
                yield "--model", word
    index = 0
    while index < len(words):
        word = words[index]
        index += 1
        if not _is_flag(word):
            continue
        flag, equals, value = word.partition("=")
        if flag.startswith("--"):
            # vLLM and SGLang take underscores for hyphens.
            flag = flag.replace("_", "-")
        if equals:
            yield flag, value
            continue
        if flag in SWITCHES:
            yield flag, "true"
            continue
        values: list[str] = []
        while index < len(words) and not _is_flag(words[index]):
            values.append(words[index])
            index += 1
        yield flag, " ".join(values) or "true"


def _is_flag(word: str) -> bool:
    return bool(re.match(r"^--?[A-Za-z]", word))


def malformed_words(command: Sequence[str]) -> tuple[str, ...]:
    """Arguments that hold a flag and its value in one word, separated by a space.

    No shell splits a command that is a list, so the engine sees one unknown flag and,
    where it is lenient, runs without what was asked for.

    Example:
        >>> malformed_words(["serve", "--quantization fp8", "--port=1"])
        ('--quantization fp8',)
    """
    return tuple(word for word in command if re.match(r"^--?[A-Za-z][\w-]*\s+\S", word))


def fields_of_command(command: Sequence[str]) -> dict[str, str]:
    """Route fields a launch command sets, by dotted name.

    Values are as written; an engine that was not told to speculate is
    ``speculation.method: none``.
    """
    out: dict[str, str] = {}
    for flag, value in arguments(command):
        if flag in IGNORED:
            continue
        if flag == "--speculative-config":
            out.update(_speculative_config(value))
        elif flag in TURNED:
            name, on = TURNED[flag]
            out[name] = ("false" if on == "true" else "true") if _off(value) else on
        elif flag in FLAGS:
            _set(out, FLAGS[flag], value)
        elif match := re.match(r"^--(?:speculative|spec)-(.+)$", flag):
            out[f"speculation.options.{match[1].replace('-', '_')}"] = value
        else:
            name = flag.lstrip("-").replace("-", "_")
            out[f"launch.{name}"] = "set" if SECRET.search(name) else value
    _merge_kv(out)
    _merge_topology(out)
    _proposals(out)
    if "speculation.method" not in out:
        drafts = "speculation.draft.model" in out
        out["speculation.method"] = "draft_model" if drafts else NONE
    return out


def fields_of_environment(env: Mapping[str, str]) -> dict[str, str]:
    """Environment switches of a launch as route fields; secrets only as ``set``."""
    return {
        f"{'observed' if name in OBSERVED_ENVIRONMENT else 'launch'}.env.{name}": (
            "set" if SECRET.search(name) else value
        )
        for name, value in env.items()
    }


def _off(value: str) -> bool:
    return value.lower() in ("false", "0", "no")


def _set(out: dict[str, str], name: str, value: str) -> None:
    # `--dtype bfloat16 --quantization fp8`: the quantization is the weights' format.
    if name == "weights" and name in out and value == "auto":
        return
    out[name] = value


def _speculative_config(text: str) -> dict[str, str]:
    """Fields of vLLM's ``--speculative-config`` JSON."""
    try:
        config: Any = json.loads(text)
    except ValueError:
        return {"speculation.options.config": text}
    if not isinstance(config, dict):
        return {"speculation.options.config": text}
    out = {}
    for key, value in config.items():
        name = _VLLM_SPECULATION.get(key, f"speculation.options.{key}")
        out[name] = value if isinstance(value, str) else json.dumps(value)
    out.setdefault("speculation.method", "draft_model")
    return out


def _merge_kv(out: dict[str, str]) -> None:
    """llama.cpp sets the types of keys and values apart."""
    keys, values = out.pop("kv_cache.k", None), out.pop("kv_cache.v", None)
    if keys is None and values is None:
        return
    keys, values = keys or "f16", values or "f16"
    out["kv_cache"] = keys if keys == values else f"{keys}/{values}"


def _proposals(out: dict[str, str]) -> None:
    """Drafts per pass, where no flag says so in these words.

    SGLang counts the root among the draft tokens, so one fewer is proposed.
    """
    size = out.get("speculation.options.num_draft_tokens", "")
    size = size or out.get("speculation.options.dflash_block_size", "")
    if size.isdigit() and int(size) > 1:
        out.setdefault("speculation.draft_tokens", str(int(size) - 1))
    for name, value in list(out.items()):
        # llama.cpp's n-gram methods copy runs of up to M tokens.
        if re.fullmatch(r"speculation\.options\.ngram_\w+_size_m", name):
            out.setdefault("speculation.draft_tokens", value)


def _merge_topology(out: dict[str, str]) -> None:
    parts = []
    for short in ("tp", "pp", "dp"):
        size = out.pop(f"hardware.topology.{short}", "1")
        if size != "1":
            parts.append(f"{short}{size}")
    if parts:
        out["hardware.topology"] = " ".join(parts)
