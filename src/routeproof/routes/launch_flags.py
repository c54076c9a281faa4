"""What a launch command says about a route, by tables of flags.

A command line is the only witness for what an engine cannot be asked: the draft model
and the KV-cache type of llama.cpp, for example.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from routeproof.routes.fields import NONE
from routeproof.routes.flag_tables import (
    FLAGS,
    IGNORED,
    OBSERVED_ENVIRONMENT,
    SWITCHES,
    TURNED,
    VLLM_SPECULATION,
)

SECRET = re.compile(r"key|token|secret|password|credential", re.IGNORECASE)


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
        name = VLLM_SPECULATION.get(key, f"speculation.options.{key}")
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
