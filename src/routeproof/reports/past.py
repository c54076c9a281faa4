"""All runs of a route over time: rows, text, and one page with charts."""

from collections.abc import Iterator, Sequence

import msgspec

from routeproof.reports import figures
from routeproof.reports.judgement import Judgement
from routeproof.reports.tables import Table
from routeproof.stats.interval import Interval

SHORT = 12
"""Characters of a digest that are shown."""


class PastRun(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One run of the history.

    Attributes:
        folder: Where it lies.
        route: Digest of the candidate; ``None`` when it was not written down.
        model: The candidate's model as the inventory has it.
        quality: Difference to the baseline by required question, with its interval.
        gain: Of the metric the proof asks for; above 1 is better than the baseline.
    """

    folder: str
    run_id: str
    started_at: str | None
    decision: str
    model: str | None
    route: str | None
    workload: str | None
    measurement_version: int
    quality: dict[str, tuple[float, float | None, float | None]] = {}
    acceptance_rate: float | None = None
    tokens_per_pass: float | None = None
    gain: float | None = None
    gain_interval: tuple[float | None, float | None] | None = None


def past_run(judgement: Judgement, folder: str) -> PastRun:
    """What the history shows of one judgement."""
    run, evidence = judgement.provenance, judgement.evidence
    gain = _gain(judgement)
    overall = evidence.acceptance.overall
    return PastRun(
        folder=folder,
        run_id=run.run_id,
        started_at=run.started_at,
        decision=judgement.verdict.decision.value,
        model=_model(judgement),
        route=run.candidate_digest,
        workload=run.workload_fingerprint,
        measurement_version=run.measurement_version,
        quality=dict(_quality(judgement)),
        acceptance_rate=overall.get("acceptance_rate"),
        tokens_per_pass=overall.get("tokens_per_pass"),
        gain=None if gain is None else gain[0],
        gain_interval=None if gain is None else gain[1],
    )


def _model(judgement: Judgement) -> str | None:
    routes = judgement.evidence.routes
    if routes is None:
        return None
    return next((f.value for f in routes.candidate.fields if f.name == "model"), None)


def _quality(
    judgement: Judgement,
) -> Iterator[tuple[str, tuple[float, float | None, float | None]]]:
    for gate in judgement.gates:
        if gate.gate != "correctness":
            continue
        for check in gate.checks:
            is_asked = check.required and check.kind == "difference"
            if is_asked and check.estimate is not None and check.interval is not None:
                ends = check.interval
                yield check.name, (check.estimate, ends.low, ends.high)


def _gain(
    judgement: Judgement,
) -> tuple[float, tuple[float | None, float | None] | None] | None:
    metric = judgement.evidence.agreed.performance.gain.metric
    for gate in judgement.gates:
        for check in gate.checks if gate.gate == "latency" else ():
            if check.name.startswith("gain") and check.estimate is not None:
                return check.estimate, _ends(check.interval)
    for row in judgement.evidence.speed.ratios:
        if row.metric == metric and row.gain is not None:
            return row.gain, _ends(row.gain_interval)
    return None


def _ends(interval: Interval | None) -> tuple[float | None, float | None] | None:
    return None if interval is None else (interval.low, interval.high)


def table(runs: Sequence[PastRun]) -> Table:
    """The history as a table, oldest first."""
    questions = list(dict.fromkeys(name for run in runs for name in run.quality))[:3]
    return Table(
        head=(
            "started",
            "run",
            "verdict",
            "route",
            "workload",
            *(figures.question(name) for name in questions),
            "gain",
            "acceptance",
            "tokens/pass",
        ),
        rows=tuple(_cells(run, questions) for run in runs),
        numeric=(False,) * 5 + (True,) * (len(questions) + 3),
    )


def _cells(run: PastRun, questions: Sequence[str]) -> tuple[str, ...]:
    return (
        (run.started_at or figures.UNKNOWN)[:16].replace("T", " "),
        run.run_id,
        run.decision.replace("_", " "),
        (run.route or figures.UNKNOWN)[:SHORT],
        (run.workload or figures.UNKNOWN)[:SHORT],
        *(_points(run, name) for name in questions),
        "" if run.gain is None else figures.times(run.gain),
        ""
        if run.acceptance_rate is None
        else figures.number(run.acceptance_rate, "share"),
        "" if run.tokens_per_pass is None else figures.number(run.tokens_per_pass),
    )


def _points(run: PastRun, name: str) -> str:
    found = run.quality.get(name)
    return "" if found is None else figures.points(found[0])


def render(runs: Sequence[PastRun]) -> str:
    """The history as text, readable without colour."""
    if not runs:
        return "no judged runs\n"
    shown = table(runs)
    cells = [shown.head, *shown.rows]
    widths = [max(len(row[i]) for row in cells) for i in range(len(shown.head))]
    lines = (
        "  ".join(
            f"{cell:>{width}}" if is_number else f"{cell:<{width}}"
            for cell, width, is_number in zip(row, widths, shown.numeric, strict=True)
        ).rstrip()
        for row in cells
    )
    return "\n".join(lines) + "\n"
