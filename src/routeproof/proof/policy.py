"""Tolerances and limits as a person agrees them before a run."""

from typing import Literal

from routeproof.proof.route import _Strict


class JudgeSpec(_Strict, frozen=True, kw_only=True):
    """An OpenAI-compatible endpoint that judges answers."""

    endpoint: str
    model: str
    api_key_env: str | None = None


class QualityGateSpec(_Strict, frozen=True, kw_only=True):
    """One quality question: a metric, where it is asked, and the loss allowed.

    ``tolerance`` is an absolute loss of the mean score, 0.02 being two points.
    """

    metric: str
    tolerance: float
    slice: dict[str, str] = {}
    k: int | None = None
    samples: int | None = None
    judge: JudgeSpec | None = None
    required: bool = True


class GainSpec(_Strict, frozen=True, kw_only=True):
    """The speedup that makes the change worth it, as a ratio to the baseline."""

    metric: str = "output_token_throughput"
    at_least: float = 1.0


class AcceptanceSpec(_Strict, frozen=True, kw_only=True):
    """Floors of a speculative route, and the run it must not fall behind.

    ``reference`` is a file that ``routeproof acceptance RUN --save FILE`` wrote, on the
    same workload; ``fall_max_share`` is the relative fall of tokens per pass or of the
    acceptance rate that is let pass.
    """

    tokens_per_pass_min: float | None = None
    acceptance_rate_min: float | None = None
    reference: str | None = None
    fall_max_share: float = 0.05


class PerformanceSpec(_Strict, frozen=True, kw_only=True):
    """SLOs by metric and percentile, in seconds, and the gain asked for.

    Example: ``slo: {time_to_first_token_s: {p95: 0.5}}``.
    """

    slo: dict[str, dict[str, float]] = {}
    gain: GainSpec = GainSpec()
    acceptance: AcceptanceSpec = AcceptanceSpec()
    worse_tolerance_ratio: float = 1.05


class MemorySpec(_Strict, frozen=True, kw_only=True):
    """Memory limits as ratios candidate / baseline."""

    peak_bytes_ratio_max: float | None = None
    kv_capacity_ratio_min: float | None = None
    leak_bytes_per_hour_max: float | None = None


class UntilDecidedSpec(_Strict, frozen=True, kw_only=True):
    """Stop sending quality requests as soon as every required question is settled.

    ``floor``: fewest cases of a question before it may be settled. ``early_share``:
    share of alpha spent on certifying before all cases are used, ``early_harm_share``
    the same for finding harm; the fixed-size test at the end gets the rest.
    """

    floor: int = 50
    early_share: float = 0.5
    early_harm_share: float = 0.8


class PolicySpec(_Strict, frozen=True, kw_only=True):
    """Error rates and switches of the verdict.

    ``alpha`` is one-sided. ``agreed_by`` is printed on the release sheet.
    ``until_decided`` draws the cases in random order and stops early.
    """

    alpha: float = 0.05
    power: float = 0.8
    length_ratio_guard: float = 0.1
    keep_going: bool = False
    plan: Literal["by_change", "full", "spot_check"] = "by_change"
    agreed_by: str | None = None
    until_decided: UntilDecidedSpec | None = None


class RollbackSpec(_Strict, frozen=True, kw_only=True):
    """The way back. ``drilled`` is filled by ``routeproof canary drill``."""

    to: str = "baseline"
    drilled: str | None = None
