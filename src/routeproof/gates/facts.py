"""What was measured, as small rows: gates judge on them and reports show them.

Everything here is already reduced: no row grows with the number of requests. Times
are seconds, shares are 0 to 1, and ``None`` means "not known", never zero.
"""

from typing import Literal

import msgspec

from routeproof.stats.interval import Interval, NonInferiority

Cell = str | float | int | bool | None
Row = dict[str, Cell]


class _Fact(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of the rows."""


class Arms(_Fact, frozen=True, kw_only=True):
    """One number for each arm; ``None`` where the arm did not run or cannot tell."""

    baseline: float | None = None
    candidate: float | None = None
    control: float | None = None

    def ratio(self) -> float | None:
        """Candidate / baseline, or ``None`` when either is unknown or zero."""
        if self.baseline is None or self.candidate is None or self.baseline == 0:
            return None
        return self.candidate / self.baseline


class QualityRow(_Fact, frozen=True, kw_only=True):
    """One quality question over its pairs: a line of the forest plot.

    Attributes:
        question: Unique, such as ``exact_match[class=factual_qa]``; the check of the
            correctness gate with the same name holds the status.
        origin: ``declared`` in the proof file, ``default`` (the file declares none),
            ``required_class``, ``outcome`` (errors, truncations, empty answers) or
            ``screening`` (nobody asked; looked at so that no slice hides).
        units: Independent cases or clusters compared.
        missing: Pairs of which one arm brought no score; ``answer`` counts each as a
            loss before it certifies.
        unanswered: Pairs of which neither arm brought a score.
        losses: Units on which the candidate is worse (binary scores).
        control_difference: Control - baseline, the noise of the stack itself.
        adjusted_harm_p: Harm p-value after Holm over the screened slices.
        pairs_required: Minimum count the proof file asks of this slice.
        power: Probability that so many units certify the tolerance of a required
            question, at the flips (or the spread of scores) that were seen and no
            true loss; ``None`` in a run that stops when it is decided.
        ceiling: Units of the question in the whole workload, in a run that stops as
            soon as it is decided; ``None`` in a run of fixed size.
        settled_after: Units after which such a question was settled.
    """

    question: str
    metric: str
    slice: dict[str, str] = {}
    origin: Literal["declared", "default", "required_class", "outcome", "screening"]
    is_required: bool = True
    is_binary: bool = True
    units: int = 0
    missing: int = 0
    unanswered: int = 0
    means: Arms = Arms()
    losses: int | None = None
    gains: int | None = None
    control_losses: int | None = None
    control_gains: int | None = None
    answer: NonInferiority | None = None
    adjusted_harm_p: float | None = None
    pairs_required: int | None = None
    power: float | None = None
    ceiling: int | None = None
    settled_after: int | None = None


class JudgeRow(_Fact, frozen=True, kw_only=True):
    """A judge, a model or people, and whether it can be believed.

    Attributes:
        scorer: Whose scores it gave: ``preference``, ``people_preference`` ...
        who: The model as its endpoint names it, or ``people``.
        n: Pairs or answers put before it.
        completeness_share: Share of them with a value.
        mean: Mean preference for the candidate, or mean score of its answers.
        identical_share: Pairs with equal texts: ties without a call.
        inconsistency_share: Judged pairs whose verdict the order changed.
        first_position_share: Points of the answer shown first; 0.5 is fair.
        length_adjusted: Mean preference at equal length.
        length_slope: Log odds per unit of ln(length ratio).
        placebo_mean: Mean preference of baseline against control.
        labels: Things it judged that people labelled too.
        agreed_share, kappa: Its agreement with the people, bare and beyond chance; of
            people the lowest between two of them.
        problems: Why it decides nothing; empty when it may decide.
        notes: What a reader should know besides.
    """

    scorer: str
    who: str
    n: int
    completeness_share: float | None = None
    mean: float | None = None
    identical_share: float | None = None
    inconsistency_share: float | None = None
    first_position_share: float | None = None
    length_adjusted: float | None = None
    length_slope: float | None = None
    placebo_mean: float | None = None
    labels: int = 0
    agreed_share: float | None = None
    kappa: float | None = None
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


class Flip(_Fact, frozen=True, kw_only=True):
    """One pair whose score changed, with both answers (cut to 4,000 characters).

    Attributes:
        direction: ``loss``: baseline better; ``gain``: candidate better.
        phase, level: Where the answers were given.
        first_divergence: Index of the first differing character, ``None`` if equal.
        baseline_trace, candidate_trace: How the scorer came to its score: the scorer's
            name, and what it says of the answer.
    """

    question: str
    case_id: str
    trial: int
    class_: str = msgspec.field(name="class")
    direction: Literal["loss", "gain"]
    baseline_score: float | None
    candidate_score: float | None
    baseline_text: str
    candidate_text: str
    baseline_outcome: str = "completed"
    candidate_outcome: str = "completed"
    prompt: str = ""
    reference: str | None = None
    first_divergence: int | None = None
    phase: str = ""
    level: str = ""
    baseline_trace: str = ""
    candidate_trace: str = ""


class Divergence(_Fact, frozen=True, kw_only=True):
    """Where one greedy text leaves the baseline's.

    Attributes:
        before: The last characters that both have.
        baseline, other: The tokens after them; the next characters where no tokens
            are known.
        nats: How far the other token lies below the baseline's best, by the baseline's
            own log probabilities; at least so far with ``is_exact`` false. ``None``
            without them.
        step_nats: Of the grid that these lie on, as bfloat16 logits do; ``None`` where
            they show none.
    """

    case_id: str
    kind: Literal["near_tie", "real", "unknown"]
    before: str
    baseline: str
    other: str
    nats: float | None = None
    is_exact: bool = False
    step_nats: float | None = None


class EqualityRow(_Fact, frozen=True, kw_only=True):
    """How often two arms gave the same text to the same greedy request.

    ``near_ties`` are divergences at a token that lies within ``near_tie_nats`` of the
    baseline's best (0.1, or as far as the control's own divergences reach), or two
    steps of the grid of its logits below; ``real``
    those where it does not; the rest
    cannot be told. ``divergence_share`` are quantiles (0.1, 0.5, 0.9) of the place of
    the first difference, as a share of the baseline text.

    ``cases`` counts those that baseline, control and candidate all answered; of them
    ``control_only`` are those whose baseline text the control repeats in every trial
    and the candidate does not, ``candidate_only`` the reverse. ``phase`` and ``level``
    are empty for the judged phase as a whole. ``divergences`` are some to read, real
    ones first.
    """

    pair: Literal["candidate", "control"]
    pairs: int
    equal: int
    near_ties: int | None = None
    real: int | None = None
    cannot_tell: int | None = None
    divergence_share: tuple[float, ...] = ()
    phase: str = ""
    level: str = ""
    cases: int | None = None
    control_only: int | None = None
    candidate_only: int | None = None
    near_tie_nats: float | None = None
    divergences: tuple[Divergence, ...] = ()


class Percentile(_Fact, frozen=True, kw_only=True):
    """A nearest-rank percentile with its order-statistic interval.

    ``value`` is ``None`` with fewer than ``n_needed`` samples, or when it falls into
    the failures (``is_infinite``).
    """

    q: float
    value: float | None
    low: float | None = None
    high: float | None = None
    n_needed: int | None = None
    is_infinite: bool = False


class LatencyRow(_Fact, frozen=True, kw_only=True):
    """One metric of one arm at one load: percentiles, failures as +inf in the tail.

    ``n`` counts all requests with a due time; ``failed`` those without an answer,
    ``unknown`` those served whose value cannot be told. ``ecdf`` is at most 120 points
    ``(value, share)`` over the served.
    """

    arm: str
    phase: str
    level: str
    metric: str
    unit: str
    n: int
    failed: int
    unknown: int
    mean: float | None
    percentiles: tuple[Percentile, ...] = ()
    ecdf: tuple[tuple[float, float], ...] = ()


class RatioRow(_Fact, frozen=True, kw_only=True):
    """A paired ratio candidate / baseline of one metric at one load.

    ``gain`` is the ratio turned so that above 1 is better whatever the metric.
    ``of`` says what of the metric: ``mean``, ``p95`` ... ``note`` says why something
    is unknown.
    """

    metric: str
    of: str
    phase: str
    level: str
    better: Literal["lower", "higher"]
    pairs: int
    blocks: int
    values: Arms = Arms()
    ratio: float | None = None
    interval: Interval | None = None
    gain: float | None = None
    gain_interval: Interval | None = None
    control_ratio: float | None = None
    control_interval: Interval | None = None
    note: str | None = None


class LoadRow(_Fact, frozen=True, kw_only=True):
    """One arm at one load level: a point of the sweep curves.

    Attributes:
        asked: Concurrency or request rate of the level, from its name.
        window_s: Steady part of the level on the run's clock: start, end.
        whole_requests_per_s: Throughput with the ramps.
        slo_share: Requests inside every SLO / all due requests.
        correct_goodput_per_s: Inside every SLO and scored correct.
    """

    arm: str
    phase: str
    level: str
    kind: Literal["concurrency", "request_rate"] = "concurrency"
    asked: float | None = None
    requests: int = 0
    failed: int = 0
    achieved_concurrency: float | None = None
    window_s: tuple[float, float] | None = None
    requests_per_s: float | None = None
    whole_requests_per_s: float | None = None
    output_tokens_per_s: float | None = None
    goodput_per_s: float | None = None
    correct_goodput_per_s: float | None = None
    slo_share: float | None = None


class LengthRow(_Fact, frozen=True, kw_only=True):
    """A length distribution: ``counts[i]`` requests in edges[i] to edges[i + 1]."""

    arm: str
    what: Literal["prompt_tokens", "output_tokens", "output_characters"]
    n: int
    mean: float | None
    edges: tuple[float, ...] = ()
    counts: tuple[int, ...] = ()


class MemoryRow(_Fact, frozen=True, kw_only=True):
    """One resource of both arms: peak, state after drain, trend.

    ``name`` such as ``device_memory_bytes``, ``process_rss_bytes``, ``kv_used_share``,
    ``preemptions``. ``per_hour`` is the slope of the soak (or the longest phase).
    """

    name: str
    unit: str
    peak: Arms = Arms()
    after_drain: Arms = Arms()
    per_hour: Arms = Arms()
    per_hour_low: Arms = Arms()
    samples: Arms = Arms()
    source: str = ""


class TrendRow(_Fact, frozen=True, kw_only=True):
    """A metric over the soak: first and last third, and the share of the change."""

    metric: str
    arm: str
    first: float | None
    last: float | None
    change_share: float | None
    p_value: float | None = None
    n: int = 0


class ReusedRow(_Fact, frozen=True, kw_only=True):
    """Quality answers of the baseline that were taken over from an earlier run.

    Attributes:
        run_id, measured: The earlier run and when it began.
        requests: Answers taken over, its control's included.
        again, again_differs: Cases that were asked again, and how many of the new
            answers differ from those taken over; 0 where answers are sampled.
        before, before_differs: The same between the baseline and the control of the
            earlier run: what its noise alone makes differ.
    """

    run_id: str
    measured: str
    requests: int
    again: int = 0
    again_differs: int = 0
    before: int = 0
    before_differs: int = 0


class TimeBin(_Fact, frozen=True, kw_only=True):
    """A bin of the time line: requests that ended in it, by outcome."""

    start_s: float
    end_s: float
    arm: str
    phase: str
    outcomes: dict[str, int]
    median_latency_s: float | None = None


class ValidityRow(_Fact, frozen=True, kw_only=True):
    """One check of the measuring client itself; ``is_ok`` ``None`` = not measured."""

    name: str
    value: float | None
    limit: float | None
    unit: str
    is_ok: bool | None
    reason: str
