"""Scores paired by level, case, trial and scorer."""

import numpy as np
from builders import a_case
from metric_cases import columns
from record_cases import a_record

from routeproof.metrics.score_table import pair_scores, score_table
from routeproof.scorers.scored import score_records


def table(*answers, cases=None):
    """Scores of (arm, case number, text or outcome)."""
    records = [
        a_record(
            request_id=f"{arm}/{number}",
            arm=arm,
            case_id=f"case-{number:05d}",
            text=text if text != "timeout" else None,
            outcome="timeout" if text == "timeout" else "completed",
        )
        for arm, number, text in answers
    ]
    cases = cases or [a_case(number) for number in {n for _, n, _ in answers}]
    return score_table(score_records(cases, columns(*records)))


def everything(scores):
    return np.ones(scores.n, dtype=bool)


def test_pairs_hold_both_values():
    scores = table(("baseline", 1, "1"), ("candidate", 1, "no"))
    pairs = pair_scores(scores, everything(scores), "candidate")
    assert pairs.left.values.tolist() == [1.0]
    assert pairs.right.values.tolist() == [0.0]
    assert pairs.both().all()


def test_a_failed_request_is_a_pair_with_one_side_unknown():
    scores = table(("baseline", 1, "1"), ("candidate", 1, "timeout"))
    pairs = pair_scores(scores, everything(scores), "candidate")
    assert pairs.n == 1
    assert pairs.one().tolist() == [True]


def test_a_request_that_never_happened_is_missing_not_dropped():
    scores = table(
        ("baseline", 1, "1"),
        ("baseline", 2, "2"),
        ("candidate", 2, "2"),
        ("candidate", 3, "3"),
    )
    pairs = pair_scores(scores, everything(scores), "candidate")
    assert pairs.n == 3
    assert pairs.one().sum() == 2


def test_scorers_of_one_case_are_never_mixed():
    cases = [a_case(1, scorers=("contains", "exact_match"))]
    scores = table(("baseline", 1, "it is 1"), ("candidate", 1, "1"), cases=cases)
    pairs = pair_scores(scores, everything(scores), "candidate")
    scorer = scores.scorer
    assert pairs.n == 2
    for left, right in zip(pairs.left_rows, pairs.right_rows, strict=True):
        assert scorer.of(int(left)) == scorer.of(int(right))


def test_rows_of_cases_and_scorers_are_found():
    scores = table(("baseline", 1, "1"), ("baseline", 2, "2"))
    assert scores.of_cases({"case-00002"}).sum() == 1
    assert scores.of_scorers(["contains"]).all()
    assert not scores.of_scorers(["numeric"]).any()
