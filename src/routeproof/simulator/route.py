"""A simulated route: which engine it plays, how fast, how right, and what is wrong."""

from typing import Literal

import msgspec

Dialect = Literal["vllm", "sglang", "llamacpp", "tensorrt_llm", "openai"]


class Strict(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of the structs of a simulated route."""


class Timing(Strict, frozen=True, kw_only=True):
    """The cost of one forward pass, a roofline with an attention term.

    ``step = max(weights_s, tokens * token_s) + context * context_token_s
    + sequences * sequence_s``, where ``tokens`` are all tokens computed in the pass
    (prefill chunks, one per decoding sequence, draft tokens to verify) and
    ``context`` is the sum of the lengths attended to by decoding sequences.

    Attributes:
        weights_s: Reading the weights once: the least a pass can take.
        token_s: Computing one token when the pass is compute bound.
        context_token_s: Reading one cached token in attention.
        sequence_s: Scheduling and sampling, per decoding sequence.
        max_batched_tokens: Token budget of a pass; longer prompts come in chunks.
        max_running: Sequences that run together; the others queue.
        jitter: Log-normal sigma of the pass time, 0 for a clock that never varies.
    """

    weights_s: float = 0.006
    token_s: float = 0.00003
    context_token_s: float = 2e-8
    sequence_s: float = 0.00001
    max_batched_tokens: int = 2048
    max_running: int = 256
    jitter: float = 0.03


class Memory(Strict, frozen=True, kw_only=True):
    """What the engine holds, in tokens and bytes.

    Attributes:
        kv_capacity_tokens: Tokens of KV cache over all sequences.
        block_tokens: Size of a block of it; prefixes are shared by whole blocks.
        context_limit_tokens: Longest prompt plus answer.
        prefix_cache: Whether blocks of earlier prompts are kept and reused.
        weights_bytes, kv_token_bytes: For the memory gauges.
    """

    kv_capacity_tokens: int = 400_000
    block_tokens: int = 16
    context_limit_tokens: int = 32_768
    prefix_cache: bool = True
    weights_bytes: int = 16_000_000_000
    kv_token_bytes: int = 131_072


class Speculation(Strict, frozen=True, kw_only=True):
    """A drafter.

    Attributes:
        shape: ``chain`` drafts token by token (``draft_tokens`` draft passes),
            ``block`` drafts them all in one pass.
        acceptance: Probability that position ``i`` is accepted given that all before
            it were; the last value goes on for later positions.
        by_class: Factor on those probabilities for a class of prompts.
        spread: How far prompts differ: each has its own factor in
            ``[1 - spread, 1 + spread]``.
        draft_step_s: One pass of the drafter.
        half_context_tokens: Context at which acceptance has halved; ``None`` = never.
        draft_memory_bytes: Weights of the drafter.
    """

    method: str = "eagle3"
    shape: Literal["chain", "block"] = "chain"
    draft_tokens: int = 4
    acceptance: tuple[float, ...] = (0.82, 0.75, 0.7, 0.65)
    by_class: dict[str, float] = {}
    spread: float = 0.2
    draft_step_s: float = 0.0005
    half_context_tokens: float | None = None
    draft_model: str | None = "simulated/draft"
    draft_revision: str | None = "d1"
    draft_memory_bytes: int = 1_000_000_000


class Quality(Strict, frozen=True, kw_only=True):
    """How right the answers of a scripted route are.

    Attributes:
        accuracy: Probability of the right answer for a class of cases.
        default_accuracy: The same for every other class.
        seed: Which cases are hard. Two routes with equal seeds fail on the same ones.
        flips: Share of cases whose rightness is drawn anew, by ``salt``: a route
            that is as good but not the same.
        near_ties: Share of answers that take the other branch of a near tie: another
            wording, as right as the first.
        salt: Tells the draws of this route from another's.
        filler_tokens: Length of the answer to a prompt that no script knows.
    """

    accuracy: dict[str, float] = {}
    default_accuracy: float = 0.93
    seed: int = 1
    flips: float = 0.0
    near_ties: float = 0.0
    salt: str = ""
    filler_tokens: int = 64


class Identity(Strict, frozen=True, kw_only=True):
    """What the engine says it is, on its information pages."""

    model: str = "simulated/target"
    revision: str | None = "r1"
    version: str | None = None
    weights: str = "bfloat16"
    kv_cache: str = "auto"
    chat_template: str = (
        "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{% endfor %}"
    )
    bos_tokens: int = 1
    fingerprint: str | None = None


class SimulatedRoute(Strict, frozen=True, kw_only=True):
    """Everything the simulated engine is configured by.

    Attributes:
        dialect: Whose pages and fields it speaks.
        answers: ``script`` answers from a book of right and wrong answers (prompts
            it does not know get filler text); ``toy`` samples from a small language
            model whose next-token distribution is known exactly.
        toy_draft_noise: How far the toy drafter's mind is from its target's, 0: equal.
        faults: Names of ``routeproof.simulator.faults.FAULTS`` with their strength.
        per_request_metrics: Whether responses carry the engine's own figures.
        speed: Divides every duration; 1 is the timing as given.
        paced_s: Not ``None``: no batching, every stream gets a chunk every so many
            seconds, evenly spread (the server of the load benchmark).
        paced_first_s: With ``paced_s``: the least time to the first chunk.
    """

    dialect: Dialect = "vllm"
    identity: Identity = Identity()
    timing: Timing = Timing()
    memory: Memory = Memory()
    speculation: Speculation | None = None
    quality: Quality = Quality()
    answers: Literal["script", "toy"] = "script"
    toy_draft_noise: float = 0.8
    faults: dict[str, float] = {}
    per_request_metrics: bool = True
    speed: float = 1.0
    paced_s: float | None = None
    paced_first_s: float = 0.0
    seed: int = 7
