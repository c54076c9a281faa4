"""The words of ``routeproof plan``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from routeproof.jobs.planning.shapes import Bounds, ProofPlan, QuestionPlan


def plan_lines(planned: ProofPlan) -> Iterator[str]:
    """The plan as lines for a terminal."""
    yield (
        f"{planned.cases} cases x {planned.trials} trials; error rate "
        f"{planned.alpha:g} one-sided, power {planned.power:.0%}"
    )
    yield ""
    heads = f"{'question':<30} {'tolerance':>9} {'have':>6} {'need':>6}"
    yield f"{heads} {'power':>17}  can it decide?"
    for question in planned.questions:
        least = "-" if question.minimum is None else str(question.minimum)
        yield (
            f"{question.question:<30} {question.tolerance:>9.1%} {question.units:>6} "
            f"{least:>6} {_power(question):>17}  {_answer(question)}"
        )
    yield (
        "(need: fewest without a single flip; power: with no, 1, 2 and 5 % flips, "
        "or with scores that spread as assumed)"
    )
    yield ""
    yield from _prices(planned)
    yield from _stages(planned)
    yield from _early(planned)
    for note in planned.notes:
        yield f"note: {note}"


def _power(question: QuestionPlan) -> str:
    shares = [f"{100 * each:.0f}" for each in question.power.values()]
    if question.kind == "graded":
        shares = shares[:1]
    return f"{'/'.join(shares)} %" if shares else "-"


def _answer(question: QuestionPlan) -> str:
    if question.kind == "no_new_failures":
        return "yes: one new failure beyond the control's fails it"
    if question.answer == "decides":
        return "yes"
    finest = min(question.finest.values(), default=None)
    if question.answer == "cannot_decide":
        known = "" if finest is None else f"; finest it could certify: {finest:.1%}"
        return f"no{known}"
    if question.kind == "graded":
        return f"if scores hardly differ; {question.needs[0].units} if they do"
    up_to = question.decides_up_to_flips or 0.0
    more = next(n for n in question.needs if n.flips > up_to)
    return f"up to {up_to:.0%} flips; {more.units} for {more.flips:.0%}"


def _prices(planned: ProofPlan) -> Iterator[str]:
    shares = sorted({price.flips for price in planned.prices})
    heads = "".join(f"{f'{share:.0%} flips':>22}" for share in shares)
    yield f"{'what a tolerance costs':<24}{heads}"
    for tolerance in sorted({price.tolerance for price in planned.prices}):
        row = [p for p in planned.prices if p.tolerance == tolerance]
        cells = "".join(f"{f'{p.cases} cases {_duration(p.minutes)}':>22}" for p in row)
        yield f"{f'{tolerance:.1%}':<24}{cells}"
    cost = planned.cost
    yield (
        f"(three arms; {cost.prompt_tokens:.0f} + {cost.output_tokens:.0f} tokens and "
        f"{cost.duration_s:.1f} s a request, "
        f"{'assumed' if cost.source == 'assumed' else 'as in ' + cost.source})"
    )
    yield ""


def _stages(planned: ProofPlan) -> Iterator[str]:
    yield "this proof as it stands"
    for stage in planned.stages:
        count = "by the clock" if stage.requests is None else f"{stage.requests}"
        name = f"{stage.phase} {stage.level}"
        yield f"  {name:<22} {count:>12} requests {_duration(stage.minutes):>12}"
    total = sum(stage.minutes for stage in planned.stages)
    yield f"  {'in all':<22} {'':>12}          {_duration(total):>12}"
    yield ""


def _early(planned: ProofPlan) -> Iterator[str]:
    if not planned.bounds:
        return
    asked = "as asked" if planned.stops_early else "if you ask for it"
    yield f"--until-decided ({asked}): a question is settled between floor and ceiling"
    for bounds in planned.bounds:
        yield (
            f"  {bounds.question:<36} floor {bounds.floor}, ceiling {bounds.ceiling}; "
            f"{_earliest(bounds)}"
        )
    for stop in planned.until_decided:
        yield (
            f"  {stop.route:<28} uses {stop.used_share:>4.0%}, "
            f"certified {stop.certified_share:>4.0%}, harmed {stop.harmed_share:>4.0%}"
        )
    yield ""


def _earliest(bounds: Bounds) -> str:
    if bounds.earliest > bounds.ceiling:
        return f"cannot be certified that way: {bounds.earliest} are needed"
    if bounds.earliest == bounds.ceiling:
        return "certified with all of them at the earliest"
    return f"certified after {bounds.earliest} without a flip"


def _duration(minutes: float) -> str:
    if minutes < 1:
        return f"{minutes * 60:.0f} s"
    return f"{minutes:.0f} min" if minutes < 120 else f"{minutes / 60:.1f} h"
