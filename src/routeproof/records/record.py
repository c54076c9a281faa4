"""One request to one route, as it is written down."""

from typing import Literal

import msgspec

from routeproof.records.outcome import Outcome

SCHEMA = 1

Arm = Literal["baseline", "candidate", "control"]
"""``control`` is the baseline a second time: the A/A noise floor of the stack."""

Phase = Literal["warmup", "quality", "latency", "sweep", "soak", "probe"]


class _Row(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of the parts of a record."""


class Key(_Row, frozen=True, kw_only=True):
    """Which request this is. (arm, phase, level, block, case_id, trial) is unique.

    Attributes:
        request_id: Unique within the run; resume sends what is missing by it.
        level: Load level inside the phase, such as ``c16`` or ``r4.0``.
        block: Number of the interleaving block.
        asked: Digest of the parameters it was sent with: everything but model, prompt
            and what only brings details of the engine back. ``None`` when not known.
    """

    request_id: str
    arm: Arm
    phase: Phase
    level: str
    block: int
    case_id: str
    trial: int
    shard: int = 0
    asked: str | None = None


class Clock(_Row, frozen=True, kw_only=True):
    """Stamps of a request, in seconds on the run's monotonic clock (0 = run start).

    Attributes:
        wall_s: Wall clock (Unix) at ``intended_s``; for time lines only.
        intended_s: When the schedule wanted it. Latencies start here.
        dispatched_s: When the client began it.
        sent_s: When the request bytes had been written.
        first_byte_s: First byte of the response.
        end_s: End of the response, or when it was given up.
    """

    wall_s: float
    intended_s: float
    dispatched_s: float | None = None
    sent_s: float | None = None
    first_byte_s: float | None = None
    end_s: float | None = None


class Stream(_Row, frozen=True, kw_only=True):
    """When content came; a chunk carries tokens of any kind, a role alone is none.

    Attributes:
        chunk_s: Arrival of each content chunk, same clock, shape ``(n_chunks,)``.
        chunk_tokens: Tokens in each chunk, where the server tells (token ids, log
            probabilities or usage per chunk), same shape; ``None`` when it does not.
        first_visible_s: Arrival of the first chunk with visible text or a tool call.
        coalesced_reads: Chunks that shared one socket read with an earlier chunk.
    """

    chunk_s: tuple[float, ...] = ()
    chunk_tokens: tuple[int, ...] | None = None
    first_visible_s: float | None = None
    coalesced_reads: int = 0


class Answer(_Row, frozen=True, kw_only=True):
    """What was said, and how it ended.

    Attributes:
        tool_calls: JSON list of ``{"name", "arguments"}`` (arguments as sent: text).
        choices: JSON list of every choice's text when ``n > 1``.
        logprobs: JSON list per token: ``[token, logprob, [[token, logprob], ...]]``.
        error: The server's or the client's own words.
    """

    outcome: Outcome
    http_status: int | None = None
    finish_reason: str | None = None
    error: str | None = None
    text: str | None = None
    reasoning: str | None = None
    tool_calls: str | None = None
    choices: str | None = None
    logprobs: str | None = None
    token_ids: tuple[int, ...] | None = None


class Usage(_Row, frozen=True, kw_only=True):
    """Token counts as the server reports them; ``None`` when it does not."""

    prompt_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    reasoning_tokens: int | None = None


class EngineDetails(_Row, frozen=True, kw_only=True):
    """What the engine says of this one request, normalised by its adapter.

    Speculation counts exclude the bonus token. ``spec_passes`` are verify passes
    with at least one draft, ``plain_passes`` those without; ``accepted_hist[j]``
    counts passes in which ``j`` drafts were accepted. ``passes`` is both together,
    where an engine lets only the sum be known.
    """

    queue_s: float | None = None
    prefill_s: float | None = None
    decode_s: float | None = None
    drafted: int | None = None
    accepted: int | None = None
    spec_passes: int | None = None
    plain_passes: int | None = None
    passes: int | None = None
    accepted_hist: tuple[int, ...] | None = None
    drafted_per_position: tuple[int, ...] | None = None
    fingerprint: str | None = None


class Record(_Row, frozen=True, kw_only=True):
    """One request to one route: what was sent, what came back, when, how it ended."""

    key: Key
    clock: Clock
    answer: Answer
    stream: Stream = Stream()
    usage: Usage = Usage()
    engine: EngineDetails = EngineDetails()
    schema: int = SCHEMA
