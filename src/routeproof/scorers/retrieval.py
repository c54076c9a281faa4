"""Retrieval: the documents an answer names, against the case's judgements."""

import re
from collections.abc import Callable
from functools import partial
from typing import Any

from routeproof.scorers.answered import (
    option,
    reference,
    score,
    unparseable,
    unscored,
)
from routeproof.scorers.json_text import parse_fenced_json
from routeproof.scorers.ranking import (
    average_precision,
    ndcg,
    rank,
    recall,
    reciprocal_rank,
    unique,
)
from routeproof.scorers.score import Score, ScoreClass, ScoredAnswer
from routeproof.workloads.case import Case

DEFAULT_K = 10
CITATION = re.compile(
    r"[\[【(]\s{0,3}(?:doc(?:ument)?\s{0,3}[:#]?\s{0,3})?"
    r"([^\[\]()【】\s,;]{1,128})\s{0,3}[\])】]"
)
CITED_CHARACTERS = 200_000
"""Citations are looked for in this much of an answer."""

_ID_KEYS = ("id", "doc_id", "document_id", "docid", "_id")
_LIST_KEYS = ("documents", "results", "ids", "ranking", "hits", "sources")


def read_qrels(value: Any) -> dict[str, float] | None:
    """Judgements of a reference: grades by id, or a list of relevant ids (grade 1)."""
    if isinstance(value, dict) and isinstance(value.get("qrels"), dict):
        value = value["qrels"]
    if isinstance(value, list | tuple) and value:
        return {str(name): 1.0 for name in value} if _are_ids(value) else None
    if not isinstance(value, dict) or not value:
        return None
    grades = value.values()
    if any(isinstance(g, bool) or not isinstance(g, int | float) for g in grades):
        return None
    return {str(name): float(grade) for name, grade in value.items()}


def _are_ids(values: list[Any] | tuple[Any, ...]) -> bool:
    return all(isinstance(one, str | int) and one is not True for one in values)


def read_ranking(text: str, form: str = "auto") -> tuple[list[str] | None, str]:
    """Document ids of an answer in order, and where they were found.

    Args:
        text: The answer.
        form: ``json`` (a list of ids, or of objects with an id and maybe a score, or
            an object that holds one under ``documents`` and the like), ``citations``
            (ids in square or round brackets, in order of first mention), ``lines``
            (the first word of each line), or ``auto``: JSON if it parses, else
            citations.
    """
    if form in ("json", "auto"):
        parsed = parse_fenced_json(text)
        if parsed.problem is None:
            found = _ids_of(parsed.value)
            return found, "JSON" if found is not None else "JSON without document ids"
        if form == "json":
            return None, parsed.problem
    if form == "lines":
        words = [
            line.split(maxsplit=1)[0] for line in text.splitlines() if line.strip()
        ]
        return unique([word.strip("[]().,:;*-#") for word in words]), "lines"
    return unique(CITATION.findall(text[:CITED_CHARACTERS])) or None, "citations"


def _ids_of(value: Any) -> list[str] | None:
    if isinstance(value, dict):
        value = next((value[k] for k in _LIST_KEYS if k in value), None)
    if not isinstance(value, list):
        return None
    if _are_ids(value):
        return unique([str(one) for one in value])
    scored: list[tuple[str, float]] = []
    for one in value:
        name = _id_of(one)
        if name is None:
            return None
        number = one.get("score")
        is_number = isinstance(number, int | float) and not isinstance(number, bool)
        scored.append((name, float(number) if is_number else float("-inf")))
    if any(number == float("-inf") for _, number in scored):
        return unique([name for name, _ in scored])
    return rank(scored)


def _id_of(value: Any) -> str | None:
    if not isinstance(value, dict):
        return None
    name = next((value[key] for key in _ID_KEYS if key in value), None)
    return str(name) if isinstance(name, str | int) else None


def _score(
    scorer: str,
    measure: Callable[..., float | None],
    is_binary_relevance: bool,
    case: Case,
    answer: ScoredAnswer,
) -> Score:
    qrels = read_qrels(reference(case, scorer))
    if qrels is None:
        return unscored("reference holds no relevance judgements")
    k = option(case, scorer, "k", DEFAULT_K)
    if isinstance(k, bool) or not isinstance(k, int) or k < 1:
        return unscored(f"k is {k!r}, not a whole number from 1")
    form = option(case, scorer, "ids", "auto")
    ranking, where = read_ranking(answer.text, str(form))
    if ranking is None:
        return unparseable(where)
    least = option(case, scorer, "least", 1)
    if is_binary_relevance:
        value = measure(ranking, qrels, k, least=least)
    else:
        value = measure(ranking, qrels, k)
    if value is None:
        return unscored("no document of this query is relevant")
    class_: ScoreClass = "correct" if value == 1 else "graded" if value else "wrong"
    return score(class_, value, " ".join(ranking[:k]), f"{where}, k={k}")


ndcg_at_k = partial(_score, "ndcg", ndcg, False)
recall_at_k = partial(_score, "recall_at_k", recall, True)
mrr_at_k = partial(_score, "reciprocal_rank", reciprocal_rank, True)
map_at_k = partial(_score, "average_precision", average_precision, True)
