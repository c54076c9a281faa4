"""Scores as codes and numbers, and their pairs."""

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from routeproof.metrics.pairs import Index, pair
from routeproof.metrics.per_request import request_keys
from routeproof.metrics.requests import Labels, code
from routeproof.records.columns import Bools, Column, Floats
from routeproof.scorers.scored import Scores


@dataclass(frozen=True, slots=True)
class ScoreTable:
    """One row per (request, scorer); all columns have shape ``(n,)``.

    Attributes:
        value: In [0, 1], in the scorer's own direction.
        request_key: As ``per_request`` makes it, to join scores to requests.
    """

    arm: Labels
    phase: Labels
    level: Labels
    case_id: Labels
    cluster: Labels
    task_class: Labels
    scorer: Labels
    score_class: Labels
    trial: NDArray[np.int64]
    value: Column
    request_key: Floats

    @property
    def n(self) -> int:
        """Number of rows."""
        return int(self.trial.size)

    def of_scorers(self, names: Collection[str]) -> Bools:
        """True for the rows of some scorers."""
        keep = np.zeros(self.n, dtype=np.bool_)
        for name in names:
            keep |= self.scorer.equal(name)
        return keep

    def of_cases(self, ids: Collection[str]) -> Bools:
        """True for the rows of some cases."""
        wanted = set(ids)
        known = np.array([name in wanted for name in self.case_id.names] + [False])
        found: Bools = known[self.case_id.codes]
        return found


def score_table(scores: Scores) -> ScoreTable:
    """Scores as read, coded once."""
    return ScoreTable(
        arm=code(scores.arm),
        phase=code(scores.phase),
        level=code(scores.level),
        case_id=code(scores.case_id),
        cluster=code(scores.cluster),
        task_class=code(scores.task_class),
        scorer=code(scores.scorer),
        score_class=code(scores.class_),
        trial=scores.trial,
        value=scores.value,
        request_key=request_keys(scores.request_id).values,
    )


@dataclass(frozen=True, slots=True)
class PairedScores:
    """Scores of two arms by (phase, level, case, trial, scorer), shape ``(n,)`` each.

    A request without a partner is a pair whose other side is unknown.

    Attributes:
        left, right: Values of the baseline and of the other arm.
        left_rows, right_rows: Rows in the table; -1 where there is none.
    """

    case: NDArray[np.int64]
    cluster: NDArray[np.int64]
    left: Column
    right: Column
    left_rows: Index
    right_rows: Index

    @property
    def n(self) -> int:
        """Pairs, those with a missing side included."""
        return int(self.case.size)

    def both(self) -> Bools:
        """True where both sides have a value."""
        return self.left.known & self.right.known

    def one(self) -> Bools:
        """True where exactly one side has a value."""
        return self.left.known ^ self.right.known

    def where(self, keep: Bools) -> "PairedScores":
        """Some of the pairs."""
        return PairedScores(
            self.case[keep],
            self.cluster[keep],
            Column(self.left.values[keep], self.left.known[keep]),
            Column(self.right.values[keep], self.right.known[keep]),
            self.left_rows[keep],
            self.right_rows[keep],
        )


def pair_scores(table: ScoreTable, keep: Bools, other: str) -> PairedScores:
    """Pair the rows of ``keep`` of the baseline with those of ``other``."""
    rows = [
        np.flatnonzero(keep & table.arm.equal(name)) for name in ("baseline", other)
    ]
    keys = [_keys(table, each) for each in rows]
    found = pair(keys[0], keys[1], (rows[0], rows[1]))
    none = np.full
    left = np.concatenate(
        [found.left, found.only_left, none(found.only_right.size, -1)]
    )
    right = np.concatenate(
        [found.right, none(found.only_left.size, -1), found.only_right]
    )
    either = np.where(left >= 0, left, right)
    order = np.argsort(_keys(table, either), kind="stable")
    left, right, either = left[order], right[order], either[order]
    return PairedScores(
        case=table.case_id.codes[either].astype(np.int64),
        cluster=table.cluster.codes[either].astype(np.int64),
        left=_side(table.value, left),
        right=_side(table.value, right),
        left_rows=left,
        right_rows=right,
    )


def _side(value: Column, rows: Index) -> Column:
    if not rows.size:
        return Column(np.zeros(0), np.zeros(0, dtype=np.bool_))
    return Column(value.values[rows], value.known[rows] & (rows >= 0))


def _keys(table: ScoreTable, rows: Index) -> Index:
    """(phase, level, case, trial, scorer) of some rows as one whole number each."""
    columns = (
        (table.phase.codes, len(table.phase.names)),
        (table.level.codes, len(table.level.names)),
        (table.case_id.codes, len(table.case_id.names)),
        (table.trial, int(table.trial.max(initial=0))),
        (table.scorer.codes, len(table.scorer.names)),
    )
    keys: Index = np.zeros(rows.size, dtype=np.int64)
    for column, most in columns:
        keys = keys * (most + 2) + (column[rows].astype(np.int64) + 1)
    return keys
