"""A run against an earlier one of the same proof: what moved, and does it matter."""

from collections.abc import Iterator, Sequence
from typing import Literal

import msgspec

from routeproof.gates.facts import QualityRow
from routeproof.metrics.acceptance_drift import Drift
from routeproof.reports import figures
from routeproof.stats.interval import Interval, NonInferiority

Status = Literal["held", "worse", "open", "not_comparable"]


class _Part(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of the parts of a comparison."""


class Side(_Part, frozen=True, kw_only=True):
    """One of the two runs."""

    run_id: str
    started_at: str | None
    decision: str
    candidate_digest: str | None


class FieldMoved(_Part, frozen=True, kw_only=True):
    """A field of the candidate's route that is not what it was."""

    field: str
    then: str | None
    now: str | None


class AcceptanceMoved(_Part, frozen=True, kw_only=True):
    """Share of drafted tokens accepted, request by request, then and now.

    ``where`` is ``all`` or a class of cases; ``answer`` asks whether a loss larger
    than the tolerance is excluded, ``None`` with fewer than two cases.
    """

    where: str
    requests: int
    then: float | None
    now: float | None
    answer: NonInferiority | None = None


class GainMoved(_Part, frozen=True, kw_only=True):
    """A metric of the candidate as a ratio to its own run's baseline, then and now.

    ``ratio`` is now / then of that ratio over the same cases: above 1, the candidate
    takes longer beside its baseline than it did.
    """

    metric: str
    where: str
    pairs: int
    then: float
    now: float
    ratio: float | None
    interval: Interval | None


class NumberMoved(_Part, frozen=True, kw_only=True):
    """A number of the candidate, then and now, beside the same of the baseline.

    The runs were not interleaved: where the baseline moved as much, the machine or
    its load changed, not the route.
    """

    what: str
    where: str
    unit: str
    then: float | None
    now: float | None
    baseline_then: float | None = None
    baseline_now: float | None = None


class Comparison(_Part, frozen=True, kw_only=True):
    """Everything that moved between two runs.

    Attributes:
        status: ``worse`` when a loss is shown, ``held`` when losses beyond the
            tolerances are excluded, ``open`` when neither can be said.
        problems: Why the runs, or some of their numbers, do not compare.
        quality: Candidate now against candidate then, pair by pair.
        control: Baseline now against baseline then: how far the stack itself drifts.
        acceptance: Request by request.
        drifts: Sums over all requests, overall and by slice, paired by case.
    """

    then: Side
    now: Side
    status: Status
    reasons: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    routes: tuple[FieldMoved, ...] = ()
    quality: tuple[QualityRow, ...] = ()
    control: tuple[QualityRow, ...] = ()
    acceptance: tuple[AcceptanceMoved, ...] = ()
    drifts: tuple[Drift, ...] = ()
    speed: tuple[GainMoved, ...] = ()
    numbers: tuple[NumberMoved, ...] = ()


_MOST_SLICES = 5

_SAID = {
    "held": "HELD: nothing got worse beyond its tolerance",
    "worse": "WORSE: a loss against the earlier run is shown",
    "open": "OPEN: no loss is shown, and none is excluded",
    "not_comparable": "NOT COMPARABLE",
}
_ANSWER = {"certified": "held", "harmed": "WORSE", "undecided": "open"}


def render(comparison: Comparison) -> str:
    """The comparison as text, readable without colour."""
    return "\n".join(_lines(comparison)) + "\n"


def _lines(comparison: Comparison) -> Iterator[str]:
    for label, side in (("then", comparison.then), ("now", comparison.now)):
        word = side.decision.upper().replace("_", " ")
        yield f"{label:<12} {side.run_id}  {side.started_at or ''}  {word}"
    yield from _labelled("problem", comparison.problems)
    moved = [
        f"{each.field}: {each.then or 'not set'} -> {each.now or 'not set'}"
        for each in comparison.routes
    ]
    yield from _labelled("route", moved or ["the candidate is the route it was"])
    yield from _labelled("quality", list(_quality(comparison)))
    yield from _labelled("acceptance", list(map(_acceptance, comparison.acceptance)))
    yield from _labelled("drift", list(_drifts(comparison.drifts)))
    yield from _labelled("speed", list(map(_gain, comparison.speed)))
    yield from _labelled("numbers", list(map(_number, comparison.numbers)))
    yield ""
    yield f"{'result':<12} {_SAID[comparison.status]}"
    yield from _labelled("", comparison.reasons)


def _labelled(label: str, lines: Sequence[str]) -> Iterator[str]:
    for index, line in enumerate(lines):
        yield f"{label if index == 0 else '':<12} {line}"


def _quality(comparison: Comparison) -> Iterator[str]:
    control = {row.question: row for row in comparison.control}
    shown = [row for row in comparison.quality if row.answer is not None]
    screened = [row for row in shown if not row.is_required]
    harmed = sorted(filter(_is_harmed, screened), key=_estimate)
    rows = [*(row for row in shown if row.is_required), *harmed[:_MOST_SLICES]]
    width = max((len(figures.question(row.question)) for row in rows), default=0)
    for row in rows:
        drift = control.get(row.question)
        beside = ""
        if drift is not None and drift.answer is not None:
            beside = f"  (baseline {figures.points(drift.answer.estimate)})"
        name = figures.question(row.question)
        yield f"{name:<{width}}  {_answer(row.answer)}{beside}"
    rest = len(harmed) - len(harmed[:_MOST_SLICES])
    if rest:
        yield f"{rest} more screened slices are worse"
    quiet = len(screened) - len(harmed)
    if quiet:
        yield f"{quiet} screened slices show no loss"


def _estimate(row: QualityRow) -> float:
    return 0.0 if row.answer is None else row.answer.estimate


def _is_harmed(row: QualityRow) -> bool:
    return row.answer is not None and row.answer.decision == "harmed"


def _answer(answer: NonInferiority | None) -> str:
    if answer is None:
        return "no pairs"
    ends = figures.bounds(answer.interval, "difference", "share")
    return (
        f"{figures.points(answer.estimate)} pts {ends}  tolerance "
        f"{100 * answer.tolerance:.1f}  {answer.n:,} pairs  {_ANSWER[answer.decision]}"
    )


def _acceptance(moved: AcceptanceMoved) -> str:
    then, now = (figures.number(value, "share") for value in (moved.then, moved.now))
    tail = "" if moved.answer is None else f"  {_answer(moved.answer)}"
    return f"{moved.where}: {then} -> {now}{tail}"


def _drifts(moved: Sequence[Drift]) -> Iterator[str]:
    """Overall, and slices that fell; the rest is counted."""
    shown = [each for each in moved if each.fell or each.where == "overall"]
    for each in shown:
        sure = "" if each.z is None else f", {each.z:+.1f} standard errors"
        over = f" over {each.pairs:,} cases" if each.pairs else ""
        yield (
            f"{each.where}: {each.metric.replace('_', ' ')} {each.then:.3g} -> "
            f"{each.now:.3g} ({each.change:+.1%}{sure}{over})"
            f"{'  FELL' if each.fell else ''}"
        )
    if quiet := len(moved) - len(shown):
        yield f"{quiet} numbers of slices did not fall"


def _gain(moved: GainMoved) -> str:
    change = figures.UNKNOWN if moved.ratio is None else figures.times(moved.ratio)
    ends = figures.bounds(moved.interval, "ratio", "")
    return (
        f"{moved.metric}, {moved.where}: {moved.then:.2f} -> {moved.now:.2f} of the "
        f"baseline, {change} {ends}  {moved.pairs:,} pairs"
    )


def _number(moved: NumberMoved) -> str:
    then = figures.number(moved.then, moved.unit)
    now = figures.number(moved.now, moved.unit)
    before = figures.number(moved.baseline_then, moved.unit)
    after = figures.number(moved.baseline_now, moved.unit)
    beside = f"   (baseline {before} -> {after})"
    return f"{moved.what}, {moved.where}: {then} -> {now}{beside}"
