"""The week of a canary: four indicators on one time axis, with the changes marked.

Sampled answers are cut into days and prompt classes, both arms side by side. A value
is left out (``None``) when no sample of the cell can tell it; it is never 0 then.
"""

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from routeproof.canary.deciding.store import AuditEntry
from routeproof.canary.samples.slices import class_of
from routeproof.canary.samples.spool import Sample
from routeproof.records.outcome import SERVED

DAY_S = 86_400.0
SHOWN_FAILURES = 20
NO_CHANGE = frozenset({"note", "page"})
ARMS = ("control", "canary")


@dataclass(frozen=True, slots=True)
class Cell:
    """One arm on one day in one prompt class.

    Attributes:
        sampled: Sampled answers.
        rejection_rate: Drafted tokens that were not accepted, as a share of drafted.
        length_p10, length_p50, length_p90: Accepted tokens per verify pass with
            drafts, bonus token included; percentiles over requests.
        e2e_p50_s, e2e_p95_s, e2e_p99_s: Of served answers, in seconds.
        structured: Structured answers that were judged.
        structured_failure_rate: Share of them that are not what was asked for.
        complaints, off_topic: Users' thumbs down, and those that say "off-topic".
    """

    class_: str
    arm: str
    day: str
    sampled: int
    rejection_rate: float | None
    length_p10: float | None
    length_p50: float | None
    length_p90: float | None
    e2e_p50_s: float | None
    e2e_p95_s: float | None
    e2e_p99_s: float | None
    structured: int
    structured_failure_rate: float | None
    complaints: int
    off_topic: int


@dataclass(frozen=True, slots=True)
class Change:
    """A mark on the time axis: what was changed, by whom, why."""

    at_s: float
    what: str
    actor: str
    reason: str


@dataclass(frozen=True, slots=True)
class Weekly:
    """The report.

    Attributes:
        failures: A fixed random sample of structured failures: those with the
            smallest hash of their request id, the same however often one looks.
        failures_total: How many there were.
    """

    canary: str
    since_s: float
    until_s: float
    days: tuple[str, ...]
    cells: tuple[Cell, ...]
    changes: tuple[Change, ...]
    failures: tuple[Sample, ...]
    failures_total: int = 0
    labels: dict[str, str] = field(default_factory=dict)


def weekly(
    canary: str,
    samples: Iterable[Sample],
    audit: Sequence[AuditEntry],
    *,
    since_s: float,
    until_s: float,
) -> Weekly:
    """The report over ``[since_s, until_s)``, Unix seconds; days are of UTC."""
    groups: dict[tuple[str, str, str], list[Sample]] = defaultdict(list)
    failures: list[Sample] = []
    own = [s for s in samples if s.arm in ARMS and since_s <= s.at_s < until_s]
    own.sort(key=lambda sample: sample.at_s)
    for sample in own:
        groups[class_of(sample), day_of(sample.at_s), sample.arm].append(sample)
        if sample.signals and sample.signals.get("invalid_structure"):
            failures.append(sample)
    changes = [*_changes(canary, audit, since_s, until_s), *_restarts(own)]
    cells = [
        _cell(class_, arm, day, found)
        for (class_, day, arm), found in sorted(groups.items())
    ]
    return Weekly(
        canary=canary,
        since_s=since_s,
        until_s=until_s,
        days=_days(since_s, until_s),
        cells=tuple(cells),
        changes=tuple(sorted(changes, key=lambda change: change.at_s)),
        failures=tuple(sorted(failures, key=_place)[:SHOWN_FAILURES]),
        failures_total=len(failures),
    )


def day_of(at_s: float) -> str:
    """The UTC day of a Unix time.

    Example:
        >>> day_of(0.0)
        '1970-01-01'
    """
    return datetime.fromtimestamp(at_s, UTC).date().isoformat()


def _days(since_s: float, until_s: float) -> tuple[str, ...]:
    first = int(since_s // DAY_S)
    last = int(-(-until_s // DAY_S))
    return tuple(day_of(n * DAY_S) for n in range(first, last))


def _place(sample: Sample) -> bytes:
    return hashlib.blake2b(sample.request_id.encode(), digest_size=8).digest()


PLUMBING = frozenset({"candidate_digest", "weight_ppm_before", "weight_ppm_after"})


def _changes(
    canary: str, audit: Sequence[AuditEntry], since_s: float, until_s: float
) -> Iterable[Change]:
    """What was done to the canary, with the draft and the edits of its routes."""
    for entry in audit:
        if entry.name != canary or entry.action in NO_CHANGE:
            continue
        if since_s <= entry.at_s < until_s:
            yield Change(entry.at_s, _what(entry), entry.actor, entry.reason)


def _what(entry: AuditEntry) -> str:
    words = [entry.action.replace("_", " ")]
    digest = entry.numbers.get("candidate_digest")
    if digest is not None:
        words.append(str(digest))
        edits = (
            f"{key}: {value}"
            for key, value in entry.numbers.items()
            if value is not None and key not in PLUMBING
        )
        words.append("; ".join(edits))
    return " ".join(word for word in words if word)


def _restarts(samples: Sequence[Sample]) -> Iterable[Change]:
    """Where an arm's engine began to name itself differently.

    Answers of the two builds may overlap for a while; the first of the new one counts.
    """
    known: dict[str, set[str]] = {arm: set() for arm in ARMS}
    for sample in samples:
        name = sample.record.engine.fingerprint
        if name is None or name in known[sample.arm]:
            continue
        if known[sample.arm]:
            what = f"{sample.arm} engine names itself {name[:40]}"
            yield Change(sample.at_s, what, "engine", "")
        known[sample.arm].add(name)


def _cell(class_: str, arm: str, day: str, found: Sequence[Sample]) -> Cell:
    engines = [s.record.engine for s in found]
    drafted = sum(e.drafted for e in engines if e.drafted and e.accepted is not None)
    accepted = sum(e.accepted or 0 for e in engines if e.drafted)
    lengths = [
        (e.accepted + e.spec_passes) / e.spec_passes
        for e in engines
        if e.accepted is not None and e.spec_passes
    ]
    times = [
        s.record.clock.end_s - s.record.clock.intended_s
        for s in found
        if s.record.answer.outcome in SERVED and s.record.clock.end_s is not None
    ]
    judged = [
        bad
        for s in found
        if (bad := (s.signals or {}).get("invalid_structure")) is not None
    ]
    unhappy = [s for s in found if (s.signals or {}).get("complaint")]
    return Cell(
        class_=class_,
        arm=arm,
        day=day,
        sampled=len(found),
        rejection_rate=1 - accepted / drafted if drafted else None,
        length_p10=_percentile(lengths, 0.1),
        length_p50=_percentile(lengths, 0.5),
        length_p90=_percentile(lengths, 0.9),
        e2e_p50_s=_percentile(times, 0.5),
        e2e_p95_s=_percentile(times, 0.95),
        e2e_p99_s=_percentile(times, 0.99),
        structured=len(judged),
        structured_failure_rate=sum(judged) / len(judged) if judged else None,
        complaints=len(unhappy),
        off_topic=sum(map(_is_off_topic, unhappy)),
    )


def _is_off_topic(sample: Sample) -> bool:
    reason = str(sample.request.get("feedback_reason", "")).lower()
    return "off-topic" in reason.replace(" ", "-").replace("_", "-")


def _percentile(values: Sequence[float], share: float) -> float | None:
    """Nearest rank; ``None`` when too few values lie on either side to tell it."""
    n = len(values)
    if n == 0 or n * min(share, 1 - share) < 1:
        return None
    return sorted(values)[min(n - 1, int(share * n))]


@dataclass(frozen=True, slots=True)
class Indicator:
    """A row of the report: its name and how a cell tells it."""

    title: str
    of: Callable[[Cell], float | None]
    is_share: bool = False


INDICATORS = (
    Indicator("rejection rate", lambda c: c.rejection_rate, is_share=True),
    Indicator("acceptance length, p10", lambda c: c.length_p10),
    Indicator("acceptance length, median", lambda c: c.length_p50),
    Indicator("acceptance length, p90", lambda c: c.length_p90),
    Indicator("end to end p50, s", lambda c: c.e2e_p50_s),
    Indicator("end to end p95, s", lambda c: c.e2e_p95_s),
    Indicator("end to end p99, s", lambda c: c.e2e_p99_s),
    Indicator(
        "structured failures", lambda c: c.structured_failure_rate, is_share=True
    ),
    Indicator("complaints", lambda c: float(c.complaints)),
    Indicator("off-topic complaints", lambda c: float(c.off_topic)),
)
