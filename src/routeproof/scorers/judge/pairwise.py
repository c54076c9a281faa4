"""Preferences of a whole run, as scores: what the gates read."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from routeproof.records.columns import Records
from routeproof.scorers.answer_of import RowKey, answers_of
from routeproof.scorers.judge.agreement import PreferenceView, view
from routeproof.scorers.judge.preference import AnswerPair, Preference, judge_pairs
from routeproof.scorers.judge.question import Ask
from routeproof.scorers.score import ScoreClass, ScoredAnswer
from routeproof.scorers.score_columns import Scores
from routeproof.scorers.score_rows import ScoreRow, scores_from
from routeproof.workloads.case import Case

PREFERENCE = "preference"
VERSION = 1
DRAW = 0.5

_Place = tuple[str, int, str, str]


@dataclass(frozen=True, slots=True)
class _Side:
    key: RowKey
    answer: ScoredAnswer


def score_preferences(
    cases: Iterable[Case],
    records: Records | Iterable[Records],
    ask: Ask,
    *,
    seed: int,
) -> tuple[Scores, PreferenceView]:
    """Judge every pair of the cases that name the scorer ``preference``.

    Two rows per pair: the candidate's is the preference for it, the baseline's is 0.5
    by definition, so that their difference is what non-inferiority asks about. Where
    a control ran, baseline against control is judged too: the placebo.

    Args:
        cases: Of the run.
        records: Of the run, with ``answer_of.COLUMNS``.
        ask: Sends questions to the judge.
        seed: Shuffles the order of asking.

    Returns:
        The rows, and what they amount to with the judge's own faults.
    """
    wanted = {case.id: case for case in cases if PREFERENCE in case.scorers}
    sides: dict[_Place, dict[str, _Side]] = {}
    for part in (records,) if isinstance(records, Records) else records:
        for key, answer in answers_of(part):
            if key.case_id in wanted and key.phase not in ("warmup", "probe"):
                place = (key.case_id, key.trial, key.phase, key.level)
                sides.setdefault(place, {})[key.arm] = _Side(key, answer)
    places = [p for p in sorted(sides) if {"baseline", "candidate"} <= set(sides[p])]
    again = [p for p in sorted(sides) if {"baseline", "control"} <= set(sides[p])]
    pairs = [
        *(_pair(wanted[p[0]], sides[p], "candidate") for p in places),
        *(_pair(wanted[p[0]], sides[p], "control") for p in again),
    ]
    judged = judge_pairs(pairs, ask, seed=seed)
    real, placebo = judged[: len(places)], judged[len(places) :]
    return _rows(wanted, sides, places, real), view(real, placebo)


def _pair(case: Case, sides: Mapping[str, _Side], other: str) -> AnswerPair:
    return AnswerPair(case, sides["baseline"].answer, sides[other].answer)


def _rows(
    cases: Mapping[str, Case],
    sides: Mapping[_Place, Mapping[str, _Side]],
    places: Sequence[_Place],
    judged: Sequence[Preference],
) -> Scores:
    rows = [
        ScoreRow(
            sides[place][arm].key,
            None if one.value is None else _value(arm, one.value),
            _class(one),
            one.how,
        )
        for place, one in zip(places, judged, strict=True)
        for arm in ("baseline", "candidate")
    ]
    return scores_from(rows, cases, PREFERENCE, version=VERSION)


def _value(arm: str, preference: float) -> float:
    return preference if arm == "candidate" else DRAW


def _class(one: Preference) -> ScoreClass:
    if one.value is not None:
        return "graded"
    return "failed" if one.how == "failed" else "unscored"
