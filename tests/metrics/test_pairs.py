"""Pairs by case and trial; what has no partner is counted, not dropped."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from metric_cases import requests
from record_cases import a_record

from routeproof.metrics.pairs import pair, pair_arms


def sent(arm, case, trial=0, **changes):
    return a_record(
        request_id=f"{arm}/{case}/{trial}/{changes}",
        arm=arm,
        case_id=case,
        trial=trial,
        **changes,
    )


def test_a_pair_is_one_case_and_trial_of_two_arms():
    some = requests(
        sent("candidate", "b"),
        sent("baseline", "a"),
        sent("baseline", "b"),
        sent("candidate", "a"),
        sent("control", "a"),
    )
    pairs = pair_arms(some, phase="quality", other="candidate")
    cases = some.label("case_id")
    assert [cases.of(row) for row in pairs.left] == [cases.of(r) for r in pairs.right]
    assert pairs.n == 2
    assert pairs.missing == 0


def test_trials_of_a_case_are_pairs_of_their_own():
    some = requests(
        *(sent(arm, "a", t) for arm in ("baseline", "candidate") for t in range(3))
    )
    pairs = pair_arms(some, phase="quality", other="candidate")
    trial = some.number("trial").values
    assert pairs.n == 3
    assert (trial[pairs.left] == trial[pairs.right]).all()


def test_requests_without_a_partner_are_counted():
    some = requests(
        sent("baseline", "a"), sent("baseline", "b"), sent("candidate", "c")
    )
    pairs = pair_arms(some, phase="quality", other="candidate")
    assert (pairs.n, pairs.missing) == (0, 3)


def test_loads_are_never_paired_with_each_other():
    some = requests(
        sent("baseline", "a", phase="sweep", level="c1"),
        sent("candidate", "a", phase="sweep", level="c16"),
    )
    assert pair_arms(some, phase="sweep", other="candidate").n == 0


def test_an_arm_that_is_absent_gives_no_pairs():
    only = requests(sent("baseline", "a"))
    assert pair_arms(only, phase="quality", other="control").n == 0


keys = st.lists(st.integers(0, 30), unique=True, max_size=20)


@given(keys, keys)
def test_pairing_is_the_intersection_and_the_rest_is_missing(left, right):
    rows = (np.arange(len(left)) * 2, np.arange(len(right)) * 2 + 1)
    found = pair(np.array(left, dtype=int), np.array(right, dtype=int), rows)
    assert found.n == len(set(left) & set(right))
    assert found.missing == len(set(left) ^ set(right))
    by_row = dict(zip(rows[0].tolist(), left, strict=True))
    by_row |= dict(zip(rows[1].tolist(), right, strict=True))
    for one, other in zip(found.left.tolist(), found.right.tolist(), strict=True):
        assert by_row[one] == by_row[other]
