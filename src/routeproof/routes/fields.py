"""The fields of a route, by dotted name, and how their values are written."""

import re

READABLE = (
    "model",
    "revision",
    "tokenizer.name",
    "tokenizer.chat_template_digest",
    "engine.version",
    "weights",
    "kv_cache",
    "attention_backend",
    "speculation.method",
    "speculation.draft.model",
    "speculation.draft_tokens",
    "hardware.device",
    "hardware.topology",
    "context_limit_tokens",
)
"""Fields an engine might report; an adapter lists those it does not."""

REQUIRED = (
    "model",
    "revision",
    "engine.name",
    "engine.version",
    "weights",
    "kv_cache",
    "context_limit_tokens",
    "tokenizer.chat_template_digest",
    "speculation.method",
    "hardware.device",
)
"""Fields a complete inventory has; one that nobody says is ``unverified``."""

REQUIRED_SPECULATIVE = ("speculation.draft_tokens", "speculation.placement")
"""The same for a speculative route."""

REQUIRED_DRAFT = ("speculation.draft.model", "speculation.draft.revision")
"""The same for a speculative route whose drafts come from a model."""

DRAFT_FREE_METHODS = frozenset(
    {"ngram", "ngram_gpu", "suffix", "lookahead", "sa", "prompt_lookup", "none"}
)
"""Methods without a draft model; every name that starts with ``ngram`` is one too."""

NOT_COMPARED = ("observed.", "model.served")
"""Prefixes of facts that are shown but are no part of what decides a result."""

NONE = "none"

AUTO = "auto"
"""Left to the engine: what it means is known only once the engine has said it."""

ENGINES = {
    "llamacpp": "llama.cpp",
    "llama-cpp": "llama.cpp",
    "llama-server": "llama.cpp",
    "llama_cpp": "llama.cpp",
    "trtllm": "tensorrt-llm",
    "trt-llm": "tensorrt-llm",
    "tensorrt_llm": "tensorrt-llm",
    "tensorrtllm": "tensorrt-llm",
    "trtllm-serve": "tensorrt-llm",
    "generic": "openai",
}
"""Usual spellings of an engine's name and the one used here."""

_DTYPES = {
    "bfloat16": "bf16",
    "torch.bfloat16": "bf16",
    "float16": "fp16",
    "torch.float16": "fp16",
    "half": "fp16",
    "f16": "fp16",
    "float32": "fp32",
    "torch.float32": "fp32",
    "float": "fp32",
    "f32": "fp32",
    "fp8": "fp8_e4m3",
    "float8_e4m3fn": "fp8_e4m3",
    "torch.float8_e4m3fn": "fp8_e4m3",
    "fp8_e4m3fn": "fp8_e4m3",
    "float8_e5m2": "fp8_e5m2",
    "torch.float8_e5m2": "fp8_e5m2",
}

_METHODS = {
    "": NONE,
    "null": NONE,
    "off": NONE,
    "false": NONE,
    "draft-simple": "draft_model",
    "draft_simple": "draft_model",
    "standalone": "draft_model",
    "drafttarget": "draft_model",
    "draft": "draft_model",
    "draft-eagle3": "eagle3",
    "draft-dflash": "dflash",
    "draft-dspark": "dspark",
    "draft-mtp": "mtp",
    "nextn": "mtp",
    "dflash2": "dflash",
}

_PATH_FIELDS = frozenset(
    {"model", "model.file", "speculation.draft.model", "tokenizer.name"}
)
"""Where files lie is no part of a route; what they are called is."""

_DTYPE_FIELDS = frozenset({"weights", "kv_cache", "speculation.draft.weights"})


_RESOLVED = frozenset({"kv_cache", "weights", "attention_backend"})
"""Fields an engine resolves by itself when it is told ``auto``: what it chose is no
contradiction of that word."""


def canonical(name: str, value: str) -> str:
    """The one spelling of a value, so that two engines' words can be compared.

    Args:
        name: Dotted field name.
        value: As written in a proof file, a launch command or an engine's answer.

    Example:
        >>> canonical("kv_cache", "torch.bfloat16"), canonical("weights", "Q4_1")
        ('bf16', 'q4_1')
        >>> canonical("speculation.method", "NEXTN")
        'mtp'
    """
    text = value.strip()
    if name in _DTYPE_FIELDS:
        low = text.lower()
        return _DTYPES.get(low, low)
    if name == "speculation.method":
        return ",".join(sorted(_method(part) for part in text.lower().split(",")))
    if name == "engine.name":
        return ENGINES.get(text.lower(), text.lower())
    if name in _PATH_FIELDS and text.startswith(("/", "./", "../", "~")):
        return text.rstrip("/").rsplit("/", 1)[-1]
    if name == "hardware.device":
        return "cpu" if text.lower() == "none" else text.lower()
    if name == "engine.version":
        return re.sub(r"^v(?=\d)", "", text)
    if name == "attention_backend":
        return text.lower()
    if name.startswith("sampler_defaults.") or name.endswith("_tokens"):
        return _number(text)
    return text.lower() if text in ("True", "False") else text


def _method(text: str) -> str:
    low = text.strip()
    if low.endswith("_mtp"):
        # vLLM names the model's family: deepseek_mtp, qwen3_next_mtp ...
        return "mtp"
    return _METHODS.get(low, low)


def _number(text: str) -> str:
    try:
        return f"{float(text):.6g}"
    except ValueError:
        return text


def same(name: str, one: str, other: str) -> bool:
    """Whether two values of a field mean the same.

    A model may be named by hub id on one side and by the path of its files on the
    other: the same last part is the same model, a quantization in the name of a GGUF
    file aside (that is compared as ``weights``).

    Example:
        >>> same("model", "Qwen/Qwen3.8-27B", "/models/Qwen3.8-27B/")
        True
    """
    a, b = canonical(name, one), canonical(name, other)
    if a == b or (name in _RESOLVED and AUTO in (a, b)):
        return True
    if name in _PATH_FIELDS:
        return ("/" not in a or "/" not in b) and _last_part(a) == _last_part(b)
    if name == "engine.version":
        # A build tag behind the number: 0.32.0+cpu, b10434-7e4c0a9.
        short, long = sorted((a, b), key=len)
        return long.startswith((f"{short}-", f"{short}+"))
    if name in ("revision", "speculation.draft.revision", "engine.commit"):
        short, long = sorted((a, b), key=len)
        return len(short) >= 7 and long.startswith(short)
    return False


def _last_part(path: str) -> str:
    last = path.rstrip("/").rsplit("/", 1)[-1].lower()
    bare = re.sub(r"\.(gguf|safetensors)$", "", last)
    return bare if bare == last else re.sub(r"[.-](i?q\d\w*|bf16|f16|f32)$", "", bare)


def is_draft_free(method: str) -> bool:
    """Whether a method drafts without a model of its own."""
    names = [canonical("speculation.method", part) for part in method.split(",")]
    return all(n in DRAFT_FREE_METHODS or n.startswith("ngram") for n in names)


def is_compared(name: str) -> bool:
    """Whether a field is part of what decides a result."""
    return not name.startswith(NOT_COMPARED)
