"""What can be wrong with a simulated route: settings whose defaults are all sound.

A fault (see ``faults``) is a name, a reference and a function that turns its strength
into these settings; the engine only ever looks at the settings.
"""

from typing import Literal

from routeproof.simulator.route import Strict

How = Literal[
    "wrong",
    "garble",
    "leak",
    "loop",
    "exclamation",
    "empty",
    "verbose",
    "short",
    "refuse",
    "special_tokens",
    "broken_json",
    "wrong_shape",
    "no_call",
    "call_as_text",
    "wrong_arguments",
    "doubled_call",
    "other_wording",
    "reasoning_in_text",
    "replacement_characters",
    "lower_case",
    "missing_spaces",
]
"""What a spoilt answer looks like."""


class When(Strict, frozen=True, kw_only=True):
    """The conditions under which something is wrong; all given ones must hold.

    Attributes:
        classes: Classes of cases, empty for all.
        running_min: Sequences that decode at the same time, this one included.
        prompt_tokens_min: Length of the prompt.
        uptime_min_s: Time since the engine started.
        requests_min: Requests finished since the engine started.
        cached: Whether a part of the prompt came from the prefix cache.
        thinks: Whether the model was asked to think first.
    """

    classes: tuple[str, ...] = ()
    running_min: int = 0
    prompt_tokens_min: int = 0
    uptime_min_s: float = 0.0
    requests_min: int = 0
    turns_min: int = 0
    cached: bool | None = None
    sampled: bool | None = None
    structured: bool | None = None
    with_tools: bool | None = None
    streamed: bool | None = None
    non_ascii: bool | None = None
    thinks: bool | None = None


class Spoil(Strict, frozen=True, kw_only=True):
    """A share of answers goes wrong in one way under some condition."""

    share: float
    how: How
    when: When = When()


class SamplingDefects(Strict, frozen=True, kw_only=True):
    """Request parameters that do not do what they say.

    Attributes:
        ignored: Fields treated as if they had not been sent.
        refused: Fields answered with HTTP 400.
        temperature_shift: Added to the temperature of sampled requests.
        verify: How draft tokens are verified; ``exact`` is rejection sampling.
        verify_strength: Meaning depends on ``verify``.
        stop_leak_tokens: Tokens that still come after a stop string.
        cap_leak_tokens: Tokens beyond ``max_tokens``.
        stop_missed_share: Share of stop strings and ends of text that are missed.
        zero_logprobs: All log probabilities are 0.0.
        logprob_shift: Added to every log probability (clipped at 0).
    """

    ignored: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    temperature_shift: float = 0.0
    verify: Literal[
        "exact", "accept_above", "no_residual", "greedy", "shared_uniform", "draft_only"
    ] = "exact"
    verify_strength: float = 0.0
    stop_leak_tokens: int = 0
    cap_leak_tokens: int = 0
    stop_missed_share: float = 0.0
    zero_logprobs: bool = False
    logprob_shift: float = 0.0


class StreamDefects(Strict, frozen=True, kw_only=True):
    """Faults of the stream itself; they need no knowledge of the model.

    Shares are of responses unless the name says chunks.
    """

    buffer_share: float = 0.0
    coalesce_chunks: int = 1
    drop_chunk_share: float = 0.0
    duplicate_chunk_share: float = 0.0
    drop_first_call_chunk_share: float = 0.0
    cut_share: float = 0.0
    no_finish_share: float = 0.0
    no_done_share: float = 0.0
    no_usage: bool = False
    usage_factor: float = 1.0
    error_event_share: float = 0.0
    error_status_share: float = 0.0
    error_in_200_share: float = 0.0
    html_share: float = 0.0
    broken_json_share: float = 0.0
    empty_share: float = 0.0
    stall_share: float = 0.0
    stall_s: float = 0.0
    first_delay_s: float = 0.0
    chunk_delay_s: float = 0.0
    split_bytes: int = 0
    keep_alive_comments: bool = False
    crlf: bool = False
    ignore_parameters: tuple[str, ...] = ()
    strip_fields: tuple[str, ...] = ()
    min_concurrency: int = 0


class EngineDefects(Strict, frozen=True, kw_only=True):
    """Speed, memory and stability.

    Attributes:
        step_factor: Multiplies every pass while at least ``step_running_min`` run.
        prefill_factor: Multiplies the cost of prefill tokens.
        stop_the_world_every_s, stop_the_world_s: Pauses of the whole engine.
        acceptance_factor: Multiplies acceptance where ``acceptance_when`` holds.
        acceptance_decay_per_s: Acceptance falls by this share per second of uptime.
        synthetic_accepted: Drafts accepted in every step whatever they are.
        draft_collapse_running: Load at which the draft length falls to 0 for good.
        kv_leak_tokens: KV tokens not given back, per request.
        memory_leak_bytes: Host or device memory not given back, per request.
        crash_running: Load at which the engine dies.
        crash_requests: Finished requests after which it dies.
        crash_prompt_tokens: Prompt length that kills it.
        crash_logprobs: A request for log probabilities kills it.
        dead_answers_200: After the crash, requests get 200 and an error event.
        stuck_share: Requests that never end, where ``stuck_when`` holds.
        kv_capacity_factor: Multiplies the KV capacity.
        hidden_queue: Queue time is left out of what the engine reports.
    """

    step_factor: float = 1.0
    step_running_min: int = 0
    prefill_factor: float = 1.0
    stop_the_world_every_s: float | None = None
    stop_the_world_s: float = 0.0
    acceptance_factor: float = 1.0
    acceptance_when: When = When()
    acceptance_decay_per_s: float = 0.0
    synthetic_accepted: float | None = None
    draft_collapse_running: int | None = None
    verify_factor: float = 1.0
    kv_leak_tokens: int = 0
    memory_leak_bytes: int = 0
    extra_memory_bytes: int = 0
    crash_running: int | None = None
    crash_requests: int | None = None
    crash_prompt_tokens: int | None = None
    crash_logprobs: bool = False
    dead_answers_200: bool = False
    restart_s: float | None = None
    stuck_share: float = 0.0
    stuck_when: When = When()
    kv_capacity_factor: float = 1.0
    max_running_factor: float = 1.0
    hidden_queue: bool = False
    error_share: float = 0.0
    error_status: int = 500
    error_when: When = When()


class ReportDefects(Strict, frozen=True, kw_only=True):
    """What the engine says of itself and should not.

    Attributes:
        missing: Metric families left out, by the end of their name.
        renamed: Suffix put on the names of the speculation metrics.
        accepted_factor: Multiplies the accepted counts that are reported.
        per_request_missing: Per-request figures are left out.
        drafted_under_counted: Divides the drafted counts that are reported.
        fingerprint_changes_after: Requests after which the fingerprint is another.
    """

    missing: tuple[str, ...] = ()
    renamed: str = ""
    accepted_factor: float = 1.0
    drafted_under_counted: float = 1.0
    per_request_missing: bool = False
    fingerprint_changes_after: int | None = None
    declared_model: str | None = None
    declared_kv_cache: str | None = None
    declared_template: str | None = None
    declared_version: str | None = None
    lossy_switch: bool = False
    extra_bos_tokens: int = 0


class Defects(Strict, frozen=True, kw_only=True):
    """Everything that is wrong with a route."""

    spoils: tuple[Spoil, ...] = ()
    sampling: SamplingDefects = SamplingDefects()
    stream: StreamDefects = StreamDefects()
    engine: EngineDefects = EngineDefects()
    report: ReportDefects = ReportDefects()


SOUND = Defects()
