"""Is the candidate shown to be slower anywhere that was declared?"""

from routeproof.gates.evidence import Evidence
from routeproof.gates.facts import RatioRow
from routeproof.gates.result import Check, Status

JUDGED = frozenset(
    {
        "time_to_first_token",
        "time_per_output_token",
        "request_latency",
        "output_token_throughput",
    }
)
"""Metrics that fail the gate when worse. A chunk gap grows with every bundle of
accepted tokens, so that it says nothing of "slower" alone."""


NOTICEABLE_S = {
    "time_to_first_token": 0.010,
    "request_latency": 0.010,
    "time_per_output_token": 0.001,
}
"""A loss below this many seconds is no finding, whatever its ratio: the load client
itself is trusted to 10 ms in a tail (``docs/load.md``), and a speculative pass adds a
few milliseconds to a first token that nobody waits for."""


def slower_checks(evidence: Evidence) -> list[Check]:
    """One check for each judged ratio at each declared load.

    Failed when the candidate is materially worse (beyond ``worse_tolerance_ratio`` and
    ``NOTICEABLE_S``), significantly so (the interval excludes "equal"), and worse than
    anything the baseline shows against itself. Passed when a loss beyond the tolerance
    is excluded. What is open stays open: not required, but shown.
    """
    tolerance = evidence.agreed.performance.worse_tolerance_ratio
    rows = [row for row in evidence.speed.ratios if row.metric in JUDGED]
    checks = [_check(row, tolerance) for row in rows]
    return [*checks, *_at_peak(rows, tolerance)]


def is_slower(row: RatioRow, tolerance: float) -> bool:
    """Materially, significantly, and beyond the A/A noise."""
    interval = row.gain_interval
    if row.gain is None or interval is None or interval.high is None:
        return False
    before, after = row.values.baseline, row.values.candidate
    floor_s = NOTICEABLE_S.get(row.metric)
    if floor_s is not None and before is not None and after is not None:
        if after - before < floor_s:
            return False
    return (
        row.gain < 1 / tolerance
        and interval.high < 1
        and interval.high < _noise(row)[0]
    )


def _noise(row: RatioRow) -> tuple[float, float]:
    """Gains the baseline shows against itself; (1, 1) without a control.

    One, not wider, because a control far from 1 is a fault of the stack that the
    parity gate names, and must not become a licence to be slow without limit.
    """
    if row.control_interval is None:
        return 1.0, 1.0
    low, high = row.control_interval.low, row.control_interval.high
    if row.better == "lower":
        low, high = (1 / high if high else None), (1 / low if low else None)
    return min(1.0, low or 1.0), max(1.0, high or 1.0)


def _check(row: RatioRow, tolerance: float) -> Check:
    interval = row.gain_interval
    low = None if interval is None else interval.low
    if is_slower(row, tolerance):
        status, word = Status.FAILED, "slower"
    elif low is not None and low >= 1 / tolerance:
        status, word = Status.PASSED, "not slower"
    else:
        status, word = Status.INCONCLUSIVE, "open"
    return Check(
        name=f"not_slower[{row.metric} {row.of} {row.phase} {row.level}]",
        status=status,
        reason=f"{_told(row)}: {word}",
        kind="ratio",
        unit="1",
        baseline=row.values.baseline,
        candidate=row.values.candidate,
        estimate=row.gain,
        interval=interval,
        limit=1 / tolerance,
        n=row.pairs,
        required=False,
        notes=() if row.control_ratio is None else (f"A/A {row.control_ratio:.3f}",),
    )


def _told(row: RatioRow) -> str:
    name = f"{row.metric} {row.of} at {row.level}"
    if row.gain is None or row.gain_interval is None:
        return f"{name} has no interval ({row.note or f'{row.pairs} pairs'})"
    low, high = row.gain_interval.low, row.gain_interval.high
    shown = f"{name} is {row.gain:.2f} times as good"
    return shown if low is None or high is None else f"{shown} [{low:.2f}, {high:.2f}]"


def _at_peak(rows: list[RatioRow], tolerance: float) -> list[Check]:
    """Fast when idle and slower at peak is a finding of its own."""
    checks = []
    means = [row for row in rows if row.of == "mean" and row.gain is not None]
    for metric in sorted({row.metric for row in means}):
        levels = [row for row in means if row.metric == metric]
        first, last = levels[0], levels[-1]
        is_faster = (first.gain or 0) > 1
        if len(levels) < 2 or not is_faster or not is_slower(last, tolerance):
            continue
        checks.append(
            Check(
                name=f"slower_at_peak[{metric}]",
                status=Status.FAILED,
                reason=f"fast when idle, slower at peak: {_told(first)} but "
                f"{_told(last)}",
                kind="ratio",
                estimate=last.gain,
                interval=last.gain_interval,
                n=last.pairs,
                required=False,
            )
        )
    return checks
