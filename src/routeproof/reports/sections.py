"""Which figures and gate cards stand on the page."""

from collections.abc import Iterator
from dataclasses import dataclass

from routeproof.gates.result import Check, GateResult, Status
from routeproof.reports.charts import course, load, quality, search, speed
from routeproof.reports.charts.figure import Figure
from routeproof.reports.judgement import Judgement
from routeproof.reports.tables import Table, of_rows


@dataclass(frozen=True, slots=True)
class Drawings:
    """The figures of the page, by section; an empty section is not shown."""

    quality: tuple[Figure, ...]
    lengths: tuple[Figure, ...]
    latency: tuple[tuple[Figure, Figure], ...]
    time: tuple[Figure, ...]
    load: tuple[Figure, ...]
    acceptance: tuple[Figure, ...]
    timeline: tuple[Figure, ...]
    tune: tuple[Figure, ...]

    def all(self) -> Iterator[Figure]:
        """Every figure, in the order of the page."""
        yield from self.quality
        yield from self.lengths
        for pair in self.latency:
            yield from pair
        yield from self.time
        yield from self.load
        yield from self.acceptance
        yield from self.timeline
        yield from self.tune


@dataclass(frozen=True, slots=True)
class GateCard:
    """A gate of the strip and its detail below.

    Attributes:
        is_open: Shown unfolded, because it did not pass and has more to say.
        decisive: Required or failed questions; ``further`` are folded.
    """

    result: GateResult
    number: int
    is_open: bool
    decisive: tuple[Check, ...]
    further: tuple[Check, ...]
    tables: tuple[tuple[str, Table], ...]


def draw(judgement: Judgement) -> Drawings:
    """All figures the judgement has data for."""
    evidence = judgement.evidence
    tables = evidence.acceptance.tables
    return Drawings(
        quality=tuple(quality.forests(_correctness_checks(judgement))),
        lengths=tuple(quality.lengths(evidence.quality.lengths)),
        latency=tuple(speed.distributions(evidence.speed.latencies)),
        time=_there(speed.phases_of_time(evidence.speed.latencies)),
        load=tuple(load.sweep(evidence.speed.loads, evidence.speed.latencies)),
        acceptance=_there(course.by_position(tables), course.by_class(tables)),
        timeline=tuple(course.timeline(evidence.stability.timeline)),
        tune=search.search(judgement.tables.get("tune", ())),
    )


def _there(*made: Figure | None) -> tuple[Figure, ...]:
    return tuple(each for each in made if each is not None)


def _correctness_checks(judgement: Judgement) -> tuple[Check, ...]:
    gate = next((g for g in judgement.gates if g.gate == "correctness"), None)
    return () if gate is None else gate.checks


def _is_decisive(check: Check) -> bool:
    return check.required or check.status is Status.FAILED


def _has_more(gate: GateResult) -> bool:
    return bool(gate.checks or gate.hints or any(gate.tables.values()))


def gate_cards(judgement: Judgement) -> list[GateCard]:
    """The seven gates in order."""
    return [
        GateCard(
            result=gate,
            number=index,
            is_open=gate.status is not Status.PASSED and _has_more(gate),
            decisive=tuple(c for c in gate.checks if _is_decisive(c)),
            further=tuple(c for c in gate.checks if not _is_decisive(c)),
            tables=tuple(
                (name.replace("_", " "), of_rows(rows))
                for name, rows in sorted(gate.tables.items())
                if rows
            ),
        )
        for index, gate in enumerate(judgement.gates, start=1)
    ]
