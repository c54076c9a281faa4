"""The tables of the page, section by section."""

from collections.abc import Sequence

from routeproof.gates.facts import Arms, MemoryRow, Row, ValidityRow
from routeproof.reports import figures
from routeproof.reports.acceptance_tables import acceptance_tables
from routeproof.reports.agreed import agreed_table
from routeproof.reports.judgement import Judgement
from routeproof.reports.quality_tables import compared_texts
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
            *compared_texts(evidence.quality),
            *_arms("How requests ended", evidence.quality.outcomes, _OUTCOME_KEYS),
            *_plain("Degeneration guard", evidence.quality.guard, _GUARD_COLUMNS),
            *_plain("Confusion", evidence.quality.confusion),
        ],
        "latency": [*ratios(evidence.speed.ratios), *reading_speed(evidence.speed)],
        "load": loads(evidence.speed),
        "acceptance": acceptance_tables(evidence.acceptance),
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
    values = [figures.short_digest(side.value(pin) or "") for pin in pins]
    pin = " ".join(value for value in values if value)
    named = figures.short_digest(side.value(name) or "")
    return " at ".join(text for text in (named, pin) if text) or figures.UNKNOWN


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


def _resource_unit(row: MemoryRow) -> str:
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
    rows = dict.fromkeys(map(_validity_cells, judgement.evidence.validity))
    if not rows:
        return []
    table = text_table(("check", "measured", "limit", "", "why"), list(rows))
    return [Titled("Was the measuring client itself in the way?", table)]


def _validity_cells(row: ValidityRow) -> tuple[str, ...]:
    """A check of the client; its unit is in its name where it has none of its own."""
    name, unit = row.name, row.unit
    if not unit and name.endswith("_s"):
        name, unit = name.removesuffix("_s"), "s"
    elif not unit and name.endswith("_share"):
        unit = "share"
    if row.is_ok is None:
        state = "not measured" if row.value is None else "told, not judged"
    else:
        state = "fine" if row.is_ok else "not fine"
    return (
        name.replace("_", " "),
        figures.number(row.value, unit),
        figures.number(row.limit, unit),
        state,
        row.reason,
    )
