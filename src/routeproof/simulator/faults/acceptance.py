"""Drafters that guess badly, or numbers that say they guess well."""

from routeproof.simulator.defects import When
from routeproof.simulator.faults.fault import (
    Apply,
    Fault,
    both,
    itself,
    setting,
    spoil,
    whole,
)

_LOW = (
    "tokens_per_pass",
    "acceptance_rate",
    "collapse",
    "holds_under_load",
    "identities",
    "latency/gain",
)


def _factor(**when: object) -> Apply:
    return setting(
        "engine",
        acceptance_factor=itself,
        acceptance_when=When(**when),  # type: ignore[arg-type]
    )


def _row(
    name: str,
    reference: str,
    what: str,
    strength: str,
    levels: tuple[float, float, float],
    gate: str,
    checks: tuple[str, ...],
    apply: Apply,
) -> Fault:
    return Fault(
        name, "acceptance", reference, what, strength, *levels, gate, checks, apply
    )


_F = "factor on the chance of acceptance"

ACCEPTANCE: tuple[Fault, ...] = (
    _row(
        "draft_useless",
        "vllm #49559, #42505, #42704",
        "next to no draft is accepted",
        _F,
        (0.3, 0.02, 0.0),
        "acceptance",
        _LOW,
        _factor(),
    ),
    _row(
        "draft_version_mismatch",
        "vllm #37667; syv-ai #73; z-lab #133",
        "the drafter belongs to another revision of the target",
        _F,
        (0.85, 0.45, 0.2),
        "acceptance",
        _LOW,
        _factor(),
    ),
    _row(
        "acceptance_lost_in_long_context",
        "vllm #47602; sglang #30763, #37435",
        "drafts are rejected in long prompts",
        _F,
        (0.7, 0.15, 0.0),
        "acceptance",
        _LOW,
        _factor(prompt_tokens_min=600),
    ),
    _row(
        "acceptance_lost_in_one_class",
        "z-lab #119; DFlash: prose next to 0 %",
        "drafts are rejected in one class of prompts",
        _F,
        (0.7, 0.1, 0.0),
        "acceptance",
        _LOW,
        _factor(classes=("arithmetic",)),
    ),
    _row(
        "acceptance_lost_under_load",
        "vllm #49548",
        "drafts are rejected under load",
        _F,
        (0.7, 0.15, 0.0),
        "acceptance",
        _LOW,
        _factor(running_min=8),
    ),
    _row(
        "acceptance_decays",
        "vllm #11188",
        "acceptance falls with uptime until a restart",
        "share lost per second",
        (0.0005, 0.005, 0.05),
        "acceptance",
        ("uptime", "trend", "drift", "acceptance"),
        setting("engine", acceptance_decay_per_s=itself),
    ),
    _row(
        "draft_length_collapses",
        "vllm #49548; TRT-LLM #16888",
        "past a load the draft length falls to 0 and stays there",
        "running requests",
        (32.0, 12.0, 4.0),
        "acceptance",
        ("coverage", "tokens_per_pass", "acceptance", "by_", "gain", "slower"),
        setting("engine", draft_collapse_running=whole),
    ),
    _row(
        "synthetic_acceptance",
        "InferenceX golden lengths; vLLM `synthetic`",
        "acceptance is set by a switch; the text is not the target's",
        "drafts a pass",
        (1.0, 3.0, 4.0),
        "inventory",
        ("synthetic", "lossless", "mode", "acceptance"),
        both(
            setting("engine", synthetic_accepted=itself),
            setting("report", lossy_switch=True),
        ),
    ),
    _row(
        "synthetic_acceptance_hidden",
        "SGLANG_SIMULATE_ACC_LEN and llama.cpp --spec-synth",
        "the same with no page that says so; answers suffer",
        "drafts a pass",
        (1.0, 3.0, 4.0),
        "acceptance",
        ("synthetic", "constant", "acceptance", "identit"),
        both(
            setting("engine", synthetic_accepted=itself),
            lambda d, s: spoil("wrong")(d, 0.5),
        ),
    ),
    _row(
        "acceptance_over_reported",
        "sglang #23530, #24965",
        "accepted drafts are counted too high",
        "factor",
        (1.05, 1.3, 2.0),
        "acceptance",
        ("identit", "trust", "metrics", "acceptance"),
        setting("report", accepted_factor=itself),
    ),
    _row(
        "drafted_under_counted",
        "speculators #1095",
        "drafted tokens are counted too low",
        "divisor",
        (1.3, 3.0, 8.0),
        "acceptance",
        ("identit", "trust", "metrics", "acceptance"),
        setting("report", drafted_under_counted=itself),
    ),
    _row(
        "metrics_missing",
        "verl #7543; gpustack #4874",
        "no speculation metric and no per-request figure is there",
        "none",
        (1.0, 1.0, 1.0),
        "acceptance",
        ("acceptance", "identities"),
        setting("report", missing=("spec_decode",), per_request_missing=True),
    ),
    _row(
        "metrics_renamed",
        "vLLM V0 to V1; SGLang 0.5.11, 0.5.12",
        "the speculation metrics have new names",
        "none",
        (1.0, 1.0, 1.0),
        "acceptance",
        ("acceptance", "identities"),
        setting("report", renamed="_v2", per_request_missing=True),
    ),
)
