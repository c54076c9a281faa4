"""Is the gain that was asked for proven?"""

from routeproof.gates.evidence import Evidence
from routeproof.gates.facts import RatioRow
from routeproof.gates.result import Check, Status
from routeproof.gates.slo import metric_of, target_load
from routeproof.gates.slower import is_slower

PREFILL_DOMINATED = 0.5
"""Share of request latency before the first token above which decode hides."""

A_GAIN = 1.001
"""Lower limit from which a ratio counts as faster: below it are rounding and jitter."""

ALIKE = 0.98
"""Output length, candidate / baseline, from which answers are not called shorter."""

SHORT_OUTPUT_TOKENS = 16.0
"""Median answer below which a decode gain cannot show."""


def gain_checks(evidence: Evidence) -> list[Check]:
    """Whether the gain is there at the target load, and not from shorter answers.

    Proven when the lower limit of the paired gain reaches what was asked and the gain
    exceeds everything the A/A control shows. Absent when the upper limit is below
    what was asked. Who asks for 1.0 asks for no gain: then the check passes when a
    loss beyond ``worse_tolerance_ratio`` is excluded, and fails when one is shown.
    """
    asked = evidence.agreed.performance.gain
    row = _row(evidence, asked.metric)
    if row is None or row.gain is None or row.gain_interval is None:
        why = "it was not measured" if row is None else row.note or "no interval"
        return [
            Check(
                name=f"gain[{asked.metric}]",
                status=Status.NOT_MEASURED if row is None else Status.INCONCLUSIVE,
                reason=f"no interval of the paired {asked.metric} at the target load: "
                f"{why}",
                estimate=None if row is None else row.gain,
                limit=asked.at_least,
            )
        ]
    tolerance = evidence.agreed.performance.worse_tolerance_ratio
    status, word = _status(row, asked.at_least, tolerance)
    low, high = row.gain_interval.low, row.gain_interval.high
    limits = f" [{low:.2f}, {high:.2f}]" if low is not None and high is not None else ""
    gain = Check(
        name=f"gain[{asked.metric}]",
        status=status,
        reason=f"{asked.metric} at {row.level} is {row.gain:.2f} times the baseline's"
        f"{limits}, asked {asked.at_least:g}: {word}",
        kind="ratio",
        unit="1",
        baseline=row.values.baseline,
        candidate=row.values.candidate,
        estimate=row.gain,
        interval=row.gain_interval,
        limit=asked.at_least,
        n=row.pairs,
    )
    return [gain, *_shorter(evidence, gain)]


def _row(evidence: Evidence, metric: str) -> RatioRow | None:
    load = target_load(evidence)
    name = metric_of(metric)
    means = [
        row for row in evidence.speed.ratios if row.metric == name and row.of == "mean"
    ]
    at_load = [row for row in means if (row.phase, row.level) == load]
    return at_load[0] if at_load else (means[-1] if means else None)


def _status(row: RatioRow, asked: float, tolerance: float) -> tuple[Status, str]:
    interval = row.gain_interval
    if row.gain is None or interval is None:
        return Status.NOT_MEASURED, "not known"
    low, high = interval.low, interval.high
    if low is not None and low >= max(asked, A_GAIN):
        if row.gain > noise_top(row):
            return Status.PASSED, "proven"
        if asked > 1:
            return Status.INCONCLUSIVE, "no more than the baseline against itself"
    if asked <= 1:
        return _no_slower(row, tolerance)
    if high is not None and high < asked:
        return Status.FAILED, "not there"
    return Status.INCONCLUSIVE, "not proven"


def _no_slower(row: RatioRow, tolerance: float) -> tuple[Status, str]:
    """No gain was asked: the candidate must only not be slower."""
    low = None if row.gain_interval is None else row.gain_interval.low
    if is_slower(row, tolerance):
        return Status.FAILED, "slower"
    if low is not None and low >= 1 / tolerance:
        return Status.PASSED, "no slower"
    return Status.INCONCLUSIVE, "a loss is not excluded"


def noise_top(row: RatioRow) -> float:
    """The largest gain the baseline shows against itself; 1 without a control."""
    control = row.control_interval
    if control is None:
        return 1.0
    edge = control.high if row.better == "higher" else control.low
    if not edge:
        return 1.0
    return max(1.0, edge if row.better == "higher" else 1 / edge)


def _shorter(evidence: Evidence, gain: Check) -> list[Check]:
    """Faster because shorter: the gain must also hold at equal output length."""
    matched, length = evidence.speed.matched_length, evidence.speed.length_ratio
    is_faster = gain.interval is not None and (gain.interval.low or 0.0) >= A_GAIN
    is_shorter = length is None or (length.ratio or 1.0) < ALIKE
    if not is_faster or not is_shorter or matched is None or matched.gain is None:
        return []
    interval = matched.gain_interval
    high = None if interval is None else interval.high
    low = None if interval is None else interval.low
    shown = f"at equal output length it is {matched.gain:.2f} times as fast"
    if low is not None and low > 1:
        status, reason = Status.PASSED, f"{shown}: not from shorter answers"
    elif high is not None and high < 1:
        status, reason = Status.FAILED, f"{shown}: faster because shorter"
    else:
        status, reason = Status.INCONCLUSIVE, f"{shown}: may be faster because shorter"
    return [
        Check(
            name="not_because_shorter",
            status=status,
            reason=f"{reason} ({matched.pairs} pairs)",
            kind="ratio",
            estimate=matched.gain,
            interval=interval,
            limit=1.0,
            n=matched.pairs,
            required=status is not Status.INCONCLUSIVE or matched.pairs >= 30,
        )
    ]


def is_proven(checks: list[Check]) -> bool:
    """Whether the candidate is shown to be faster, and not by shorter answers."""
    first = checks[0]
    low = None if first.interval is None else first.interval.low
    return (
        low is not None
        and low >= A_GAIN
        and all(check.status is Status.PASSED for check in checks if check.required)
    )


def is_hidden(evidence: Evidence) -> bool:
    """Whether the workload leaves a decode gain little room to show."""
    share = evidence.speed.prefill_share
    median = evidence.speed.median_output_tokens
    return (share is not None and share > PREFILL_DOMINATED) or (
        median is not None and median < SHORT_OUTPUT_TOKENS
    )
