"""Pairs whose score changed, and greedy texts that differ: which ones are shown."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from routeproof.gates.equality import TextPair, equality_row, first_divergence
from routeproof.gates.facts import EqualityRow, Flip
from routeproof.gates.questions import HEADLINE
from routeproof.jobs.gathering.answer_texts import AnswerText
from routeproof.metrics.pairs import pair_arms
from routeproof.metrics.requests import Requests
from routeproof.metrics.score_table import PairedScores, ScoreTable
from routeproof.workloads.case import Case

MOST_LOSSES = 40
MOST_GAINS = 20
MOST_DIFFERING = 200
MOST_UNDER_LOAD = 40
MOST_FLIPS_UNDER_LOAD = (12, 0)


@dataclass(frozen=True, slots=True)
class FlipRows:
    """Changed pairs before their texts are fetched.

    Attributes:
        pairs: The pairs shown, losses first; rows of the score table.
        total: Changed pairs in all.
    """

    pairs: PairedScores
    total: int


def flip_rows(
    pairs: PairedScores, *, most: tuple[int, int] = (MOST_LOSSES, MOST_GAINS)
) -> FlipRows:
    """The pairs to show: losses spread over the cases, then gains, in a fixed order.

    ``most`` are the losses and the gains shown at most.
    """
    change = np.where(pairs.both(), pairs.right.values - pairs.left.values, 0.0)
    losses = np.flatnonzero(change < 0)
    gains = np.flatnonzero(change > 0)
    shown = np.concatenate([_spread(losses, most[0]), _spread(gains, most[1])])
    return FlipRows(pairs.where(shown), int(losses.size + gains.size))


def _spread(
    rows: "np.ndarray[tuple[int], np.dtype[np.int64]]", most: int
) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    if rows.size <= most:
        return rows
    places = np.linspace(0, rows.size - 1, most).round().astype(np.int64)
    return rows[places]


def flip_keys(table: ScoreTable, rows: FlipRows) -> list[float]:
    """Request keys of both sides of the shown pairs."""
    both = np.concatenate([rows.pairs.left_rows, rows.pairs.right_rows])
    keys: list[float] = table.request_key[both].tolist()
    return keys


def flips(
    table: ScoreTable,
    rows: FlipRows,
    texts: Mapping[float, AnswerText],
    cases: Iterable[Case],
    traces: Sequence[str] = (),
) -> tuple[Flip, ...]:
    """The shown pairs with their answers side by side.

    ``traces`` say how each row of the table was scored; rows beyond them are unknown.
    """
    found = []
    pairs, by_id = rows.pairs, {case.id: case for case in cases}
    for i in range(pairs.n):
        left, right = int(pairs.left_rows[i]), int(pairs.right_rows[i])
        one, other = (texts.get(float(table.request_key[r])) for r in (left, right))
        if one is None or other is None:
            continue
        case_id = table.case_id.of(left) or ""
        case = by_id.get(case_id)
        before, after = float(pairs.left.values[i]), float(pairs.right.values[i])
        same = one.shown == other.shown
        found.append(
            Flip(
                question=HEADLINE,
                case_id=case_id,
                trial=int(table.trial[left]),
                class_=table.task_class.of(left) or "",
                direction="loss" if after < before else "gain",
                baseline_score=before,
                candidate_score=after,
                baseline_text=one.shown,
                candidate_text=other.shown,
                baseline_outcome=one.outcome,
                candidate_outcome=other.outcome,
                prompt="" if case is None else prompt_text(case)[-1_000:],
                reference=None if case is None else _reference(case),
                first_divergence=None
                if same
                else first_divergence(one.shown, other.shown),
                phase=table.phase.of(left) or "",
                level=table.level.of(left) or "",
                baseline_trace=_trace(table, traces, left),
                candidate_trace=_trace(table, traces, right),
            )
        )
    return tuple(found)


def _trace(table: ScoreTable, traces: Sequence[str], row: int) -> str:
    if row >= len(traces):
        return ""
    return f"{table.scorer.of(row)}: {traces[row]}"


def prompt_text(case: Case) -> str:
    """What a person reads as the prompt: the last message, or the whole prompt."""
    if case.prompt is not None:
        return case.prompt
    content = (case.messages or ({},))[-1].get("content")
    return (
        content if isinstance(content, str) else msgspec.json.encode(content).decode()
    )


def _reference(case: Case) -> str | None:
    if case.reference is None:
        return None
    if isinstance(case.reference, str):
        return case.reference
    return msgspec.json.encode(case.reference, order="sorted").decode()


@dataclass(frozen=True, slots=True)
class Differing:
    """Greedy pairs of one arm with the baseline.

    ``keys`` are the request keys of the pairs that differ, at most
    ``MOST_DIFFERING`` of them (``MOST_UNDER_LOAD`` of one level of load).
    """

    pair: Literal["candidate", "control"]
    pairs: int
    equal: int
    keys: tuple[tuple[float, float], ...]
    phase: str = ""
    level: str = ""
    matches: "Matches | None" = None
    cases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Matches:
    """Cases of which all three arms answered: who repeats the baseline's text?

    A case is repeated when it is in every trial: trials are no independent evidence.
    """

    cases: int
    control_only: int
    candidate_only: int


@dataclass(frozen=True, slots=True)
class At:
    """Where greedy texts are compared: a phase, or one level of it."""

    phase: str
    level: str | None = None


def differing(
    requests: Requests,
    at: At,
    other: Literal["candidate", "control"],
    *,
    sampled: Collection[str] = (),
) -> Differing | None:
    """Which greedy answers differ; ``None`` when no pair was answered on both sides.

    ``sampled`` are cases with a temperature of their own: nobody expects them equal.
    """
    digest, key = requests.number("answer_digest"), requests.number("request_key")
    case = requests.label("case_id")
    left, right = _greedy_rows(requests, at, other, sampled)
    if not left.size:
        return None
    differs = np.flatnonzero(digest.values[left] != digest.values[right])
    is_level = at.level is not None
    shown = _spread(differs, MOST_UNDER_LOAD if is_level else MOST_DIFFERING)
    return Differing(
        pair=other,
        pairs=int(left.size),
        equal=int(left.size - differs.size),
        keys=tuple(
            zip(
                key.values[left[shown]].tolist(),
                key.values[right[shown]].tolist(),
                strict=True,
            )
        ),
        cases=tuple(case.of(int(row)) or "" for row in left[shown]),
        phase=at.phase if is_level else "",
        level=at.level or "",
        matches=matches(requests, at, sampled=sampled)
        if other == "candidate"
        else None,
    )


def _greedy_rows(
    requests: Requests, at: At, other: str, sampled: Collection[str]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows of the baseline and of ``other`` that both hold a greedy answer."""
    pairs = pair_arms(requests, phase=at.phase, level=at.level, other=other)
    digest, case = requests.number("answer_digest"), requests.label("case_id")
    is_greedy = np.array([name not in sampled for name in case.names] + [False])
    known = digest.known[pairs.left] & digest.known[pairs.right]
    known &= is_greedy[case.codes[pairs.left]]
    return pairs.left[known], pairs.right[known]


def matches(
    requests: Requests, at: At, *, sampled: Collection[str] = ()
) -> Matches | None:
    """Whose greedy texts are the baseline's, case by case; ``None`` without control."""
    digest, case = requests.number("answer_digest").values, requests.label("case_id")
    n = len(case.names)
    found = []
    for other in ("control", "candidate"):
        left, right = _greedy_rows(requests, at, other, sampled)
        codes = case.codes[left]
        asked = np.bincount(codes, minlength=n)
        same = np.bincount(codes, digest[left] == digest[right], minlength=n)
        found.append((asked > 0, same == asked))
    (in_control, aa), (in_candidate, ab) = found
    both = in_control & in_candidate
    if not both.any():
        return None
    return Matches(
        cases=int(both.sum()),
        control_only=int((both & aa & ~ab).sum()),
        candidate_only=int((both & ab & ~aa).sum()),
    )


def text_pairs(found: Differing, texts: Mapping[float, AnswerText]) -> list[TextPair]:
    """The pairs that differ, as texts with their log probabilities."""
    return [
        TextPair(
            texts[a].whole, texts[b].whole, texts[a].logprobs, texts[b].logprobs, case
        )
        for (a, b), case in zip(found.keys, found.cases, strict=True)
        if a in texts and b in texts
    ]


def equality(
    found: Differing, texts: Mapping[float, AnswerText], *, near_tie: float
) -> EqualityRow:
    """The row of one arm, its differing pairs looked at token by token."""
    row = equality_row(
        found.pair,
        pairs=found.pairs,
        equal=found.equal,
        differing=text_pairs(found, texts),
        near_tie=near_tie,
    )
    three = found.matches
    return msgspec.structs.replace(
        row,
        phase=found.phase,
        level=found.level,
        cases=None if three is None else three.cases,
        control_only=None if three is None else three.control_only,
        candidate_only=None if three is None else three.candidate_only,
    )
