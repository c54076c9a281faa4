"""Option files that a launch command names, and everything a launch says together.

TensorRT-LLM keeps speculation, KV cache and quantization in YAML, and vLLM and SGLang
can take all their flags from a file; a command alone would then look like a plain
route.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from routeproof.errors import ConfigError
from routeproof.proof.route import LaunchSpec
from routeproof.proof.yaml_text import parse, read_text
from routeproof.routes.fields import NONE
from routeproof.routes.launch_flags import (
    arguments,
    fields_of_command,
    fields_of_environment,
)

OPTION_FILES = frozenset({"--extra-llm-api-options", "--config", "--config-file"})

METHOD = "speculation.method"

TENSORRT: Mapping[str, str] = {
    "speculative_config.decoding_type": METHOD,
    "speculative_config.max_draft_len": "speculation.draft_tokens",
    "speculative_config.num_nextn_predict_layers": "speculation.draft_tokens",
    "speculative_config.speculative_model": "speculation.draft.model",
    "speculative_config.speculative_model_dir": "speculation.draft.model",
    "kv_cache_config.dtype": "kv_cache",
    "kv_cache_config.enable_block_reuse": "prefix_cache",
    "quant_config.quant_algo": "weights",
    "attn_backend": "attention_backend",
    "max_seq_len": "context_limit_tokens",
    "max_batch_size": "scheduler.max_running_requests",
    "max_num_tokens": "scheduler.batched_tokens",
    "enable_chunked_prefill": "scheduler.chunked_prefill",
}
"""Keys of TensorRT-LLM's option file, and the route fields they are."""


def launched_fields(launch: LaunchSpec | None) -> dict[str, str]:
    """Route fields that a launch sets: command, option files, environment.

    A command that names an option file which cannot be read says nothing about
    speculation, rather than that there is none.
    """
    if launch is None:
        return {}
    found = fields_of_command(launch.command)
    for name, path in _named(launch):
        found.pop(f"launch.{name}", None)
        values = _read(path)
        if values is None:
            if found.get(METHOD) == NONE:
                del found[METHOD]
            found[f"launch.{name}"] = path.name
            continue
        _merge(found, _fields(launch, values))
    found.update(fields_of_environment(launch.env))
    return found


def _named(launch: LaunchSpec) -> list[tuple[str, Path]]:
    folder = Path(launch.cwd) if launch.cwd else Path()
    return [
        (flag.lstrip("-").replace("-", "_"), folder / value)
        for flag, value in arguments(launch.command)
        if flag in OPTION_FILES
    ]


def _read(path: Path) -> dict[str, Any] | None:
    try:
        text = read_text(path)
        return parse(text, path).values if text.strip() else {}
    except ConfigError:
        return None


def _merge(found: dict[str, str], more: Mapping[str, str]) -> None:
    """The command line wins over the file, except where it only says nothing."""
    for name, value in more.items():
        if name not in found or (name == METHOD and found[name] == NONE):
            found[name] = value


def _fields(launch: LaunchSpec, values: Mapping[str, Any]) -> dict[str, str]:
    if any("trtllm" in word for word in launch.command[:3]):
        return _tensorrt(values)
    words = ["file"]
    for key, value in values.items():
        flag = f"--{str(key).replace('_', '-')}"
        if value is True:
            words.append(flag)
        elif isinstance(value, (dict, list)):
            words.append(f"{flag}={json.dumps(value)}")
        elif value is not None and value is not False:
            words.append(f"{flag}={value}")
    return fields_of_command(words)


def _tensorrt(values: Mapping[str, Any]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, value in _leaves(values, ""):
        if name in TENSORRT:
            found[TENSORRT[name]] = value
        elif name.startswith("speculative_config."):
            key = name.removeprefix("speculative_config.")
            found[f"speculation.options.{key}"] = value
        else:
            found[f"launch.{name}"] = value
    found.setdefault(METHOD, NONE)
    return found


def _leaves(value: Any, name: str) -> list[tuple[str, str]]:
    if isinstance(value, Mapping):
        return [
            leaf
            for key, inner in value.items()
            for leaf in _leaves(inner, f"{name}.{key}".removeprefix("."))
        ]
    if isinstance(value, bool):
        return [(name, "true" if value else "false")]
    return [] if value is None else [(name, str(value))]
