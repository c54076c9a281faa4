"""BEIR and TREC sets: queries, a corpus, and judged documents (qrels)."""

import csv
import io
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from routeproof.errors import ConfigError, FormatError
from routeproof.workloads.case import Case
from routeproof.workloads.importers.lines import Imported, read_lines, read_text, user

Qrels = Mapping[str, Mapping[str, int]]
"""Grade by document, by query."""

PASSAGES = 8
PASSAGE_CHARACTERS = 600
NO_JUDGEMENT = "queries without a relevant document in the qrels"
SCORERS = ("ndcg", "recall_at_k", "reciprocal_rank")
HEADERS = {
    "query": ("query-id", "query_id", "qid", "topic"),
    "document": ("corpus-id", "doc_id", "docid", "document"),
    "grade": ("score", "relevance", "rel", "grade"),
}
QRELS_FILES = ("qrels.csv", "qrels.tsv", "qrels.txt", "qrels/test.tsv", "qrels/dev.tsv")


def retrieval(path: Path) -> Imported:
    """One case per judged query: the query alone, for a route that retrieves itself.

    Args:
        path: Folder with ``queries.jsonl`` and the qrels (BEIR's ``qrels/test.tsv``,
            TREC's four columns, or a CSV with a header).
    """
    queries, qrels = _queries(path), read_qrels(_qrels_file(path))
    return _cases(queries, qrels, {name: text for name, text in queries.items()})


def reranking(path: Path) -> Imported:
    """One case per judged query with eight passages to put in order.

    The relevant passages (as many as fit) and others drawn by the query's own id, so
    that every run and both routes get the same. Needs ``corpus.jsonl`` too.
    """
    queries, qrels = _queries(path), read_qrels(_qrels_file(path))
    corpus = _corpus(path)
    for query, grades in qrels.items():
        for document in grades:
            if document not in corpus:
                raise FormatError(
                    f"the qrels of query `{query}` name the document `{document}`, "
                    "which the corpus does not have",
                    path=path / "corpus.jsonl",
                )
    texts = {
        name: _ask(text, _passages(name, qrels.get(name, {}), corpus))
        for name, text in queries.items()
    }
    return _cases(queries, qrels, texts)


def _cases(
    queries: Mapping[str, str], qrels: Qrels, texts: Mapping[str, str]
) -> Imported:
    unknown = [name for name in qrels if name not in queries]
    if unknown:
        raise ConfigError(
            f"the qrels judge {len(unknown)} queries that `queries.jsonl` does not "
            f"have, such as `{unknown[0]}`",
            hint="take queries and qrels of the same set and split",
        )
    cases = tuple(
        Case(
            id=f"query-{name}",
            class_="retrieval",
            messages=(user(texts[name]),),
            parameters={"max_tokens": 128},
            reference=dict(qrels[name]),
            scorers=SCORERS,
        )
        for name in queries
        if any(grade > 0 for grade in qrels.get(name, {}).values())
    )
    if not cases:
        raise ConfigError("no query has a relevant document in the qrels")
    dropped = len(queries) - len(cases)
    return Imported(cases, {NO_JUDGEMENT: dropped} if dropped else {})


def read_qrels(path: Path) -> Qrels:
    """Judgements of a qrels file: with a header, or TREC's ``qid 0 docid grade``.

    Raises:
        FormatError: A row is no judgement, or one pair is judged twice differently.
    """
    text = read_text(path)
    rows = [(n, line) for n, line in enumerate(text.split("\n"), 1) if line.strip()]
    if not rows:
        raise FormatError("no judgement in it", path=path, line=1)
    columns, start = _columns(rows[0][1])
    found: dict[str, dict[str, int]] = {}
    for number, line in rows[start:]:
        cells = _cells(line)
        try:
            query, document, grade = (cells[i] for i in columns)
            value = int(float(grade))
        except (IndexError, ValueError) as error:
            raise FormatError(
                f"not a judgement (query, document, grade): {line[:60]!r}",
                path=path,
                line=number,
            ) from error
        if found.setdefault(query, {}).setdefault(document, value) != value:
            raise FormatError(
                f"query `{query}` and document `{document}` are judged twice",
                path=path,
                line=number,
            )
    return found


def _columns(first: str) -> tuple[tuple[int, int, int], int]:
    """Where query, document and grade stand, and the first row with a judgement."""
    cells = [cell.lower() for cell in _cells(first)]
    places = [
        next((cells.index(n) for n in names if n in cells), None)
        for names in HEADERS.values()
    ]
    query, document, grade = places
    if query is not None and document is not None and grade is not None:
        return (query, document, grade), 1
    return ((0, 2, 3) if len(cells) >= 4 else (0, 1, 2)), 0


def _cells(line: str) -> list[str]:
    if "\t" in line:
        return [cell.strip() for cell in line.split("\t")]
    if "," in line:
        return [cell.strip() for cell in next(csv.reader(io.StringIO(line)))]
    return line.split()


def _queries(folder: Path) -> dict[str, str]:
    found: dict[str, str] = {}
    for line in read_lines(folder / "queries.jsonl", "queries", ("text",)):
        name = line.name("_id", "id")
        if name in found:
            raise line.error(f"the query id `{name}` occurs twice")
        found[name] = line.text("text")
    return found


def _corpus(folder: Path) -> dict[str, str]:
    found: dict[str, str] = {}
    for line in read_lines(folder / "corpus.jsonl", "a corpus", ("text",)):
        name = line.name("_id", "id")
        if name in found:
            raise line.error(f"the document id `{name}` occurs twice")
        title = str(line.row.get("title") or "")
        body = str(line.row.get("text") or "")
        found[name] = f"{title}. {body}" if title else body
    return found


def _qrels_file(folder: Path) -> Path:
    for name in QRELS_FILES:
        if (folder / name).is_file():
            return folder / name
    raise ConfigError(
        "no qrels beside the queries",
        path=folder,
        hint=f"one of {', '.join(QRELS_FILES)}",
    )


def _passages(
    query: str, grades: Mapping[str, int], corpus: Mapping[str, str]
) -> list[tuple[str, str]]:
    rng = np.random.Generator(np.random.PCG64(list(query.encode())))
    best = sorted((d for d, g in grades.items() if g > 0), key=lambda d: -grades[d])
    chosen = best[:PASSAGES]
    others = [name for name in corpus if name not in grades]
    while len(chosen) < PASSAGES and others:
        chosen.append(others.pop(int(rng.random() * len(others))))
    order = np.argsort(rng.random(len(chosen)), kind="stable")
    return [(chosen[i], corpus[chosen[i]][:PASSAGE_CHARACTERS]) for i in order]


def _ask(query: str, passages: list[tuple[str, str]]) -> str:
    listed = "\n\n".join(f"[{name}] {text}" for name, text in passages)
    return (
        f"{listed}\n\nWhich of these passages help to answer the question? Answer with "
        f"a JSON list of their ids, the most helpful first.\nQuestion: {query}"
    )
