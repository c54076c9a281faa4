"""Tables about speed: ratios, loads, and how to read a speedup."""

from collections.abc import Sequence

from routeproof.gates.evidence import Speed
from routeproof.gates.facts import RatioRow
from routeproof.metrics.table import METRICS
from routeproof.reports import figures
from routeproof.reports.tables import Table, Titled, number_table

_HEADLINE = frozenset(
    {
        "output_token_throughput",
        "time_to_first_token",
        "time_per_output_token",
        "request_latency",
    }
)
"""Metrics whose ratios are shown at once; the others stand folded below."""


def ratios(rows: Sequence[RatioRow]) -> list[Titled]:
    """Paired ratios; those few readers need are folded."""
    first = [row for row in rows if row.metric in _HEADLINE]
    rest = [row for row in rows if row.metric not in _HEADLINE]
    halves = (
        ("Candidate against baseline, request by request", first, False),
        ("Further ratios", rest, True),
    )
    return [
        Titled(title, _ratio_table(some), fold) for title, some, fold in halves if some
    ]


def _ratio_table(rows: Sequence[RatioRow]) -> Table:
    head = ("metric", "of", "load", "baseline", "candidate", "ratio", "interval",
            "noise (control)", "pairs")  # fmt: skip
    return number_table(
        head,
        [
            (
                row.metric.replace("_", " "),
                row.of,
                f"{row.phase} {row.level}",
                figures.number(row.values.baseline, unit_of(row.metric)),
                figures.number(row.values.candidate, unit_of(row.metric)),
                figures.UNKNOWN if row.ratio is None else figures.times(row.ratio),
                figures.bounds(row.interval, "ratio", ""),
                "" if row.control_ratio is None else figures.times(row.control_ratio),
                f"{row.pairs:,}",
            )
            for row in rows
        ],
        words=3,
    )


def reading_speed(speed: Speed) -> list[Titled]:
    """What a speedup may come from beside speed: shorter answers, warm caches."""
    rows = [
        (label, _ratio_words(row))
        for label, row in (
            ("output length, candidate to baseline", speed.length_ratio),
            ("request latency among answers of equal length", speed.matched_length),
        )
        if row is not None
    ]
    if speed.prefill_share is not None:
        share = figures.number(speed.prefill_share, "share")
        rows.append(("time before the first token, of a baseline request", share))
    if speed.median_output_tokens is not None:
        median = figures.number(speed.median_output_tokens, "tokens")
        rows.append(("median answer of the baseline", median))
    rows += [
        (f"prompt tokens from the cache, {arm}", figures.number(share, "share"))
        for arm, share in speed.cached_share.items()
    ]
    if not rows:
        return []
    table = number_table(("is the speedup speed?", "value"), rows, words=1)
    return [Titled("How to read the speed", table)]


def _ratio_words(row: RatioRow) -> str:
    if row.ratio is None:
        return figures.UNKNOWN
    ends = figures.bounds(row.interval, "ratio", "")
    return f"{figures.times(row.ratio)} {ends} on {row.pairs:,} pairs"


def unit_of(metric: str) -> str:
    """The unit of a metric as the metric table has it; none for what is not there."""
    found = METRICS.get(metric)
    if found is not None:
        return found.unit
    return "/s" if metric.endswith("throughput") else ""


def loads(speed: Speed) -> list[Titled]:
    """One row per arm and load level."""
    rows = speed.loads
    if not rows:
        return []
    head = ("load", "arm", "requests", "failed", "concurrency reached", "requests/s",
            "output tokens/s", "inside SLOs", "goodput/s",
            "correct goodput/s")  # fmt: skip
    table = number_table(
        head,
        [
            (
                f"{row.phase} {row.level}",
                row.arm,
                f"{row.requests:,}",
                f"{row.failed:,}",
                figures.number(row.achieved_concurrency),
                figures.number(row.requests_per_s),
                figures.number(row.output_tokens_per_s),
                figures.number(row.slo_share, "share"),
                figures.number(row.goodput_per_s),
                figures.number(row.correct_goodput_per_s),
            )
            for row in rows
        ],
        words=2,
    )
    return [Titled("Every load level", table)]
