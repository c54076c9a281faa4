"""The reference of metrics, rates and acceptance, as its page prints it."""

from collections.abc import Sequence
from typing import NamedTuple

from routeproof.metrics.table import METRICS


class Shown(NamedTuple):
    """A line of the reference that is no row of ``METRICS``."""

    name: str
    unit: str
    better: str
    formula: str
    needs: str


RATES: tuple[Shown, ...] = (
    Shown(
        "requests_per_s",
        "1/s",
        "higher",
        "served requests that ended in the steady window / its length",
        "start and end of the requests",
    ),
    Shown(
        "whole_requests_per_s",
        "1/s",
        "higher",
        "served requests / time from the first start to the last end, ramps included",
        "as above",
    ),
    Shown(
        "output_tokens_per_s",
        "tokens/s",
        "higher",
        "output tokens of served requests that ended in the window / its length",
        "a token count of every served request",
    ),
    Shown(
        "slo_share",
        "1",
        "higher",
        "requests inside every SLO / all due requests, failed ones included",
        "an SLO in the proof file",
    ),
    Shown(
        "goodput_per_s",
        "1/s",
        "higher",
        "requests inside every SLO that ended in the window / its length",
        "an SLO in the proof file",
    ),
    Shown(
        "correct_goodput_per_s",
        "1/s",
        "higher",
        "the same, of answers whose headline score is at least one half",
        "an SLO and scored answers",
    ),
    Shown(
        "achieved_concurrency",
        "requests",
        "-",
        "mean number of requests in flight in the window",
        "start and end of the requests",
    ),
)
"""Rates of one arm at one load, see ``metrics.windows``."""

ACCEPTANCE: tuple[Shown, ...] = (
    Shown(
        "tokens_per_pass",
        "tokens",
        "higher",
        "(output tokens - requests) / (S + P), over all decode passes",
        "passes with and without a draft",
    ),
    Shown(
        "acceptance_length",
        "tokens",
        "higher",
        "1 + A / S, over passes that had a draft",
        "accepted drafts and verify passes",
    ),
    Shown(
        "acceptance_rate",
        "1",
        "higher",
        "A / D",
        "accepted and drafted tokens; not of trees",
    ),
    Shown("rejection_rate", "1", "lower", "1 - A / D", "as above"),
    Shown("coverage", "1", "higher", "S / (S + P)", "passes of both kinds"),
    Shown(
        "full_accept_share",
        "1",
        "higher",
        "verify passes that accepted every draft / S",
        "a histogram per request",
    ),
    Shown(
        "zero_accept_share",
        "1",
        "lower",
        "verify passes that accepted none / S",
        "a histogram per request",
    ),
    Shown(
        "waste",
        "1",
        "lower",
        "(D - A) / (D + S): verified positions that gave no token",
        "drafted, accepted and passes",
    ),
    Shown(
        "step_ratio",
        "1",
        "lower",
        "(time per token x tokens per pass) of the candidate / time per token of the "
        "baseline, over pairs",
        "streamed answers of both arms and counts per request",
    ),
    Shown(
        "break_even_tokens_per_pass",
        "tokens",
        "lower",
        "the step ratio: with fewer tokens per pass the draft costs more than it saves",
        "as above",
    ),
)
"""Numbers of speculation: S verify passes, P plain passes, D drafted, A accepted."""

_HEAD = "| name | unit | better | formula | needs |\n|---|---|---|---|---|"


def metrics_page() -> str:
    """Every metric as Markdown tables."""
    per_request = [
        Shown(m.name, m.unit, m.better, m.formula, m.needs) for m in METRICS.values()
    ]
    parts: tuple[tuple[str, Sequence[Shown]], ...] = (
        ("### Of one request", per_request),
        ("### Of one arm at one load", RATES),
        ("### Of speculation", ACCEPTANCE),
    )
    return "\n".join(f"{title}\n\n{_HEAD}\n{_lines(rows)}\n" for title, rows in parts)


def _lines(rows: Sequence[Shown]) -> str:
    return "\n".join(
        f"| `{row.name}` | {row.unit} | {row.better} | {row.formula} | {row.needs} |"
        for row in rows
    )
