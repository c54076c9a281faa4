"""From scores to answered quality questions, flips and the degeneration guard."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

import msgspec
import numpy as np

from routeproof.gates.answers import Rules, Sides, answered
from routeproof.gates.evidence import Agreed
from routeproof.gates.facts import QualityRow, Row
from routeproof.gates.in_order import Order, Turn
from routeproof.gates.outcomes import outcome_rows, parameter_rows
from routeproof.gates.questions import HEADLINE, Question, questions
from routeproof.gates.slices import CaseFacts
from routeproof.metrics.requests import Requests
from routeproof.metrics.score_table import PairedScores, ScoreTable, pair_scores
from routeproof.records.columns import Bools, Column
from routeproof.scorers.table import SCORERS
from routeproof.stats.multiplicity import holm_of_flips
from routeproof.workloads.case import Case

UNDER_LOAD = ("sweep", "soak")
PLACES = frozenset({"phase", "level", "concurrency"})
"""Slice keys that say where an answer was given, not to which case."""

_SCREEN_RESAMPLES = 2_000


@dataclass(frozen=True, slots=True)
class Answers:
    """All that quality is measured from.

    Attributes:
        table: Scores in their own direction.
        requests: Every request, for outcomes and lengths.
        order: In which order cases were drawn, in a run that stops early.
    """

    table: ScoreTable
    requests: Requests
    facts: CaseFacts
    agreed: Agreed
    seed: int = 0
    order: Order | None = None


def quality_phase(requests: Requests) -> str:
    """The phase whose answers are judged: ``quality`` when it ran, else the first."""
    present = [phase for phase, _ in requests.levels()]
    for phase in ("quality", "latency", "sweep", "soak"):
        if phase in present:
            return phase
    return "quality"


def quality_rows(answers: Answers) -> tuple[QualityRow, ...]:
    """Every question asked, answered; then outcomes; then the screening with Holm."""
    table = _pointing_up(answers.table)
    phase = quality_phase(answers.requests)
    headline = _headline(table, answers.facts)
    in_phase = table.phase.equal(phase)
    rows: list[QualityRow] = []
    for question in questions(answers.agreed, answers.facts):
        keep = _at(table, question, in_phase)
        keep &= _metric_rows(table, headline, question.scorer)
        rows += _answer(answers, table, keep, question)
    alpha = answers.agreed.policy.alpha
    rows += outcome_rows(answers.requests, phase, alpha, order=answers.order)
    rows += parameter_rows(answers.requests, phase, alpha)
    for question, keep in _further(answers, table, headline, in_phase):
        rows += _answer(answers, table, keep, question)
    return tuple(corrected(row for row in rows if not _is_empty_screen(row)))


@dataclass(frozen=True, slots=True)
class Standing:
    """How a required question stands while a run goes on.

    Attributes:
        rows: Its answer so far, and that of its collapses if it is graded.
        wanted: Cases that could still settle it; empty once it is settled.
    """

    question: Question
    rows: tuple[QualityRow, ...]
    wanted: frozenset[str]


def standings(answers: Answers) -> tuple[Standing, ...]:
    """Every required question of a run that stops as soon as it is decided."""
    order = answers.order
    assert order is not None
    table = _pointing_up(answers.table)
    headline = _headline(table, answers.facts)
    in_phase = table.phase.equal("quality")
    found = []
    for question in questions(answers.agreed, answers.facts):
        if not question.is_required:
            continue
        keep = in_phase & _metric_rows(table, headline, question.scorer)
        rows = tuple(_answer(answers, table, keep, question))
        asked = order.of_question(question, answers.facts.ids(question.slice))
        is_settled = bool(rows) and all(row.settled_after is not None for row in rows)
        every = frozenset(asked or (case.id for case in order.cases))
        left = frozenset() if is_settled else every - order.complete
        found.append(Standing(question, rows, left))
    return tuple(found)


def _at(table: ScoreTable, question: Question, judged: Bools) -> Bools:
    """Rows from where a question asks: its phase and level, else the judged phase.

    ``concurrency: 8`` is the level ``c8``.
    """
    where = question.slice
    if not PLACES & where.keys():
        return judged.copy()
    many = where.get("concurrency")
    level = where.get("level", None if many is None else f"c{many}")
    at = np.ones(table.n, dtype=np.bool_)
    if "phase" in where:
        at &= table.phase.equal(where["phase"])
    if level is not None:
        at &= table.level.equal(level)
    return at


def _is_empty_screen(row: QualityRow) -> bool:
    return row.origin == "screening" and row.units == 0


def _answer(
    answers: Answers, table: ScoreTable, keep: Bools, question: Question
) -> list[QualityRow]:
    tags = {k: v for k, v in question.slice.items() if k not in PLACES}
    first = None
    if answers.order is not None and not PLACES & question.slice.keys():
        asked = answers.order.of_question(question, answers.facts.ids(tags))
        first = answers.order.first(
            asked, is_binary=all(_is_binary(question, case) for case in asked.values())
        )
        keep = keep & table.of_cases(first.ids)
    elif tags:
        keep = keep & table.of_cases(answers.facts.ids(tags))
    pairs = pair_scores(table, keep, "candidate")
    sides = Sides(pairs, _control(pair_scores(table, keep, "control")))
    is_screen = question.origin == "screening"
    rules = Rules(
        alpha=answers.agreed.policy.alpha,
        seed=answers.seed,
        resamples=_SCREEN_RESAMPLES if is_screen else 10_000,
        turn=None if first is None else Turn.of(first, pairs, table.case_id.names),
    )
    return answered(question, sides, rules)


def _is_binary(question: Question, case: Case) -> bool:
    name = case.scorers[0] if question.metric == HEADLINE else question.metric
    return name in SCORERS and SCORERS[name].binary


def _control(pairs: PairedScores) -> PairedScores | None:
    return pairs if pairs.both().any() else None


def _further(
    answers: Answers, table: ScoreTable, headline: Bools, in_phase: Bools
) -> Iterable[tuple[Question, Bools]]:
    """Screening beyond the slices: other scorers, and answers under load."""
    asked = {q.scorer for q in questions(answers.agreed, answers.facts)}
    tolerance = max(
        (s.tolerance for s in answers.agreed.quality if not s.slice), default=0.0
    )
    tolerance = tolerance or 0.03
    single = {scorer for scorer in answers.facts.headline.values()}
    for name in sorted(table.scorer.names):
        whole = name in single and len(single) == 1
        if name in asked or whole:
            continue
        question = Question(name, tolerance, "screening", is_required=False)
        yield question, in_phase & table.scorer.equal(name)
    for where in _under_load(answers):
        question = Question(
            HEADLINE, tolerance, "screening", slice=where, is_required=False
        )
        yield question, headline & _at(table, question, in_phase)


def _under_load(answers: Answers) -> Iterable[dict[str, str]]:
    """Every level of load, and every class over all levels of a phase.

    A fault that shows under load alone may show in one class alone: structured output
    that falls apart at 8 streams is a few per cent of all answers there.
    """
    levels = [at for at in answers.requests.levels() if at[0] in UNDER_LOAD]
    for phase, level in levels:
        yield {"phase": phase, "level": level}
    for phase in dict.fromkeys(phase for phase, _ in levels):
        for slice_ in answers.facts.slices():
            if "class" in slice_:
                yield {**slice_, "phase": phase}


def _metric_rows(table: ScoreTable, headline: Bools, metric: str) -> Bools:
    return headline if metric == HEADLINE else table.scorer.equal(metric)


def _headline(table: ScoreTable, facts: CaseFacts) -> Bools:
    """Rows whose scorer is the first that their case names."""
    scorer = {name: i for i, name in enumerate(table.scorer.names)}
    first = [
        scorer.get(facts.headline.get(case, ""), -2) for case in table.case_id.names
    ]
    wanted = np.array([*first, -2], dtype=np.int64)
    found: Bools = wanted[table.case_id.codes] == table.scorer.codes
    return found


def _pointing_up(table: ScoreTable) -> ScoreTable:
    """Rates of something unwanted turned round, so that 1 is good everywhere."""
    unwanted = [s.name for s in SCORERS.values() if not s.higher_is_better]
    turned = table.of_scorers(unwanted)
    values = np.where(turned, 1.0 - table.value.values, table.value.values)
    return ScoreTable(
        **{name: getattr(table, name) for name in table.__slots__ if name != "value"},
        value=Column(values, table.value.known),
    )


def corrected(rows: Iterable[QualityRow]) -> list[QualityRow]:
    """Harm p-values of the screened rows after Holm.

    Slices with few flips can hardly accuse, and cost the others nothing. Asked
    questions are not corrected: all of them must pass, so each keeps its own
    agreed error.
    """
    listed = list(rows)
    screened: dict[int, float] = {}
    for place, row in enumerate(listed):
        harm = None if row.answer is None else row.answer.harm_p_value
        if row.origin == "screening" and harm is not None:
            screened[place] = harm
    flips = [_flips(listed[place]) for place in screened]
    adjusted = holm_of_flips(list(screened.values()), flips).tolist()
    for place, p in zip(screened, adjusted, strict=True):
        listed[place] = msgspec.structs.replace(listed[place], adjusted_harm_p=p)
    return listed


def _flips(row: QualityRow) -> int | None:
    """Flips of a row whose harm p-value is McNemar's, else ``None``."""
    exact = row.answer is not None and row.answer.method in ("exact_tango", "tango")
    if not exact or row.losses is None or row.gains is None:
        return None
    return row.losses + row.gains


def headline_pairs(
    answers: Answers, phases: Collection[str] | None = None
) -> PairedScores:
    """Pairs of the headline score, values pointing up.

    Of the judged phase, or of others that are named, the judged one left out.
    """
    table, judged = _pointing_up(answers.table), quality_phase(answers.requests)
    at = np.zeros(table.n, dtype=np.bool_)
    for phase in [judged] if phases is None else [p for p in phases if p != judged]:
        at |= table.phase.equal(phase)
    return pair_scores(table, at & _headline(table, answers.facts), "candidate")


def confusion(answers: Answers) -> tuple[Row, ...]:
    """How often each score class of the baseline became which on the candidate."""
    table, pairs = answers.table, headline_pairs(answers)
    names = table.score_class.names
    counts: dict[tuple[str, str], int] = {}
    for left, right in zip(
        _names(table, pairs.left_rows, names),
        _names(table, pairs.right_rows, names),
        strict=True,
    ):
        counts[left, right] = counts.get((left, right), 0) + 1
    return tuple(
        {"baseline": left, "candidate": right, "pairs": n}
        for (left, right), n in sorted(counts.items())
    )


def _names(
    table: ScoreTable,
    rows: "np.ndarray[tuple[int], np.dtype[np.int64]]",
    names: Mapping[int, str] | tuple[str, ...],
) -> list[str]:
    codes = np.where(rows >= 0, table.score_class.codes[rows], -1).tolist()
    return ["missing" if code < 0 else names[code] for code in codes]
