"""How much a changed field can change the answers: one visible table.

``lossless``: claims equal output, a spot-check is enough. ``lossy``: full evaluation.
``invalid``: no verdict. Anything not in the table is ``unknown`` and treated as lossy.
"""

import re
from typing import NamedTuple

from routeproof.routes.inventory import ChangeClass

RANK: dict[ChangeClass, int] = {"lossless": 0, "unknown": 1, "lossy": 2, "invalid": 3}
"""From harmless to worst."""


class Rule(NamedTuple):
    """First rule whose pattern matches the whole field name wins."""

    field: str
    change_class: ChangeClass
    why: str


RULES: tuple[Rule, ...] = (
    Rule(r"speculation\.method", "lossless", "verified drafts claim the same output"),
    Rule(
        r"speculation\.draft\..*|speculation\.draft",
        "lossless",
        "the draft decides speed, the target decides the tokens",
    ),
    Rule(r"speculation\.draft_tokens", "lossless", "more or fewer verified drafts"),
    Rule(r"speculation\.placement", "lossless", "where the draft runs"),
    Rule(
        r"speculation\.options\.(num_steps|num_draft_tokens|eagle_topk|"
        r"prompt_lookup_(min|max)|ngram\w*|draft_n_(min|max)|draft_p_min|draft_conf_min"
        r"|token_map|use_heterogeneous_vocab|parallel_drafting|adaptive|draft_window_size"
        r"|dflash_block_size|attention_mode|draft_attention_backend|num_speculative_tokens_per_batch_size"
        r"|enable_adaptive_verification|draft_tensor_parallel_size|max_model_len)",
        "lossless",
        "shapes the drafts, which are verified all the same",
    ),
    Rule(
        r"speculation\.options\.(draft_sample_method|use_rejection_sampling"
        r"|use_block_verification|rejection_sample_method|accept_threshold_\w+)",
        "lossless",
        "another way of accepting drafts; its lossy settings show in speculation.mode",
    ),
    Rule(r"speculation\.options\..*", "unknown", "an option of the engine"),
    Rule(r"weights", "lossy", "other numbers in the weights"),
    Rule(r"kv_cache", "lossy", "other numbers in the KV cache"),
    Rule(r"attention_backend", "lossy", "another order of additions in attention"),
    Rule(r"model|model\.file|revision", "lossy", "another model"),
    Rule(r"tokenizer\.bos|tokenizer\.eos", "lossy", "other special tokens"),
    Rule(r"tokenizer.*", "lossy", "other tokens reach the model"),
    Rule(r"sampler_defaults\..*", "lossy", "another sampler"),
    Rule(r"engine\.name", "lossy", "another engine computes and samples differently"),
    Rule(r"engine\.(version|commit)", "lossy", "other kernels, samplers and parsers"),
    Rule(r"engine\.maturity", "lossless", "says how far the code is from a release"),
    Rule(
        r"hardware\.(device|topology|count)",
        "lossy",
        "other kernels and another order of additions",
    ),
    Rule(r"hardware\.driver", "lossy", "other kernels"),
    Rule(r"context_limit_tokens", "lossless", "the same answers where the prompt fits"),
    Rule(
        r"prefix_cache",
        "lossless",
        "reuses the same KV values; speed differs, and a hit must give the same answer",
    ),
    Rule(
        r"scheduler\..*",
        "lossless",
        "other batches; speed differs, and results may differ by rounding",
    ),
    Rule(
        r"launch\.(batch_size|b|ubatch_size|ub"
        r"|gpu_memory_utilization|mem_fraction_static|threads|t|threads_batch|tb"
        r"|enforce_eager|disable_cuda_graph"
        r"|schedule_policy|seed|numa|mlock|no_mmap)",
        "lossless",
        "scheduling and memory; results may differ by rounding",
    ),
    Rule(
        r"launch\.cache_reuse",
        "lossless",
        "reuses the same KV values; a cache hit must give the same answer",
    ),
    Rule(r"launch\..*", "unknown", "a switch of the engine that no table knows"),
)


def class_of(field: str) -> tuple[ChangeClass, str]:
    """Class of a change in ``field``, and why.

    Example:
        >>> class_of("kv_cache")[0], class_of("launch.new_switch")[0]
        ('lossy', 'unknown')
    """
    for rule in RULES:
        if re.fullmatch(rule.field, field):
            return rule.change_class, rule.why
    return "unknown", "no table knows this field"


def worst(classes: list[ChangeClass]) -> ChangeClass:
    """The class that decides the evaluation; ``lossless`` when nothing differs."""
    return max(classes, key=RANK.__getitem__, default="lossless")
