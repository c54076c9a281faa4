import csv
import json
from math import log

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scorer_cases import DATA, a_case, an_answer, data_rows

from routeproof.scorers.answer_of import columns_for
from routeproof.scorers.grounded import grounded
from routeproof.scorers.likelihood import secondary_only
from routeproof.scorers.ranking import (
    average_precision,
    ndcg,
    precision,
    rank,
    recall,
    reciprocal_rank,
)
from routeproof.scorers.retrieval import read_ranking
from routeproof.scorers.table import SCORERS

ids = st.sampled_from([f"d{i}" for i in range(8)])
qrels_of = st.dictionaries(ids, st.integers(-1, 3), max_size=6)
ALL = (ndcg, recall, reciprocal_rank, average_precision)


@pytest.mark.slow
@given(st.lists(ids, max_size=12), qrels_of, st.integers(1, 10))
def test_every_measure_is_a_share_or_unknown(ranking, qrels, k):
    values = [measure(ranking, qrels, k) for measure in ALL]
    has_relevant = any(grade >= 1 for grade in qrels.values())
    for value in values:
        assert (value is None) != has_relevant
        assert value is None or 0 <= value <= 1


@pytest.mark.slow
@given(st.lists(ids, unique=True, max_size=8), qrels_of, st.integers(1, 8))
def test_documents_nobody_judged_relevant_change_nothing_at_the_end(ranking, qrels, k):
    longer = [*ranking, "unjudged"]
    for measure in ALL:
        assert measure(longer, qrels) == measure(ranking, qrels)
    if ranking:
        assert ndcg([*ranking, *ranking], qrels, k) == ndcg(ranking, qrels, k)


@pytest.mark.slow
@given(qrels_of)
def test_the_ideal_order_is_perfect(qrels):
    ideal = sorted(qrels, key=lambda name: -qrels[name])
    assert ndcg(ideal, qrels) in (None, pytest.approx(1.0))
    assert average_precision(ideal, qrels) in (None, pytest.approx(1.0))


@pytest.mark.slow
@given(st.dictionaries(ids, st.sampled_from([0.1, 0.2]), min_size=1), st.randoms())
def test_ties_never_depend_on_the_order_given(scores, random):
    pairs = list(scores.items())
    random.shuffle(pairs)
    assert rank(pairs) == rank(list(scores.items()))


def test_published_examples_are_reproduced():
    known = {
        "AP": lambda r, q: average_precision(r, q),
        "AP(rel=2)": lambda r, q: average_precision(r, q, least=2),
        "nDCG": lambda r, q: ndcg(r, q),
        "nDCG@3": lambda r, q: ndcg(r, q, 3),
        "P@4": lambda r, q: precision(r, q, 4),
    }
    seen = 0
    for row in data_rows("stats_worked_examples/retrieval_metrics.jsonl"):
        for query, expected in row["expected"].items():
            qrels = {d: g for q, d, g in row["qrels"] if q == query}
            ranking = rank([(d, s) for q, d, s in row["run"] if q == query])
            if row["measure"] in known:
                found = known[row["measure"]](ranking, qrels)
                assert found == pytest.approx(expected, abs=row["tol"]), row["id"]
                seen += 1
    assert seen >= 8


@pytest.mark.slow
def test_a_word_search_over_xquad_finds_the_paragraph():
    corpus = data_rows("xquad_retrieval/corpus.jsonl")
    with (DATA / "xquad_retrieval/qrels.csv").open() as file:
        rows = list(csv.DictReader(file))
    qrels = {}
    for row in rows:
        qrels.setdefault(row["query_id"], {})[row["doc_id"]] = int(row["relevance"])
    words = {d["id"]: set(str(d["text"]).lower().split()) for d in corpus}
    values = []
    for query in data_rows("xquad_retrieval/queries.jsonl")[::20]:
        asked = set(query["text"].lower().split())
        ranking = rank([(d, len(asked & w)) for d, w in words.items()])
        answer = an_answer(json.dumps(ranking[:10]))
        case = a_case(qrels[query["id"]], options={"least": 2})
        score = SCORERS["reciprocal_rank"].of(case, answer)
        graded = SCORERS["ndcg"].of(case, answer)
        assert 0 <= graded.value <= 1
        values.append(score.value)
        assert score.value == (
            0
            if query["gold"] not in ranking[:10]
            else 1 / (ranking.index(query["gold"]) + 1)
        )
    assert 0.3 < sum(values) / len(values) < 1


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('["a", "b"]', ["a", "b"]),
        (
            '{"documents": [{"id": "a", "score": 0.1}, {"id": "b", "score": 0.9}]}',
            ["b", "a"],
        ),
        ('[{"doc_id": 3}, {"doc_id": 1}]', ["3", "1"]),
        ("It was 308 [p000], see [p003] and [p000].", ["p000", "p003"]),
        ('```json\n["a"]\n```', ["a"]),
        ("nothing at all", None),
        ('{"answer": "x"}', None),
        ("[]", []),
    ],
)
def test_documents_are_read_from_an_answer(text, found):
    assert read_ranking(text)[0] == found


def test_lines_are_a_ranking_when_asked():
    assert read_ranking("p1 first\np2\n", "lines")[0] == ["p1", "p2"]


def test_a_query_without_judgements_is_unscored_and_no_zero():
    for name in ("ndcg", "recall_at_k", "reciprocal_rank", "average_precision"):
        for reference in (None, {}, {"p1": 0}, {"p1": "high"}, "p1", []):
            score = SCORERS[name].of(a_case(reference), an_answer('["p1"]'))
            assert (score.class_, score.value) == ("unscored", None), reference
        bad_k = a_case({"p1": 1}, options={"k": 0})
        assert SCORERS[name].of(bad_k, an_answer('["p1"]')).value is None
        right = SCORERS[name].of(a_case(["p1"]), an_answer('["p1"]'))
        assert (right.class_, right.value) == ("correct", 1.0)
        empty = SCORERS[name].of(a_case(["p1"]), an_answer("[]"))
        assert (empty.class_, empty.value) == ("wrong", 0.0)


def likelihood(tokens, reference="cd", prompt="ab cd"):
    stored = None if tokens is None else json.dumps(tokens)
    case = a_case(reference, prompt=prompt)
    answer = an_answer("ab cd", logprobs=stored)
    return SCORERS["reference_likelihood"].of(case, answer)


def test_the_likelihood_is_that_of_the_reference_alone():
    tokens = [
        ["ab", None, []],
        [" ", -9.0, []],
        ["c", log(0.5), []],
        ["d", log(0.125), []],
    ]
    found = likelihood(tokens)
    assert found.value == pytest.approx(0.25)
    assert "2 of 2 tokens, perplexity 4" in found.trace


@pytest.mark.parametrize(
    "tokens",
    [
        None,
        [],
        [["x", -1.0, []]],
        [["ab", None, []], [" cd", None, []]],
        [["cd", 0.7, []]],
        "text",
        [["cd", float("inf"), []]],
        [3],
    ],
)
def test_a_likelihood_that_cannot_be_read_is_unscored(tokens):
    assert likelihood(tokens).class_ == "unscored"


def test_tokens_that_are_parts_of_a_character_count_to_it():
    # As vLLM echoes them: the bytes of a character show with its last token.
    tokens = [["\ufffd", None, []], ["", -9.0, []], ["今", -1.0, []]]
    tokens += [["", -2.0, []], ["天", -0.5, []], ["", -3.0, []], ["早", -0.1, []]]
    tokens += [["\n", -4.0, []]]
    case = a_case(reference="天早", prompt="今天早")
    answer = an_answer(text="今天早\n", logprobs=json.dumps(tokens))
    found = SCORERS["reference_likelihood"].of(case, answer)
    assert log(found.value) == pytest.approx((-2.0 - 0.5 - 3.0 - 0.1) / 4)


def test_perplexity_alone_is_refused_with_the_reason():
    assert "alone cannot show" in secondary_only(["reference_likelihood"])
    assert secondary_only(["reference_likelihood", "numeric"]) is None
    assert secondary_only([]) is None
    assert SCORERS["reference_likelihood"].is_secondary


def test_logprobs_are_read_only_where_a_case_needs_them():
    assert "logprobs" not in columns_for([a_case()])
    assert "logprobs" in columns_for([a_case(scorers=("reference_likelihood",))])


def test_grounded_sentences_are_counted():
    source = "The ferry leaves at 7 from the old harbour and carries 40 passengers."
    case = a_case(source)
    assert grounded(case, an_answer("The old ferry carries 40 passengers.")).value == 1
    mixed = "It leaves at 7 from the harbour. It was painted by pirates yesterday."
    assert grounded(case, an_answer(mixed)).value == 0.5
    assert grounded(case, an_answer("The ferry carries 41 passengers.")).value == 0
    assert grounded(case, an_answer("Well, yes!")).class_ == "unscored"
    assert grounded(a_case(""), an_answer("x")).class_ == "unscored"


@pytest.mark.slow
def test_groundedness_agrees_with_people():
    rows = [
        row
        for name in ("wow", "cmu", "tc")
        for row in data_rows(f"begin_groundedness/{name}.jsonl")
    ]
    people = [row["label"] == "Fully attributable" for row in rows]
    ours = [
        grounded(a_case(row["knowledge"]), an_answer(row["response"])).value == 1
        for row in rows
    ]
    agreed = sum(a == b for a, b in zip(people, ours, strict=True)) / len(rows)
    assert agreed > 0.8
