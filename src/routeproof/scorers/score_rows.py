"""Rows of scores that something other than a scorer gave: a judge of pairs, people."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from routeproof.records.columns import Column
from routeproof.scorers.answer_of import RowKey
from routeproof.scorers.score import ScoreClass
from routeproof.scorers.score_columns import Scores, as_texts_column
from routeproof.workloads.case import Case


class ScoreRow(NamedTuple):
    """One score of one request; an unknown value stays a row."""

    key: RowKey
    value: float | None
    class_: ScoreClass
    trace: str


def scores_from(
    rows: Sequence[ScoreRow],
    cases: Mapping[str, Case],
    scorer: str,
    *,
    version: int = 1,
) -> Scores:
    """Rows of one scorer as columns.

    Args:
        rows: In the order wanted.
        cases: By id; every row's case is among them.
        scorer: Name that the rows get.
        version: Of the procedure that gave them.
    """
    keys = [row.key for row in rows]
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
        scorer=as_texts_column(scorer for _ in keys),
        class_=as_texts_column(row.class_ for row in rows),
        extracted=as_texts_column(None for _ in keys),
        trace=as_texts_column(row.trace for row in rows),
        trial=np.array([key.trial for key in keys], dtype=np.int64),
        version=np.full(len(keys), version, dtype=np.int64),
        value=Column(
            np.array([row.value or 0.0 for row in rows], dtype=np.float64),
            np.array([row.value is not None for row in rows], dtype=np.bool_),
        ),
    )
