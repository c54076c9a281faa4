"""The rows of the zoo: every fault, the ways to measure wrongly, harmless changes."""

from dataclasses import dataclass, field

import msgspec

from routeproof.jobs.virtual.venue import RunFaults
from routeproof.proof.workload import SamplingSpec
from routeproof.simulator.faults import FAULTS
from routeproof.simulator.route import (
    Memory,
    Quality,
    SimulatedRoute,
    Speculation,
    Timing,
)


@dataclass(frozen=True)
class Row:
    """One run of the zoo.

    ``gate`` and ``checks`` say what should see it; a harmless row has neither.
    """

    name: str
    family: str
    reference: str
    proof: str
    candidate: SimulatedRoute
    gate: str | None = None
    checks: tuple[str, ...] = ()
    run: RunFaults = field(default_factory=RunFaults)
    strength: float | None = None
    what: str = ""
    may_stay_open: bool = False


SPECULATION = Speculation(
    draft_step_s=0.0003,
    by_class={"prose": 0.85, "structured": 1.15, "spanish": 0.9, "tool_call": 1.1},
)
BASELINE = SimulatedRoute()
CANDIDATE = SimulatedRoute(speculation=SPECULATION)
TOY = SimulatedRoute(answers="toy")
DIALECTS = {
    "load_sglang": SimulatedRoute(dialect="sglang"),
    "llamacpp": SimulatedRoute(dialect="llamacpp"),
}
"""Baselines of the proofs that are not played on the usual engine."""

_LOAD = {
    "acceptance_lost_under_load",
    "acceptance_decays",
    "draft_length_collapses",
    "slower_at_peak",
    "verification_costs",
    "fewer_slots",
    "queue_hidden",
    "slower",
    "pauses",
    "prefill_slower",
    "memory_leak",
    "memory_and_speed",
    "kv_leak",
    "draft_memory_uncounted",
    "kv_capacity_lost",
    "preemption_storm",
    "crash_under_load",
    "crash_in_long_context",
    "dead_engine_200",
    "errors_under_load",
    "stuck_under_load",
    "buffering_proxy",
    "first_token_late",
    "chunks_late",
    "chunks_merged",
    "stream_stalls",
    "usage_missing",
    "usage_inflated",
    "wrong_at_peak",
    "loops_at_peak",
    "rate_limited",
}
_WARM = {"garble_sampled_under_load"}
_SAMPLED = {
    "loose_verification",
    "no_residual",
    "draft_bias",
    "shared_uniform",
    "greedy_verification",
    "temperature_shift",
    "temperature_ignored",
    "top_p_dropped",
    "min_p_dropped",
    "seed_ignored",
}


_CHECKS = {
    "drafter_breaks_reasoning": ("headline[class=arithmetic]", "numeric"),
    "language_loss": ("headline[class=spanish]", "headline[language=es]"),
    "long_context_collapse": ("headline[class=long_context]", "headline[prompt_length"),
    "multi_turn_loss": ("headline[class=multi_turn]", "headline[turns=multi]"),
    "prefix_cache_corruption": ("headline[class=factual]", "cache"),
    "repetition_loop": ("guard[", "degeneration"),
    "exclamation_marks": ("guard[", "degeneration"),
    "empty_answers": ("not_empty",),
    "length_explosion": ("guard[output_length]",),
    "faster_because_shorter": ("guard[output_length]", "latency/not_because_shorter"),
    "stop_ignored": ("headline[class=stop]", "stop_honoured"),
    "stop_leak": ("headline[class=stop]", "stop_honoured"),
    "cap_leak": ("headline[class=cap]", "max_tokens_honoured"),
    "max_tokens_ignored": (
        "headline[class=cap]",
        "guard[output_length]",
        "max_tokens_honoured",
    ),
    "zero_logprobs": ("logprobs_honoured",),
    "wrong_at_peak": ("headline[level=c32", "headline[phase=sweep", "headline["),
    "loops_at_peak": ("guard[", "headline["),
    "n_ignored": ("choices_honoured",),
    "acceptance_lost_in_long_context": ("collapse[class=long_context]",),
    "acceptance_lost_in_one_class": ("collapse[class=arithmetic]",),
    "acceptance_lost_under_load": ("holds_under_load",),
    "acceptance_decays": ("trend[acceptance_rate]",),
    "draft_length_collapses": ("coverage", "holds_under_load", "latency/gain"),
    "draft_useless": ("tokens_per_pass",),
    "draft_version_mismatch": ("tokens_per_pass",),
    "synthetic_acceptance": ("real_acceptance",),
    "lossy_switch": ("real_acceptance",),
    "synthetic_acceptance_hidden": ("synthetic", "identities", "correctness/headline"),
    "queue_hidden": ("not_slower[time_to_first_token", "slo[time_to_first", "queue"),
    "buffering_proxy": ("slo[time_to_first", "not_slower[time_to_first", "client"),
    "other_model": ("same_routes",),
    "kv_cache_quantized_unasked": ("same_routes",),
    "engine_upgraded_unasked": ("same_routes",),
    "fingerprint_changes": ("same_routes", "fingerprint"),
    "prompt_longer_by_tokens": ("same_routes",),
    "preemption_storm": ("preemptions", "kv_capacity"),
    "usage_missing": ("usage", "latency/slo[inter_token", "latency/gain"),
    "usage_inflated": ("usage", "guard[output_length]", "acceptance/identities"),
}
"""What counts as the right reason with this workload."""

_OPEN = {
    "metrics_missing",
    "metrics_renamed",
    "acceptance_over_reported",
    "drafted_under_counted",
    "usage_missing",
    "no_control",
    "one_after_the_other",
}
"""Rows that are detected when the check says that it cannot tell."""


_SGLANG = {"kv_capacity_lost", "preemption_storm"}
"""Rows on an engine that exports its KV capacity among its metrics."""

_LLAMACPP = {"template_changed"}
"""Rows on an engine that shows its chat template."""


def proof_of(name):
    if name in _SGLANG:
        return "load_sglang"
    if name in _LLAMACPP:
        return "llamacpp"
    if name in _LOAD:
        return "load"
    if name in _WARM:
        return "warm_answers"
    return "sampled" if name in _SAMPLED else "answers"


def fault_row(name, strength=None):
    fault = FAULTS[name]
    strength = fault.usual if strength is None else strength
    proof = proof_of(name)
    route = CANDIDATE
    if proof in DIALECTS:
        route = msgspec.structs.replace(route, dialect=DIALECTS[proof].dialect)
    if proof.startswith("sampled"):
        route = msgspec.structs.replace(TOY, speculation=SPECULATION)
    return Row(
        name=name,
        family=fault.family,
        reference=fault.reference,
        proof=proof,
        candidate=msgspec.structs.replace(route, faults={name: strength}),
        gate=fault.gate,
        checks=_CHECKS.get(name, fault.checks),
        may_stay_open=name in _OPEN,
        strength=strength,
        what=fault.what,
    )


def _measured(name, reference, what, gate, checks, run, proof="answers"):
    return Row(
        name=name,
        family="measuring",
        reference=reference,
        proof=proof,
        candidate=CANDIDATE,
        gate=gate,
        checks=checks,
        run=run,
        what=what,
        may_stay_open=name in _OPEN,
    )


MEASURING = (
    _measured(
        "unequal_sampling",
        "InferenceX #359, #1651; vllm PR #32723",
        "the candidate is asked with another sampling",
        "parity",
        ("same_parameters",),
        RunFaults(candidate_sampling=SamplingSpec(temperature=0.7, max_tokens=700)),
    ),
    _measured(
        "one_after_the_other",
        "pegainfer #697; Spec-Bench #15",
        "all of the baseline, then all of the candidate",
        "parity",
        ("interleaved",),
        RunFaults(one_after_the_other=True),
    ),
    _measured(
        "no_control",
        "vllm #53436",
        "the baseline never ran against itself",
        "parity",
        ("control",),
        RunFaults(control=False),
    ),
    _measured(
        "other_cases",
        "guidellm #542",
        "the candidate is sent a fifth of the cases",
        "parity",
        ("same_workload",),
        RunFaults(candidate_cases_share=0.2),
    ),
    _measured(
        "client_saturated",
        "guidellm #487, #470; vllm #39963",
        "under load the client sends half a second late",
        "latency",
        ("flag:client_saturated",),
        RunFaults(late_dispatch_s=0.5),
        "load",
    ),
)


def _harmless(name, what, proof="answers", run=None, **changes):
    base = TOY if proof.startswith("sampled") else CANDIDATE
    route = msgspec.structs.replace(base, **changes)
    return Row(name, "harmless", "", proof, route, run=run or RunFaults(), what=what)


def _near(share):
    return Quality(near_ties=share, salt="near")


HARMLESS = (
    _harmless(
        "warm_candidate_cache",
        "the candidate has seen every prompt; marks in the prompts make it useless",
        "load",
        run=RunFaults(candidate_warm=True),
    ),
    _harmless("same_route", "the baseline again", speculation=None),
    _harmless("exact_chain", "exact speculation, a chain of four"),
    _harmless(
        "exact_block",
        "exact speculation, a block of seven",
        speculation=Speculation(
            method="dflash",
            shape="block",
            draft_tokens=7,
            acceptance=(0.85, 0.8, 0.75, 0.7),
        ),
    ),
    _harmless(
        "exact_ngram",
        "exact speculation from n-grams",
        speculation=Speculation(
            method="ngram",
            draft_tokens=3,
            acceptance=(0.4, 0.35, 0.3),
            draft_step_s=0.00002,
            draft_model=None,
            draft_revision=None,
            draft_memory_bytes=0,
        ),
    ),
    _harmless(
        "exact_sampled",
        "exact rejection sampling at T = 0.8",
        "sampled",
        speculation=SPECULATION,
    ),
    _harmless("plain_sampled", "no speculation at T = 0.8", "sampled"),
    _harmless(
        "near_ties_few",
        "5 % of the answers take the other branch of a near tie",
        quality=_near(0.05),
    ),
    _harmless("near_ties_some", "25 % of them", quality=_near(0.25)),
    _harmless("near_ties_many", "60 % of them", quality=_near(0.6)),
    _harmless(
        "other_wording",
        "every answer in other words, as right as before",
        quality=_near(1.0),
    ),
    _harmless(
        "flips_both_ways",
        "2 % of the cases are drawn anew: as many won as lost",
        quality=Quality(flips=0.02, salt="flip"),
    ),
    _harmless(
        "better_answers",
        "three points more are right",
        quality=Quality(default_accuracy=0.96),
    ),
    _harmless(
        "faster_kernels",
        "every pass takes two thirds",
        "load",
        timing=Timing(weights_s=0.004, token_s=0.00002),
    ),
    _harmless(
        "no_jitter", "a clock that never varies", "load", timing=Timing(jitter=0.0)
    ),
    _harmless(
        "more_jitter", "three times the jitter", "load", timing=Timing(jitter=0.09)
    ),
    _harmless(
        "more_kv",
        "a larger KV cache",
        "load",
        memory=Memory(kv_capacity_tokens=440_000),
    ),
    _harmless(
        "better_drafter",
        "a drafter that guesses better",
        "load",
        speculation=Speculation(acceptance=(0.9, 0.86, 0.84, 0.82)),
    ),
    _harmless(
        "small_drafter",
        "a drafter of 100 MB",
        "load",
        speculation=Speculation(draft_memory_bytes=100_000_000),
    ),
    _harmless("other_engine_seed", "other random numbers in the engine", seed=99),
    _harmless(
        "keep_alive_comments", "comment lines in the stream", faults={"~comments": 1.0}
    ),
    _harmless("crlf_stream", "CRLF in the stream", faults={"~crlf": 1.0}),
    _harmless(
        "split_bytes", "the stream comes in pieces of 7 bytes", faults={"~split": 7.0}
    ),
    _harmless("no_done", "a stream without [DONE]", faults={"~no_done": 1.0}),
    _harmless(
        "slightly_slower_prefill",
        "prompts take 3 % longer",
        "load",
        faults={"prefill_slower": 1.03},
    ),
    _harmless("load_same", "exact speculation under load", "load"),
)


def fault_rows():
    return [fault_row(name) for name in FAULTS if not name.startswith("~")] + [
        *MEASURING
    ]
