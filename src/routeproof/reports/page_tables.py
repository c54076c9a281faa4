"""The tables of the page, section by section."""

from collections.abc import Iterator, Mapping, Sequence

from routeproof.gates.facts import Arms, EqualityRow, MemoryRow, Row
from routeproof.reports import figures
from routeproof.reports.agreed import agreed_table
from routeproof.reports.judgement import Judgement
from routeproof.reports.speed_tables import loads, ratios, reading_speed, unit_of
from routeproof.reports.tables import (
    Titled,
    by_arm,
    number_table,
    of_rows,
    text_table,
)
from routeproof.routes.inventory import Inventory, RouteDiff

_OUTCOME_KEYS = ("phase", "outcome")
_GUARD_COLUMNS = ("check", "baseline", "candidate", "p_value", "tripped", "reason")


def page_tables(judgement: Judgement) -> dict[str, list[Titled]]:
    """The tables of each section, by the section's name; an empty list shows none."""
    evidence = judgement.evidence
    stability = evidence.stability
    return {
        "routes": _routes(evidence.routes),
        "quality": [
            *_equality(evidence.quality.equality),
            *_arms("How requests ended", evidence.quality.outcomes, _OUTCOME_KEYS),
            *_plain("Degeneration guard", evidence.quality.guard, _GUARD_COLUMNS),
            *_plain("Confusion", evidence.quality.confusion),
        ],
        "latency": [*ratios(evidence.speed.ratios), *reading_speed(evidence.speed)],
        "load": loads(evidence.speed),
        "acceptance": _acceptance(judgement),
        "memory": [
            *_memory(stability.memory),
            *_trends(judgement),
            *_arms("Events", stability.events, ("name",)),
        ],
        "validity": _validity(judgement),
        "agreed": [Titled("What was agreed before the run", agreed_table(judgement))],
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


PINNED = (
    ("target", "model", ("revision",)),
    ("draft", "speculation.draft.model", ("speculation.draft.revision",)),
    ("tokenizer", "tokenizer.name", ("tokenizer.revision",)),
    ("chat template", "tokenizer.chat_template_digest", ()),
    ("engine", "engine.name", ("engine.version", "engine.commit", "engine.maturity")),
)
"""What a release names by version: label, field, and the fields that pin it."""


def _routes(routes: RouteDiff | None) -> list[Titled]:
    if routes is None:
        return []
    sides = (routes.baseline, routes.candidate)
    pinned = [
        (label, *(_pinned(side, name, pins) for side in sides))
        for label, name, pins in PINNED
        if any(side.value(each) for side in sides for each in (name, *pins))
    ]
    found = []
    if pinned:
        head = ("version of the", "baseline", "candidate")
        found.append(Titled("Revisions", text_table(head, pinned)))
    return [*found, _inventory(routes)]


def _pinned(side: Inventory, name: str, pins: Sequence[str]) -> str:
    """A name and what pins it: ``toy at 3f2a``; unknown where neither is known."""
    values = [side.value(pin) for pin in pins]
    pin = " ".join(value for value in values if value)
    return " at ".join(x for x in (side.value(name), pin) if x) or figures.UNKNOWN


def _inventory(routes: RouteDiff) -> Titled:
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
    return Titled("Every field of both routes", text_table(head, rows), is_folded=True)


def _equality(rows: Sequence[EqualityRow]) -> list[Titled]:
    if not rows:
        return []
    head = ("compared with the baseline", "pairs", "same text", "near ties", "real",
            "cannot be told")  # fmt: skip
    table = number_table(
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


def _acceptance(judgement: Judgement) -> list[Titled]:
    acceptance = judgement.evidence.acceptance
    overall = list(_measures(acceptance.overall))
    found = []
    if overall:
        table = number_table(("measure", "value"), overall, words=1)
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
        table = text_table(("identity of the counts", ""), held)
        found.append(Titled("Do the counts agree among themselves", table))
    return found


def _measures(overall: Mapping[str, float | None]) -> Iterator[tuple[str, str]]:
    """Each measure with the interval that its ``_low`` and ``_high`` give."""
    for name, value in overall.items():
        if name.endswith(("_low", "_high")):
            continue
        unit = _share_unit(name)
        low, high = overall.get(f"{name}_low"), overall.get(f"{name}_high")
        ends = ""
        if low is not None and high is not None:
            ends = f" [{figures.number(low, unit)}, {figures.number(high, unit)}]"
        yield name.replace("_", " "), figures.number(value, unit) + ends


def _share_unit(name: str) -> str:
    return (
        "share"
        if name.endswith(("_rate", "_rate_macro", "_share", "coverage", "waste"))
        else ""
    )


def _resourceunit_of(row: MemoryRow) -> str:
    return "share" if row.name.endswith("_share") else row.unit


def _memory(rows: Sequence[MemoryRow]) -> list[Titled]:
    if not rows:
        return []
    head = ("resource", "peak, baseline", "peak, candidate", "ratio",
            "after drain, candidate", "per hour, candidate", "source")  # fmt: skip
    table = number_table(
        head,
        [
            (
                row.name.removesuffix("_bytes").replace("_", " "),
                figures.number(row.peak.baseline, _resourceunit_of(row)),
                figures.number(row.peak.candidate, _resourceunit_of(row)),
                _ratio(row.peak),
                figures.number(row.after_drain.candidate, _resourceunit_of(row)),
                figures.number(row.per_hour.candidate, _resourceunit_of(row)),
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
    table = number_table(
        head,
        [
            (
                row.metric.replace("_", " "),
                row.arm,
                figures.number(row.first, unit_of(row.metric)),
                figures.number(row.last, unit_of(row.metric)),
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
    table = text_table(
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
