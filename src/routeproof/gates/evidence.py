"""All that a gate may read. Built once from a run folder by ``jobs.judge``."""

import msgspec

from routeproof.gates.facts import (
    EqualityRow,
    Flip,
    JudgeRow,
    LatencyRow,
    LengthRow,
    LoadRow,
    MemoryRow,
    QualityRow,
    RatioRow,
    ReusedRow,
    Row,
    TimeBin,
    TrendRow,
    ValidityRow,
)
from routeproof.proof.policy import (
    MemorySpec,
    PerformanceSpec,
    PolicySpec,
    QualityGateSpec,
    RollbackSpec,
)
from routeproof.routes.inventory import RouteDiff


class _Part(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of the parts of the evidence."""


class Agreed(_Part, frozen=True, kw_only=True):
    """What was agreed before the run: the judged parts of the proof file."""

    quality: tuple[QualityGateSpec, ...] = ()
    classes_required: dict[str, int] = {}
    performance: PerformanceSpec = PerformanceSpec()
    memory: MemorySpec = MemorySpec()
    policy: PolicySpec = PolicySpec()
    rollback: RollbackSpec = RollbackSpec()
    temperature: float = 0.0
    trials: int = 1


class Quality(_Part, frozen=True, kw_only=True):
    """Answers compared pair by pair.

    ``outcomes``: rows of (arm, phase, outcome, count). ``guard``: rows of the
    degeneration guard (check, baseline, candidate, p_value, tripped, reason).
    ``sampled``: rows (test, p_value, control_p_value, prompts, answers) of sampled
    answers held against each other over their trials. ``repeats``: rows (arm, repeats,
    equal) of requests sent twice with one seed.
    """

    rows: tuple[QualityRow, ...] = ()
    flips: tuple[Flip, ...] = ()
    flips_total: int = 0
    equality: tuple[EqualityRow, ...] = ()
    equality_under_load: tuple[EqualityRow, ...] = ()
    lengths: tuple[LengthRow, ...] = ()
    outcomes: tuple[Row, ...] = ()
    guard: tuple[Row, ...] = ()
    sampled: tuple[Row, ...] = ()
    repeats: tuple[Row, ...] = ()
    confusion: tuple[Row, ...] = ()
    judges: tuple[JudgeRow, ...] = ()


class Speed(_Part, frozen=True, kw_only=True):
    """Times and rates of the arms.

    ``matched_length``: the paired ratio of request latency among pairs of equal
    output length. ``prefill_share``: share of request latency before the first
    token on the baseline. ``median_output_tokens``: of the baseline.
    ``is_warmed_by_control``: only a quality stage ran, and its times are void because
    the control filled the baseline's prompt cache.
    """

    latencies: tuple[LatencyRow, ...] = ()
    ratios: tuple[RatioRow, ...] = ()
    loads: tuple[LoadRow, ...] = ()
    matched_length: RatioRow | None = None
    length_ratio: RatioRow | None = None
    prefill_share: float | None = None
    median_output_tokens: float | None = None
    cached_share: dict[str, float | None] = {}
    is_warmed_by_control: bool = False


class Acceptance(_Part, frozen=True, kw_only=True):
    """Speculation of the candidate.

    ``overall`` has the keys of ``metrics.acceptance`` (``tokens_per_pass``,
    ``acceptance_rate``, ...); ``tables`` hold rows ``by_position``, ``by_class``,
    ``by_length``, ``by_concurrency``, ``by_uptime``; ``identities`` the checks of the
    counts among themselves, each true when it holds. ``refused``: why acceptance over
    these cases says nothing. ``looks_forced``: it does not depend on the text.
    """

    overall: dict[str, float | None] = {}
    tables: dict[str, tuple[Row, ...]] = {}
    identities: dict[str, bool] = {}
    source: str = "none"
    is_synthetic: bool = False
    refused: tuple[str, ...] = ()
    looks_forced: bool = False
    notes: tuple[str, ...] = ()


class Stability(_Part, frozen=True, kw_only=True):
    """Memory, restarts and trends.

    ``events``: rows of (arm, name, count), such as crashes, restarts, preemptions,
    http_5xx, timeouts, stuck streams.
    """

    memory: tuple[MemoryRow, ...] = ()
    trends: tuple[TrendRow, ...] = ()
    events: tuple[Row, ...] = ()
    timeline: tuple[TimeBin, ...] = ()
    soak_s: float | None = None
    has_telemetry: bool = False


class Evidence(_Part, frozen=True, kw_only=True):
    """All that a gate may read, and all that a report shows beside the gates.

    Attributes:
        parity: What is wrong with the pair of routes, one sentence each; empty = fine.
        workload_matches: Both arms were sent the same cases.
        asked_otherwise: Pairs that were sent other parameters, of all pairs of which
            that is known.
        is_interleaved: Baseline and candidate blocks alternate in time.
        has_control: The baseline also ran against itself (A/A).
        validity: Checks of the client.
        reused: Baseline answers taken over from an earlier run; speed never is.
        fallback: Request features the candidate refuses or breaks, which must be routed
            around it in production; ``None`` when nobody asked the routes.
        judged_as_lossy: A change that claims to be lossless is judged by the quality of
            all its answers: equality is shown and not asked for.
        notes: What a reader should know and no gate asks.
    """

    agreed: Agreed
    routes: RouteDiff | None = None
    parity: tuple[str, ...] = ()
    workload_matches: bool | None = None
    asked_otherwise: tuple[int, int] = (0, 0)
    is_interleaved: bool | None = None
    has_control: bool = False
    validity: tuple[ValidityRow, ...] = ()
    quality: Quality = Quality()
    speed: Speed = Speed()
    acceptance: Acceptance = Acceptance()
    stability: Stability = Stability()
    launch_declared: bool = False
    maturity: str | None = None
    reused: ReusedRow | None = None
    fallback: tuple[str, ...] | None = None
    judged_as_lossy: bool = False
    notes: tuple[str, ...] = ()
