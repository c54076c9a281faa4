"""Score many answers: every record with the scorers its case names."""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from hashlib import blake2b

import msgspec
import numpy as np

from routeproof.errors import ConfigError
from routeproof.records.columns import Column, Records
from routeproof.scorers.answer_of import RowKey, answers_of, columns_for
from routeproof.scorers.score import Score, ScoredAnswer, Scorer
from routeproof.scorers.score_columns import (
    Scores,
    as_texts_column,
    concatenate,
    read_scores,
    write_scores,
)
from routeproof.scorers.table import SCORERS
from routeproof.workloads.case import Case

__all__ = [
    "BatchScorer",
    "Scores",
    "columns_for",
    "concatenate",
    "read_scores",
    "score_records",
    "write_scores",
]

BatchScorer = Callable[[Sequence[tuple[Case, ScoredAnswer]]], Sequence[Score]]
"""A scorer that needs the world (a sandbox, a judge): all its answers at once."""

PAIR_SCORERS = frozenset({"preference"})
"""Names that score pairs, not answers: see ``judge.pairwise``."""

NEED_THE_WORLD = frozenset({"code", "groundedness", "factuality"})
"""Names of batch scorers that ``world.batch_scorers`` opens."""

UNSCORED_PHASES = frozenset({"warmup", "probe"})


def score_records(
    cases: Iterable[Case],
    records: Records | Iterable[Records],
    *,
    scorers: Mapping[str, Scorer] | None = None,
    batch: Mapping[str, BatchScorer] | None = None,
    only: Sequence[str] | None = None,
) -> Scores:
    """Score every answer with the scorers its case names.

    A failed request gets a row of class ``failed`` with an unknown value; nothing is
    dropped. Warm-up and probe requests are not scored. Equal answers to one case are
    scored once.

    Args:
        cases: All cases that occur in the records.
        records: The records, or parts of them, with ``answer_of.COLUMNS``.
        scorers: The table; ``SCORERS`` when ``None``.
        batch: Scorers that need the world, by name; they win over the table.
        only: Names of scorers to run; all that the cases name when ``None``.

    Raises:
        ConfigError: A case names a scorer nobody knows, or a record names a case
            that is not there.
    """
    run = _Run(SCORERS if scorers is None else scorers, batch or {}, only)
    by_id: dict[str, Case] = {}
    for case in cases:
        if by_id.setdefault(case.id, case) != case:
            raise ConfigError(f"two different cases have the id {case.id}")
    for part in (records,) if isinstance(records, Records) else records:
        for key, answer in answers_of(part):
            found = by_id.get(key.case_id)
            if found is None:
                raise ConfigError(
                    f"record {key.request_id} names the case {key.case_id!r}, "
                    "which is not among the cases",
                    hint="give the cases.jsonl of the same run",
                )
            if key.phase not in UNSCORED_PHASES:
                run.take(key, found, answer)
    run.finish()
    return _build(run.rows)


@dataclass(frozen=True, slots=True)
class _Row:
    key: RowKey
    case: Case
    scorer: str
    version: int
    score: Score | None


@dataclass(frozen=True, slots=True)
class _Asked:
    case: Case
    answer: ScoredAnswer
    rows: list[int]


class _Run:
    """Rows so far, answers seen, and what waits for the batch scorers."""

    def __init__(
        self,
        table: Mapping[str, Scorer],
        batch: Mapping[str, BatchScorer],
        only: Sequence[str] | None,
    ) -> None:
        self.rows: list[_Row] = []
        self._table = table
        self._batch = batch
        self._only = only
        self._seen: dict[Hashable, Score] = {}
        self._waiting: dict[str, dict[Hashable, _Asked]] = {}

    def take(self, key: RowKey, case: Case, answer: ScoredAnswer) -> None:
        identity = _identity(answer)
        for name in case.scorers:
            if name in PAIR_SCORERS or (self._only and name not in self._only):
                continue
            seen = (name, case.id, *identity)
            if name in self._batch:
                asked = self._waiting.setdefault(name, {})
                asked.setdefault(seen, _Asked(case, answer, [])).rows.append(
                    len(self.rows)
                )
                self.rows.append(_Row(key, case, name, 1, None))
                continue
            scorer = self._table.get(name) or self._unknown(name, case)
            if scorer.applies is not None and not scorer.applies(case):
                continue
            if seen not in self._seen:
                self._seen[seen] = scorer.of(case, answer)
            row = _Row(key, case, name, scorer.version, self._seen[seen])
            self.rows.append(row)

    def finish(self) -> None:
        for name, waiting in self._waiting.items():
            asked = list(waiting.values())
            scores = self._batch[name]([(one.case, one.answer) for one in asked])
            for one, score in zip(asked, scores, strict=True):
                for at in one.rows:
                    self.rows[at] = replace(self.rows[at], score=score)

    def _unknown(self, name: str, case: Case) -> Scorer:
        known = sorted({*self._table, *self._batch})
        if name in NEED_THE_WORLD:
            raise ConfigError(
                f"case {case.id} names the scorer {name!r}, which was not opened",
                hint="pass `batch=` from `scorers.world.batch_scorers`",
            )
        near = get_close_matches(name, known, n=1)
        hint = f"did you mean `{near[0]}`?" if near else f"known: {', '.join(known)}"
        raise ConfigError(
            f"case {case.id} names the unknown scorer {name!r}", hint=hint
        )


def _identity(answer: ScoredAnswer) -> tuple[Hashable, ...]:
    """What tells one answer from another; a digest, so that no text is kept alive."""
    calls = repr(answer.tool_calls) if answer.tool_calls else ""
    parts = (answer.text, calls, *answer.choices, answer.logprobs or "")
    whole = "\x1f".join(parts).encode("utf-8", "surrogatepass")
    digest = blake2b(whole, digest_size=16).digest()
    return (digest, answer.outcome, answer.finish_reason)


def _build(rows: Sequence[_Row]) -> Scores:
    scores = [row.score for row in rows if row.score is not None]
    tags: dict[str, str] = {}
    for row in rows:
        if row.case.id not in tags:
            encoded = msgspec.json.encode(row.case.tags, order="sorted")
            tags[row.case.id] = encoded.decode()
    return Scores(
        request_id=as_texts_column(row.key.request_id for row in rows),
        arm=as_texts_column(row.key.arm for row in rows),
        phase=as_texts_column(row.key.phase for row in rows),
        level=as_texts_column(row.key.level for row in rows),
        case_id=as_texts_column(row.case.id for row in rows),
        cluster=as_texts_column(row.case.cluster or row.case.id for row in rows),
        task_class=as_texts_column(row.case.class_ for row in rows),
        tags=as_texts_column(tags[row.case.id] for row in rows),
        scorer=as_texts_column(row.scorer for row in rows),
        class_=as_texts_column(score.class_ for score in scores),
        extracted=as_texts_column(score.extracted for score in scores),
        trace=as_texts_column(score.trace for score in scores),
        trial=np.array([row.key.trial for row in rows], dtype=np.int64),
        version=np.array([row.version for row in rows], dtype=np.int64),
        value=Column(
            np.array([s.value or 0.0 for s in scores], dtype=np.float64),
            np.array([s.value is not None for s in scores], dtype=np.bool_),
        ),
    )
