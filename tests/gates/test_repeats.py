"""Are seeds honoured? Requests that were sent twice with one seed."""

import numpy as np
import pytest

from routeproof.gates.repeats import seed_checks
from routeproof.gates.result import Status
from routeproof.jobs.gathering.repeats import repeat_rows
from routeproof.metrics.requests import Requests, code
from routeproof.proof.workload import LoadSpec, SamplingSpec, WorkloadSpec
from routeproof.records.columns import Column


def rows(baseline, candidate):
    return tuple(
        {"arm": arm, "repeats": n, "equal": equal}
        for arm, (n, equal) in (("baseline", baseline), ("candidate", candidate))
    )


@pytest.mark.parametrize(
    ("baseline", "candidate", "status"),
    [
        ((16, 16), (16, 0), Status.FAILED),
        ((16, 16), (16, 16), Status.PASSED),
        ((40, 40), (40, 20), Status.PASSED),
        ((200, 120), (200, 10), Status.FAILED),
    ],
    ids=["ignored", "honoured", "parts sooner", "ignored beside a noisy baseline"],
)
def test_a_seed_is_ignored_when_only_chance_repeats_an_answer(
    baseline, candidate, status
):
    (check,) = seed_checks(rows(baseline, candidate), 0.05)
    assert check.status is status
    assert str(candidate[1]) in check.reason


@pytest.mark.parametrize(
    ("baseline", "candidate"),
    [((4, 4), (4, 0)), ((20, 4), (20, 0)), ((0, 0), (16, 0))],
    ids=["too few", "the baseline does not repeat itself", "nothing to hold against"],
)
def test_nothing_is_said_where_nothing_can_be_told(baseline, candidate):
    assert seed_checks(rows(baseline, candidate), 0.05) == []
    assert seed_checks((), 0.05) == []


def requests(*entries):
    """(arm, phase, case, trial, digest) of each request."""
    arm, phase, case, trial, digest = zip(*entries, strict=True)
    every = np.ones(len(entries), dtype=np.bool_)

    def texts(values):
        return code(np.array(values, dtype=object))

    return Requests(
        n=len(entries),
        numbers={
            "trial": Column(np.array(trial, dtype=float), every),
            "answer_digest": Column(np.array(digest, dtype=float), every),
        },
        labels={
            "arm": texts(arm),
            "phase": texts(phase),
            "case_id": texts(case),
            "outcome": texts(["completed"] * len(entries)),
        },
    )


SAMPLED = WorkloadSpec(sampling=SamplingSpec(temperature=1.0, seed=7))


def test_a_case_and_trial_counts_once_whatever_the_phases():
    found = repeat_rows(
        requests(
            ("baseline", "quality", "a", 0, 1),
            ("baseline", "latency", "a", 0, 1),
            ("baseline", "sweep", "a", 0, 2),
            ("baseline", "quality", "a", 1, 3),
            ("baseline", "quality", "b", 0, 4),
            ("baseline", "warmup", "b", 0, 9),
            ("candidate", "quality", "a", 0, 5),
            ("candidate", "latency", "a", 0, 6),
        ),
        SAMPLED,
    )
    assert found == rows((1, 1), (1, 0))


@pytest.mark.parametrize(
    "workload",
    [
        WorkloadSpec(sampling=SamplingSpec(temperature=1.0)),
        WorkloadSpec(sampling=SamplingSpec(seed=7)),
        WorkloadSpec(
            sampling=SamplingSpec(temperature=1.0, seed=7), load=LoadSpec(cache="cold")
        ),
    ],
    ids=["no seed", "greedy", "every prompt has its own mark"],
)
def test_requests_that_are_not_the_same_are_no_repeats(workload):
    twice = [("baseline", p, "a", 0, 1) for p in ("quality", "latency")]
    assert repeat_rows(requests(*twice), workload) == ()
