"""Measures of a ranked list against graded relevance. Pure, on plain lists.

A ranking is the list of document ids in order, each id once. Documents without a
judgement count as not relevant.
"""

from collections.abc import Mapping, Sequence
from math import log2

Qrels = Mapping[str, float]
"""Relevance by document id; above 0 is relevant."""


def rank(scored: Sequence[tuple[str, float]]) -> list[str]:
    """Document ids by score, best first.

    Equal scores are ordered by document id, descending: the rule of trec_eval, so that
    a result never depends on the order in which an engine happened to return ties.
    """
    by_id = sorted(scored, key=lambda one: one[0], reverse=True)
    return unique([name for name, _ in sorted(by_id, key=lambda one: -one[1])])


def unique(names: Sequence[str]) -> list[str]:
    """Ids with repeats taken out; the first place counts."""
    return list(dict.fromkeys(names))


def relevant_ids(qrels: Qrels, least: float = 1) -> set[str]:
    """Documents judged at least ``least``."""
    return {name for name, grade in qrels.items() if grade >= least and grade > 0}


def ndcg(ranking: Sequence[str], qrels: Qrels, k: int | None = None) -> float | None:
    """Normalised discounted cumulative gain of the first ``k``, in [0, 1].

    ``sum(grade / log2(place + 1))`` over that of the ideal order; the gain is the grade
    itself, as in trec_eval.

    Returns:
        ``None`` when nothing is relevant: there is no ideal to compare with.
    """
    ideal = sorted((grade for grade in qrels.values() if grade > 0), reverse=True)
    best = _gain(ideal[:k])
    if best == 0:
        return None
    grades = [max(0.0, qrels.get(name, 0.0)) for name in unique(ranking)[:k]]
    return min(1.0, _gain(grades) / best)


def _gain(grades: Sequence[float]) -> float:
    return sum(grade / log2(place + 2) for place, grade in enumerate(grades))


def recall(
    ranking: Sequence[str], qrels: Qrels, k: int | None = None, least: float = 1
) -> float | None:
    """Share of the relevant documents among the first ``k``; ``None`` without any."""
    wanted = relevant_ids(qrels, least)
    if not wanted:
        return None
    return len(wanted & set(unique(ranking)[:k])) / len(wanted)


def precision(
    ranking: Sequence[str], qrels: Qrels, k: int, least: float = 1
) -> float | None:
    """Share of relevant documents among ``k`` places; empty places count as wrong.

    Returns:
        ``None`` when nothing is relevant.
    """
    wanted = relevant_ids(qrels, least)
    if not wanted:
        return None
    return len(wanted & set(unique(ranking)[:k])) / k


def reciprocal_rank(
    ranking: Sequence[str], qrels: Qrels, k: int | None = None, least: float = 1
) -> float | None:
    """1 over the place of the first relevant document, 0 when none is there.

    Returns:
        ``None`` when nothing is relevant.
    """
    wanted = relevant_ids(qrels, least)
    if not wanted:
        return None
    places = (i + 1 for i, name in enumerate(unique(ranking)[:k]) if name in wanted)
    return 1 / next(places, float("inf"))


def average_precision(
    ranking: Sequence[str], qrels: Qrels, k: int | None = None, least: float = 1
) -> float | None:
    """Mean of the precision at each relevant document's place, in [0, 1].

    Relevant documents that are not in the ranking count 0. Its mean over queries is
    MAP.

    Returns:
        ``None`` when nothing is relevant.
    """
    wanted = relevant_ids(qrels, least)
    if not wanted:
        return None
    hits, total = 0, 0.0
    for place, name in enumerate(unique(ranking)[:k], start=1):
        if name in wanted:
            hits += 1
            total += hits / place
    return total / len(wanted)
