import pytest
from scorer_cases import a_case, some_records

from routeproof.errors import ConfigError, StoredRunError
from routeproof.records.parquet import write_table
from routeproof.scorers.score import Score
from routeproof.scorers.scored import (
    concatenate,
    read_scores,
    score_records,
    write_scores,
)

CASES = [
    a_case(
        "Paris", id="a", scorers=("exact_match", "contains"), tags={"language": "fr"}
    ),
    a_case("7", id="b", scorers=("numeric",), cluster="doc", class_="math"),
]
ROWS = [
    ("a", "baseline", "Paris"),
    ("a", "candidate", "Paris"),
    ("b", "baseline", "7"),
    ("b", "candidate", "8"),
    ("b", "candidate", None, "timeout"),
]


def test_one_row_per_request_and_scorer_and_none_is_dropped():
    scores = score_records(CASES, some_records(ROWS))
    assert scores.n == 2 * 2 + 3
    assert list(scores.of("numeric").class_) == ["correct", "wrong", "failed"]
    assert list(scores.of("numeric").value.known) == [True, True, False]
    assert scores.completeness_share() == 6 / 7
    assert list(scores.of("numeric", arm="candidate").request_id) == ["r3", "r4"]


def test_slices_are_read_from_class_tags_and_key():
    scores = score_records(CASES, some_records(ROWS))
    assert scores.in_slice({"class": "math"}).sum() == 3
    assert scores.in_slice({"language": "fr", "phase": "quality"}).sum() == 4
    assert scores.in_slice({"language": "de"}).sum() == 0
    assert set(scores.where(scores.in_slice({"class": "math"})).cluster) == {"doc"}


def test_parts_score_like_the_whole():
    whole = score_records(CASES, some_records(ROWS))
    parts = [
        score_records(CASES, some_records(ROWS[:2])),
        score_records(CASES, some_records(ROWS[2:])),
    ]
    joined = concatenate(parts)
    assert list(joined.class_) == list(whole.class_)
    assert list(joined.value.values) == list(whole.value.values)
    assert concatenate([]).n == 0


def test_scores_survive_the_disk(tmp_path):
    scores = score_records(CASES, some_records(ROWS))
    write_scores(tmp_path / "scores.parquet", scores)
    again = read_scores(tmp_path / "scores.parquet")
    for name in (
        "request_id",
        "class_",
        "extracted",
        "trace",
        "tags",
        "trial",
        "version",
    ):
        assert list(getattr(again, name)) == list(getattr(scores, name))
    assert list(again.value.known) == list(scores.value.known)
    write_scores(tmp_path / "none.parquet", concatenate([]))
    assert read_scores(tmp_path / "none.parquet").n == 0


def test_a_file_of_another_kind_is_refused(tmp_path):
    write_table(tmp_path / "x.parquet", {})
    with pytest.raises(StoredRunError, match="no scores"):
        read_scores(tmp_path / "x.parquet")


def test_equal_answers_to_one_case_are_scored_once():
    asked = []

    def counting(pairs):
        asked.extend(pairs)
        return [Score(class_="correct", value=1.0) for _ in pairs]

    scores = score_records(CASES, some_records(ROWS), batch={"contains": counting})
    assert len(asked) == 1
    assert scores.of("contains").n == 2


def test_unknown_scorers_and_cases_are_named():
    with pytest.raises(ConfigError, match="numerics.*") as caught:
        score_records(
            [a_case("7", id="b", scorers=("numerics",))], some_records(ROWS[2:])
        )
    assert "numeric" in caught.value.hint
    with pytest.raises(ConfigError, match="'a', which is not among"):
        score_records(CASES[1:], some_records(ROWS))
    with pytest.raises(ConfigError, match="two different cases"):
        score_records([*CASES, a_case("Lyon", id="a")], some_records(ROWS))
