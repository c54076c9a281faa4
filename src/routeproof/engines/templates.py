"""Launch commands: made from a route, and changed to another draft length."""

import json
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from routeproof.errors import ConfigError
from routeproof.proof.route import LaunchSpec, RouteSpec, SpeculationSpec
from routeproof.routes.fields import NONE, canonical

Words = list[str]

LLAMA_METHODS = {
    "draft_model": "draft-simple",
    "eagle3": "draft-eagle3",
    "dflash": "draft-dflash",
    "dspark": "draft-dspark",
    "mtp": "draft-mtp",
    "ngram": "ngram-simple",
}
CONFIG_FLAGS = ("--speculative-config", "--speculative_config")
"""Both spellings in which vLLM takes its speculative configuration."""

SGLANG_METHODS = {"draft_model": "STANDALONE", "mtp": "NEXTN"}


def launch_for(spec: RouteSpec) -> LaunchSpec:
    """A launch command for a route; a starting point to edit, not a tuned server.

    Ports are left as ``{port}``.

    Raises:
        ConfigError: The route names no model, or an engine without a template.
    """
    name = canonical("engine.name", spec.engine.name) if spec.engine else ""
    template = TEMPLATES.get(name)
    if template is None:
        raise ConfigError(
            f"there is no launch template for the engine `{name or 'not named'}`",
            key="engine.name",
            hint=f"known: {', '.join(sorted(TEMPLATES))}; or write `launch.command`",
        )
    if spec.model is None:
        raise ConfigError("the route names no model", key="model")
    return LaunchSpec(command=tuple(template(spec)))


def _speculates(spec: RouteSpec) -> SpeculationSpec | None:
    speculation = spec.speculation
    if (
        speculation is None
        or canonical("speculation.method", speculation.method) == NONE
    ):
        return None
    return speculation


def _optional(words: Words, flag: str, value: object) -> None:
    if value is not None:
        words += [flag, str(value)]


def _vllm(spec: RouteSpec) -> Words:
    words = ["vllm", "serve", str(spec.model), "--port", "{port}"]
    _optional(words, "--revision", spec.revision)
    _optional(words, "--kv-cache-dtype", _unless_default(spec.kv_cache))
    _optional(words, "--max-model-len", spec.context_limit_tokens)
    _optional(words, "--attention-backend", spec.attention_backend)
    speculation = _speculates(spec)
    if speculation is not None:
        config: dict[str, Any] = {
            "method": canonical("speculation.method", speculation.method)
        }
        if speculation.draft is not None:
            config["model"] = speculation.draft.model
            if speculation.draft.revision:
                config["revision"] = speculation.draft.revision
        if speculation.draft_tokens is not None:
            config["num_speculative_tokens"] = speculation.draft_tokens
        config.update(speculation.options)
        words += ["--speculative-config", json.dumps(config)]
        words += ["--per-request-spec-decode-metrics", "summary"]
    return [*words, "--enable-per-request-metrics"]


def _sglang(spec: RouteSpec) -> Words:
    words = ["python", "-m", "sglang.launch_server", "--model-path", str(spec.model)]
    words += ["--port", "{port}", "--enable-metrics"]
    _optional(words, "--revision", spec.revision)
    _optional(words, "--kv-cache-dtype", _unless_default(spec.kv_cache))
    _optional(words, "--context-length", spec.context_limit_tokens)
    _optional(words, "--attention-backend", spec.attention_backend)
    speculation = _speculates(spec)
    if speculation is None:
        return words
    method = canonical("speculation.method", speculation.method)
    words += ["--speculative-algorithm", SGLANG_METHODS.get(method, method.upper())]
    if speculation.draft is not None:
        words += ["--speculative-draft-model-path", speculation.draft.model]
        _optional(
            words, "--speculative-draft-model-revision", speculation.draft.revision
        )
    for name, value in speculation.options.items():
        words += [f"--speculative-{name.replace('_', '-')}", str(value)]
    if speculation.draft_tokens is not None:
        words += _sglang_length(method, speculation.draft_tokens)
    return words


def _sglang_length(method: str, draft_tokens: int) -> Words:
    """The root of the tree is one of SGLang's draft tokens."""
    size = ["--speculative-num-draft-tokens", str(draft_tokens + 1)]
    if method in ("ngram", "dflash", "dspark"):
        return size
    steps = ["--speculative-num-steps", str(draft_tokens)]
    return [*steps, "--speculative-eagle-topk", "1", *size]


def _llama(spec: RouteSpec) -> Words:
    words = ["llama-server", "-m", str(spec.model), "--port", "{port}"]
    words += ["--metrics", "--props", "--slots"]
    if spec.kv_cache is not None:
        kind = {"fp16": "f16", "fp32": "f32"}.get(spec.kv_cache, spec.kv_cache)
        words += ["-ctk", kind, "-ctv", kind]
    _optional(words, "-c", spec.context_limit_tokens)
    speculation = _speculates(spec)
    if speculation is None:
        return words
    method = canonical("speculation.method", speculation.method)
    words += ["--spec-type", LLAMA_METHODS.get(method, method)]
    if speculation.draft is not None:
        words += ["-md", speculation.draft.model]
    for name, value in speculation.options.items():
        words += [f"--spec-{name.replace('_', '-')}", str(value)]
    if speculation.draft_tokens is not None:
        words += _llama_length(words, speculation.draft_tokens)
    return words


def _llama_length(words: Words, draft_tokens: int) -> Words:
    kind = words[words.index("--spec-type") + 1] if "--spec-type" in words else ""
    if kind.startswith("ngram-simple"):
        return ["--spec-ngram-simple-size-m", str(draft_tokens)]
    return ["--spec-draft-n-max", str(draft_tokens)]


def _trtllm(spec: RouteSpec) -> Words:
    words = ["trtllm-serve", str(spec.model), "--port", "{port}"]
    # Speculation, KV type and metrics are YAML there, see docs/engines.md.
    return [*words, "--extra_llm_api_options", "{options}"]


def _unless_default(kind: str | None) -> str | None:
    """Engines take ``auto`` for the model's own type."""
    return (
        None
        if kind is None or canonical("kv_cache", kind) in ("bf16", "fp16")
        else kind
    )


TEMPLATES: Mapping[str, Callable[[RouteSpec], Words]] = {
    "vllm": _vllm,
    "sglang": _sglang,
    "llama.cpp": _llama,
    "tensorrt-llm": _trtllm,
}


def with_draft_tokens(launch: LaunchSpec, engine: str, draft_tokens: int) -> LaunchSpec:
    """The same launch command with another draft length.

    Args:
        launch: A command that speculates already.
        engine: Name of the engine.
        draft_tokens: Drafts per pass, at least 1, without SGLang's root.

    Raises:
        ConfigError: The command does not speculate, or keeps its draft length in a
            file.
    """
    words = list(launch.command)
    name = canonical("engine.name", engine)
    if name == "vllm":
        change_config(words, {"num_speculative_tokens": draft_tokens})
    elif name == "sglang":
        method = _value_of(words, "--speculative-algorithm")
        for flag, value in _pairs(
            _sglang_length(canonical("speculation.method", method), draft_tokens)
        ):
            set_flag(words, flag, value)
    elif name == "llama.cpp":
        if "--spec-type" not in words and not {"-md", "--spec-draft-model"} & set(
            words
        ):
            raise _not_speculative()
        flag, value = _llama_length(words, draft_tokens)
        set_flag(words, flag, value)
    else:
        raise ConfigError(
            f"the draft length of {name} is not in its launch command",
            key="launch.command",
            hint="give each draft length an endpoint of its own",
        )
    return msgspec.structs.replace(launch, command=tuple(words))


def _not_speculative() -> ConfigError:
    return ConfigError(
        "the launch command does not speculate",
        key="launch.command",
        hint="add the engine's flags for speculation, see docs/engines.md",
    )


def _pairs(words: Words) -> list[tuple[str, str]]:
    return list(zip(words[::2], words[1::2], strict=True))


def _value_of(words: Words, flag: str) -> str:
    for index, word in enumerate(words):
        name, equals, value = word.partition("=")
        if name == flag:
            return value if equals else "".join(words[index + 1 : index + 2])
    raise _not_speculative()


def set_flag(words: Words, flag: str, value: str) -> None:
    """Give a flag another value, in place; one that is not there is added."""
    for index, word in enumerate(words):
        name, equals, _ = word.partition("=")
        if name == flag:
            if equals:
                words[index] = f"{flag}={value}"
            else:
                words[index + 1 : index + 2] = [value]
            return
    words += [flag, value]


def change_config(words: Words, changes: Mapping[str, Any]) -> None:
    """Change entries of vLLM's speculative configuration, in place.

    Raises:
        ConfigError: The command has none, or one that is not JSON.
    """
    for flag in CONFIG_FLAGS:
        try:
            text = _value_of(words, flag)
        except ConfigError:
            continue
        try:
            config = json.loads(text)
        except ValueError:
            raise ConfigError(
                f"the value of {flag} is not JSON", key="launch.command"
            ) from None
        set_flag(words, flag, json.dumps({**config, **changes}))
        return
    raise _not_speculative()
