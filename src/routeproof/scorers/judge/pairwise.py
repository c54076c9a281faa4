"""Preferences of a whole run, as scores: what the gates read."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np

from routeproof.records.columns import Column, Records
from routeproof.scorers.answer_of import RowKey, answers_of
from routeproof.scorers.judge.agreement import PreferenceView, view
from routeproof.scorers.judge.preference import AnswerPair, Preference, judge_pairs
from routeproof.scorers.judge.question import Ask
from routeproof.scorers.score import ScoredAnswer
from routeproof.scorers.score_columns import Scores, as_texts_column
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
    keys: list[RowKey] = []
    values: list[float | None] = []
    classes: list[str] = []
    traces: list[str] = []
    for place, one in zip(places, judged, strict=True):
        for arm in ("baseline", "candidate"):
            keys.append(sides[place][arm].key)
            values.append(None if one.value is None else _value(arm, one.value))
            classes.append(_class(one))
            traces.append(one.how)
    owners = [cases[key.case_id] for key in keys]
    return Scores(
        request_id=as_texts_column(key.request_id for key in keys),
        arm=as_texts_column(key.arm for key in keys),
        phase=as_texts_column(key.phase for key in keys),
        level=as_texts_column(key.level for key in keys),
        case_id=as_texts_column(key.case_id for key in keys),
        cluster=as_texts_column(case.cluster or case.id for case in owners),
        task_class=as_texts_column(case.class_ for case in owners),
        tags=as_texts_column(
            msgspec.json.encode(case.tags, order="sorted").decode() for case in owners
        ),
        scorer=as_texts_column(PREFERENCE for _ in keys),
        class_=as_texts_column(classes),
        extracted=as_texts_column(None for _ in keys),
        trace=as_texts_column(traces),
        trial=np.array([key.trial for key in keys], dtype=np.int64),
        version=np.full(len(keys), VERSION, dtype=np.int64),
        value=Column(
            np.array([value or 0.0 for value in values], dtype=np.float64),
            np.array([value is not None for value in values], dtype=np.bool_),
        ),
    )


def _value(arm: str, preference: float) -> float:
    return preference if arm == "candidate" else DRAW


def _class(one: Preference) -> str:
    if one.value is not None:
        return "graded"
    return "failed" if one.how == "failed" else "unscored"
