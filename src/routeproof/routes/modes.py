"""Is a speculative route lossless, lossy, or a fake?

Engines have switches that force or invent acceptance, for benchmarks of the serving
stack. The text such a route writes is not the model's, so no verdict is given on it.
Other switches quietly trade exactness for speed; those make a route lossy.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

from routeproof.proof.route import RouteSpec
from routeproof.routes.fields import NONE, canonical
from routeproof.routes.option_files import launched_fields
from routeproof.routes.read_back import ReadBack

Mode = Literal["lossless", "lossy", "synthetic", "unknown", "none"]
"""``none``: the route does not speculate. ``unknown``: nobody says whether it does."""


class Tell(NamedTuple):
    """One switch that gives a mode away.

    ``name`` is matched against the whole name of a setting, ``value`` against its
    text; both ignore case.
    """

    name: str
    value: str
    mode: Literal["lossy", "synthetic"]
    why: str


_SET = r"(?!^(?:|0|0\.0|false|none|null|-1|\[\]|\{\})$).*"
"""Any value that is not one of the ways to say "off"."""

_BELOW_ONE = r"0?\.\d+|0"

TELLS: tuple[Tell, ...] = (
    # vLLM: config of speculation.
    Tell(
        r"rejection_sample_method",
        r"synthetic",
        "synthetic",
        "vLLM accepts drafts at a fixed rate instead of verifying them",
    ),
    Tell(
        r"synthetic_acceptance_(rates?|length)",
        _SET,
        "synthetic",
        "vLLM accepts drafts at a fixed rate instead of verifying them",
    ),
    Tell(
        r"rejection_sample_method",
        r"fly",
        "lossy",
        "vLLM's `fly` rejection accepts drafts the target would not have chosen",
    ),
    Tell(
        r"(posterior_threshold|posterior_alpha)",
        _SET,
        "lossy",
        "typical acceptance keeps drafts the target would not have chosen",
    ),
    Tell(
        r"(acceptance_method|spec_decoding_acceptance_method)",
        r"typical_acceptance_sampler",
        "lossy",
        "typical acceptance keeps drafts the target would not have chosen",
    ),
    # SGLang.
    Tell(
        r"SGLANG_SIMULATE_ACC(_\w+)?",
        _SET,
        "synthetic",
        "SGLang simulates the number of accepted drafts",
    ),
    Tell(
        r"(speculative_)?accept_threshold_(single|acc)",
        _BELOW_ONE,
        "lossy",
        "SGLang accepts a draft from this probability on, not only the target's choice",
    ),
    # llama.cpp.
    Tell(
        r"(spec_)?synth_(rates?|len(gth)?)",
        _SET,
        "synthetic",
        "llama.cpp accepts drafts at a fixed rate instead of verifying them",
    ),
    # TensorRT-LLM.
    Tell(
        r"TLLM_SPEC_DECODE_FORCE_NUM_ACCEPTED_TOKENS",
        _SET,
        "synthetic",
        "TensorRT-LLM forces the number of accepted drafts",
    ),
    Tell(
        r"use_relaxed_acceptance_for_thinking",
        r"true|1",
        "lossy",
        "TensorRT-LLM accepts any of the target's top tokens while thinking",
    ),
    Tell(
        r"relaxed_(topk|delta)",
        _SET,
        "lossy",
        "TensorRT-LLM accepts any of the target's top tokens while thinking",
    ),
    # ATOM.
    Tell(
        r"(spec_)?(decode_)?acceptance_length",
        _SET,
        "synthetic",
        "the acceptance length is given, not measured",
    ),
)


@dataclass(frozen=True, slots=True)
class ModeFinding:
    """The mode of a route and how it was found.

    Attributes:
        reasons: One sentence per switch, with the switch.
        from_read_back: Whether the live endpoint was among the witnesses.
    """

    mode: Mode
    reasons: tuple[str, ...] = ()
    from_read_back: bool = False


def mode_of(spec: RouteSpec, read_back: ReadBack | None) -> ModeFinding:
    """Scan launch command, environment, options and read-back for lossy switches.

    The worst finding wins: synthetic, then lossy. A speculative route without any
    is ``lossless`` in what it claims; equality tests must still confirm it.
    """
    found: dict[str, str] = {}
    for name, value in _settings(spec, read_back):
        for tell in TELLS:
            if _matches(tell, name, value):
                found.setdefault(f"{tell.why} ({name} = {value})", tell.mode)
    reasons = tuple(sorted(found))
    live = read_back is not None and bool(read_back.fields)
    for mode in ("synthetic", "lossy"):
        if mode in found.values():
            return ModeFinding(mode, reasons, live)
    return _plain_mode(spec, read_back, live)


def _plain_mode(spec: RouteSpec, read_back: ReadBack | None, live: bool) -> ModeFinding:
    method = read_back.fields.get("speculation.method") if read_back else None
    if method is None and spec.speculation is not None:
        method = spec.speculation.method
    if method is None and spec.launch is not None:
        method = launched_fields(spec.launch).get("speculation.method")
    if method is None:
        return ModeFinding("unknown", ("nobody says whether this route speculates",))
    if canonical("speculation.method", method) == NONE:
        return ModeFinding("none", (), live)
    fallback = _greedy_platform(read_back)
    if fallback:
        return ModeFinding("lossy", (fallback,), True)
    return ModeFinding("lossless", (), live)


def _greedy_platform(read_back: ReadBack | None) -> str | None:
    """SGLang verifies greedily on CPU, XPU and HIP, whatever the temperature.

    Recorded on 0.5.23: from the second token on, temperature 0.8 is ignored.
    """
    if read_back is None or read_back.engine != "sglang":
        return None
    device = read_back.fields.get("hardware.device", "")
    if device.lower() not in ("cpu", "xpu", "hip", "rocm"):
        return None
    return f"SGLang on {device} verifies greedily: sampling parameters are ignored"


def _matches(tell: Tell, name: str, value: str) -> bool:
    last = name.rsplit(".", 1)[-1].lstrip("-").replace("-", "_")
    return bool(
        re.fullmatch(tell.name, last, re.IGNORECASE)
        and re.fullmatch(tell.value, value.strip(), re.IGNORECASE)
    )


def _settings(spec: RouteSpec, read_back: ReadBack | None) -> Iterator[tuple[str, str]]:
    if spec.speculation is not None:
        for name, value in spec.speculation.options.items():
            yield name, _text(value)
    if spec.launch is not None:
        yield from spec.launch.env.items()
        yield from launched_fields(spec.launch).items()
        for word in spec.launch.command:
            yield from _assignments(word)
    if read_back is not None:
        yield from read_back.fields.items()
        for path in ("/server_info", "/server_info?config_format=json"):
            yield from _leaves(read_back.raw.get(path))


def _assignments(word: str) -> Iterator[tuple[str, str]]:
    """``NAME=value`` words, as in ``env SGLANG_SIMULATE_ACC_LEN=3 python -m ...``."""
    match = re.fullmatch(r"([A-Z][A-Z0-9_]+)=(.*)", word)
    if match:
        yield match[1], match[2]
    if word.lstrip().startswith("{"):
        yield from _leaves(word)


def _leaves(text: str | None) -> Iterator[tuple[str, str]]:
    try:
        root: object = json.loads(text or "null")
    except ValueError:
        return
    stack: list[object] = [root]
    while stack:
        value = stack.pop()
        if isinstance(value, Mapping):
            for key, inner in value.items():
                if isinstance(inner, (Mapping, list)):
                    stack.append(inner)
                    if isinstance(inner, list):
                        yield str(key), _text(inner)
                else:
                    yield str(key), _text(inner)
        elif isinstance(value, list):
            stack.extend(value)


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)
