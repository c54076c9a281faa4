"""The verdict as Markdown for a pull request: short, then folded details."""

from collections.abc import Iterable, Iterator, Sequence

from routeproof.gates.result import Check, GateResult
from routeproof.reports import figures
from routeproof.reports.judgement import Judgement
from routeproof.reports.markup import code, fenced, table, words

_SIGN = {"adopt": "✅", "pilot": "🟦", "wait": "🟨", "avoid": "❌", "no_verdict": "⬜"}
_MAX_FLIPS = 3
_MAX_CHARACTERS = 300


def render(judgement: Judgement, *, report: str | None = None) -> str:
    """A comment for a pull request.

    Args:
        judgement: What was decided, on which numbers.
        report: Address of the HTML report to link to, if it was kept somewhere.
    """
    return "\n".join(_lines(judgement, report)) + "\n"


def _lines(judgement: Judgement, report: str | None) -> Iterator[str]:
    verdict = judgement.verdict
    word = figures.DECISION_WORD[verdict.decision]
    yield f"## {_SIGN[verdict.decision.value]} routeproof: {word}"
    yield ""
    yield from (f"- {words(reason)}" for reason in verdict.reasons)
    yield ""
    yield from table(
        ("gate", "status", "why"),
        (
            (
                figures.GATE_TITLE[gate.gate],
                figures.STATUS_WORD[gate.status].lower(),
                gate.reason,
            )
            for gate in judgement.gates
        ),
    )
    yield from _changes(judgement)
    yield from _questions(judgement.gates)
    yield from _flips(judgement)
    yield from _list("What would change this", map(figures.told, verdict.would_change))
    yield from _list("When to run again", verdict.retest)
    yield from _foot(judgement, report)


def _foot(judgement: Judgement, report: str | None) -> Iterator[str]:
    run = judgement.provenance
    parts = [
        f"run `{code(run.run_id)}`",
        f"{run.cases:,} cases",
        f"{run.requests:,} requests",
        f"routeproof {run.routeproof_version}",
        f"measurement version {run.measurement_version}",
    ]
    if report:
        parts.append(f"[full report](<{report.replace('>', '%3E')}>)")
    yield f"<sub>{' · '.join(parts)}</sub>"


def _changes(judgement: Judgement) -> Iterator[str]:
    routes = judgement.evidence.routes
    if routes is None or not routes.changes:
        return
    yield from table(
        ("changed", "baseline", "candidate", "class"),
        (
            (c.field, c.baseline or "none", c.candidate or "none", c.change_class)
            for c in routes.changes
        ),
    )


def _questions(gates: Sequence[GateResult]) -> Iterator[str]:
    checks = [check for gate in gates for check in gate.checks if check.kind != "fact"]
    if not checks:
        return
    yield f"<details><summary>{len(checks)} questions with their numbers</summary>"
    yield ""
    yield from table(
        ("question", "measured", "limit", "evidence", "status"), map(_row, checks)
    )
    yield "</details>"
    yield ""


def _row(check: Check) -> tuple[str, ...]:
    interval = figures.bounds(check.interval, check.kind, check.unit)
    return (
        figures.question(check.name),
        f"{figures.estimate(check)} {interval}".strip(),
        figures.limit(check),
        figures.amount(check),
        figures.STATUS_WORD[check.status].lower(),
    )


def _flips(judgement: Judgement) -> Iterator[str]:
    lost = [f for f in judgement.evidence.quality.flips if f.direction == "loss"]
    if not lost:
        return
    shown = lost[:_MAX_FLIPS]
    yield f"<details><summary>{len(shown)} answers that got worse</summary>"
    yield ""
    for flip in shown:
        case = f"`{code(flip.case_id)}` ({words(flip.class_)})"
        yield f"{case}, baseline then candidate:"
        yield ""
        yield from fenced(flip.baseline_text, most=_MAX_CHARACTERS)
        yield from fenced(flip.candidate_text, most=_MAX_CHARACTERS)
    yield "</details>"
    yield ""


def _list(title: str, sentences: Iterable[str]) -> Iterator[str]:
    items = [f"- {words(sentence)}" for sentence in sentences]
    if items:
        yield f"**{title}**"
        yield ""
        yield from items
        yield ""
