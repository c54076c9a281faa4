"""The tables of the page, section by section."""

from collections.abc import Sequence
from dataclasses import dataclass

from routeproof.gates.facts import Arms, EqualityRow, MemoryRow, RatioRow, Row
from routeproof.metrics.table import METRICS
from routeproof.reports import figures
from routeproof.reports.judgement import Judgement
from routeproof.reports.tables import Table, by_arm, of_rows
from routeproof.routes.inventory import RouteDiff

_OUTCOME_KEYS = ("phase", "outcome")
_GUARD_COLUMNS = ("check", "baseline", "candidate", "p_value", "tripped", "reason")
_HEADLINE = frozenset(
    {
        "output_token_throughput",
        "time_to_first_token",
        "time_per_output_token",
        "request_latency",
    }
)
"""Metrics whose ratios are shown at once; the others stand folded below."""


@dataclass(frozen=True, slots=True)
class Titled:
    """A table with its heading; ``is_folded`` when few readers need it."""

    title: str
    table: Table
    is_folded: bool = False


def page_tables(judgement: Judgement) -> dict[str, list[Titled]]:
    """The tables of each section, by the section's name; an empty list shows none."""
    evidence = judgement.evidence
    stability = evidence.stability
    return {
        "routes": _inventory(evidence.routes),
        "quality": [
            *_equality(evidence.quality.equality),
            *_arms("How requests ended", evidence.quality.outcomes, _OUTCOME_KEYS),
            *_plain("Degeneration guard", evidence.quality.guard, _GUARD_COLUMNS),
            *_plain("Confusion", evidence.quality.confusion),
        ],
        "latency": _ratios(evidence.speed.ratios),
        "load": _loads(judgement),
        "acceptance": _acceptance(judgement),
        "memory": [
            *_memory(stability.memory),
            *_trends(judgement),
            *_arms("Events", stability.events, ("name",)),
        ],
        "validity": _validity(judgement),
        "other": [
            titled
            for name, rows in sorted(judgement.tables.items())
            if name != "tune"
            for titled in _plain(name.replace("_", " "), rows)
        ],
    }


def _plain(
    title: str, rows: Sequence[Row], columns: Sequence[str] | None = None
) -> list[Titled]:
    return [Titled(title, of_rows(rows, columns))] if rows else []


def _arms(title: str, rows: Sequence[Row], keys: Sequence[str]) -> list[Titled]:
    return [Titled(title, by_arm(rows, keys))] if rows else []


def _inventory(routes: RouteDiff | None) -> list[Titled]:
    if routes is None:
        return []
    baseline = {field.name: field for field in routes.baseline.fields}
    candidate = {field.name: field for field in routes.candidate.fields}
    rows = []
    for name in dict.fromkeys([*baseline, *candidate]):
        sides = baseline.get(name), candidate.get(name)
        values = [
            figures.UNKNOWN if side is None or side.value is None else side.value
            for side in sides
        ]
        known = [side.known.replace("_", " ") for side in sides if side is not None]
        rows.append((name, *values, ", ".join(dict.fromkeys(known))))
    head = ("field", "baseline", "candidate", "how it is known")
    return [Titled("Every field of both routes", _text_table(head, rows))]


def _text_table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> Table:
    return Table(head=head, rows=tuple(rows), numeric=(False,) * len(head))


def _number_table(
    head: tuple[str, ...],
    rows: Sequence[tuple[str, ...]],
    *,
    words: int,
    last_is_words: bool = False,
) -> Table:
    """A table whose first ``words`` columns are text and the others numbers."""
    last = len(head) - 1 if last_is_words else len(head)
    numeric = tuple(words <= index < last for index in range(len(head)))
    return Table(head=head, rows=tuple(rows), numeric=numeric)


def _equality(rows: Sequence[EqualityRow]) -> list[Titled]:
    if not rows:
        return []
    head = ("compared with the baseline", "pairs", "same text", "near ties", "real",
            "cannot be told")  # fmt: skip
    table = _number_table(
        head,
        [
            (
                "candidate" if row.pair == "candidate" else "baseline again (control)",
                f"{row.pairs:,}",
                f"{row.equal:,}",
                *(_count(n) for n in (row.near_ties, row.real, row.cannot_tell)),
            )
            for row in rows
        ],
        words=1,
    )
    return [Titled("Same text for the same greedy request", table)]


def _count(n: int | None) -> str:
    return figures.UNKNOWN if n is None else f"{n:,}"


def _ratios(rows: Sequence[RatioRow]) -> list[Titled]:
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
    return _number_table(
        head,
        [
            (
                row.metric.replace("_", " "),
                row.of,
                f"{row.phase} {row.level}",
                figures.number(row.values.baseline, _unit(row.metric)),
                figures.number(row.values.candidate, _unit(row.metric)),
                figures.UNKNOWN if row.ratio is None else figures.times(row.ratio),
                figures.bounds(row.interval, "ratio", ""),
                "" if row.control_ratio is None else figures.times(row.control_ratio),
                f"{row.pairs:,}",
            )
            for row in rows
        ],
        words=3,
    )


def _unit(metric: str) -> str:
    """The unit of a metric as the metric table has it; none for what is not there."""
    found = METRICS.get(metric)
    if found is not None:
        return found.unit
    return "/s" if metric.endswith("throughput") else ""


def _loads(judgement: Judgement) -> list[Titled]:
    rows = judgement.evidence.speed.loads
    if not rows:
        return []
    head = ("load", "arm", "requests", "failed", "concurrency reached", "requests/s",
            "output tokens/s", "inside SLOs", "goodput/s",
            "correct goodput/s")  # fmt: skip
    table = _number_table(
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


def _acceptance(judgement: Judgement) -> list[Titled]:
    acceptance = judgement.evidence.acceptance
    overall = [
        (name.replace("_", " "), figures.number(value, _share_unit(name)))
        for name, value in acceptance.overall.items()
    ]
    found = []
    if overall:
        table = _number_table(("measure", "value"), overall, words=1)
        found.append(Titled(f"Over the whole run (source: {acceptance.source})", table))
    drawn = {"by_position", "by_class"}
    for name, rows in sorted(acceptance.tables.items()):
        if name not in drawn:
            found += _plain(name.replace("_", " ").capitalize(), rows)
    if acceptance.identities:
        held = [
            (name.replace("_", " "), "holds" if holds else "does not hold")
            for name, holds in sorted(acceptance.identities.items())
        ]
        table = _text_table(("identity of the counts", ""), held)
        found.append(Titled("Do the counts agree among themselves", table))
    return found


def _share_unit(name: str) -> str:
    return "share" if name.endswith(("_rate", "_share", "coverage")) else ""


def _resource_unit(row: MemoryRow) -> str:
    return "share" if row.name.endswith("_share") else row.unit


def _memory(rows: Sequence[MemoryRow]) -> list[Titled]:
    if not rows:
        return []
    head = ("resource", "peak, baseline", "peak, candidate", "ratio",
            "after drain, candidate", "per hour, candidate", "source")  # fmt: skip
    table = _number_table(
        head,
        [
            (
                row.name.removesuffix("_bytes").replace("_", " "),
                figures.number(row.peak.baseline, _resource_unit(row)),
                figures.number(row.peak.candidate, _resource_unit(row)),
                _ratio(row.peak),
                figures.number(row.after_drain.candidate, _resource_unit(row)),
                figures.number(row.per_hour.candidate, _resource_unit(row)),
                row.source,
            )
            for row in rows
        ],
        words=1,
        last_is_words=True,
    )
    return [Titled("Memory of both arms", table)]


def _ratio(arms: Arms) -> str:
    ratio = arms.ratio()
    return "" if ratio is None else figures.times(ratio)


def _trends(judgement: Judgement) -> list[Titled]:
    rows = judgement.evidence.stability.trends
    if not rows:
        return []
    head = ("metric", "arm", "first third", "last third", "change", "requests")
    table = _number_table(
        head,
        [
            (
                row.metric.replace("_", " "),
                row.arm,
                figures.number(row.first, _unit(row.metric)),
                figures.number(row.last, _unit(row.metric)),
                figures.number(row.change_share, "share"),
                f"{row.n:,}",
            )
            for row in rows
        ],
        words=2,
    )
    return [Titled("From the first to the last third of the soak", table)]


def _validity(judgement: Judgement) -> list[Titled]:
    rows = judgement.evidence.validity
    if not rows:
        return []
    words = {True: "fine", False: "not fine", None: "not measured"}
    table = _text_table(
        ("check", "measured", "limit", "", "why"),
        [
            (
                row.name.replace("_", " "),
                figures.number(row.value, row.unit),
                figures.number(row.limit, row.unit),
                words[row.is_ok],
                row.reason,
            )
            for row in rows
        ],
    )
    return [Titled("Was the measuring client itself in the way?", table)]
