"""A plan: interleaved, balanced, the same for the same seed."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from run_cases import a_workload, some_cases

from routeproof.errors import ConfigError
from routeproof.proof.workload import ArrivalSpec, LoadSpec, WorkloadSpec
from routeproof.runs.plan import build_plan
from routeproof.workloads.trace import Trace

ARMS = ("baseline", "candidate", "control")


def measured(plan):
    return [b for s in plan.stages for b in s.blocks if b.phase != "warmup"]


def sent(blocks, arm):
    return [(p.case, p.trial) for b in blocks if b.arm == arm for p in b.requests()]


@pytest.mark.slow
@given(
    n_cases=st.integers(1, 40),
    trials=st.integers(1, 3),
    block_size=st.integers(1, 12),
    concurrency=st.lists(st.integers(1, 6), min_size=1, max_size=2, unique=True),
    seed=st.integers(0, 2**32),
)
@settings(max_examples=60, deadline=None)
def test_all_arms_get_the_same_cases_and_trials(
    n_cases, trials, block_size, concurrency, seed
):
    workload = a_workload(
        concurrency=tuple(concurrency),
        trials=trials,
        seed=seed,
        load={"block_size": block_size},
    )
    plan = build_plan(some_cases(n_cases), workload)
    for stage in plan.stages:
        blocks = [b for b in stage.blocks if b.phase != "warmup"]
        expected = Counter((c, t) for c in range(n_cases) for t in range(trials))
        for arm in ARMS:
            assert Counter(sent(blocks, arm)) == expected
        by_group = {}
        for block in blocks:
            by_group.setdefault(block.group, []).append(block)
        for group in by_group.values():
            assert sorted(b.arm for b in group) == sorted(ARMS)
            assert len({tuple(sent(group, b.arm)) for b in group}) == 1
            numbers = [b.number for b in group]
            assert max(numbers) - min(numbers) == len(ARMS) - 1


def test_the_order_of_the_arms_turns_round_from_group_to_group():
    plan = build_plan(some_cases(64), a_workload(load={"block_size": 4}))
    arms = [b.arm for b in measured(plan)]
    groups = [tuple(arms[i : i + 3]) for i in range(0, len(arms), 3)]
    pairs = list(zip(groups[::2], groups[1::2], strict=True))
    assert all(second == first[::-1] for first, second in pairs)
    assert len({first for first, _ in pairs}) > 1


def test_the_same_seed_gives_the_same_plan_and_another_seed_another():
    def ids(seed):
        plan = build_plan(some_cases(40), a_workload(seed=seed))
        return [p.request_id for b in measured(plan) for p in b.requests()]

    assert ids(1) == ids(1)
    assert ids(1) != ids(2)
    assert len(set(ids(1))) == len(ids(1))


def test_both_arms_get_the_same_arrival_times():
    workload = a_workload("sweep", request_rate=(50.0,), duration_s=20.0)
    plan = build_plan(some_cases(7), workload, phases=("sweep",))
    by_group = {}
    for block in measured(plan):
        by_group.setdefault(block.group, []).append(block.offsets_s)
    assert len(by_group) == 4
    for first, *others in by_group.values():
        assert all(np.array_equal(first, o) for o in others)
    total = sum(len(offsets[0]) for offsets in by_group.values())
    assert 850 < total < 1150


def test_a_timed_level_never_repeats_a_case_with_the_same_trial():
    workload = a_workload("sweep", request_rate=(50.0,), duration_s=20.0)
    plan = build_plan(some_cases(7), workload, phases=("sweep",))
    for arm in ARMS:
        keys = sent(measured(plan), arm)
        assert len(keys) == len(set(keys))


def test_warm_up_comes_first_apart_and_not_for_the_control():
    plan = build_plan(some_cases(10), a_workload(load={"warmup_requests": 3}))
    first = plan.stages[0].blocks[:2]
    assert [(b.phase, b.count) for b in first] == [("warmup", 3)] * 2
    assert {b.arm for b in first} == {"baseline", "candidate"}
    none = build_plan(some_cases(10), a_workload(load={"warmup_requests": 0}))
    assert all(b.phase != "warmup" for b in none.stages[0].blocks)


def test_a_closed_block_is_several_times_its_concurrency():
    plan = build_plan(some_cases(500), a_workload(concurrency=(16,)))
    assert measured(plan)[0].count == 64


def a_cached_workload(cache):
    stage = ArrivalSpec(concurrency=(1,))
    load = LoadSpec(quality=stage, latency=stage, cache=cache, block_size=4)
    return build_plan(
        some_cases(8), WorkloadSpec(load=load), phases=("quality", "latency")
    )


def test_a_cold_cache_gets_a_new_prefix_per_group_equal_for_both_arms():
    blocks = measured(a_cached_workload("cold"))
    assert all(b.nonce is None for b in blocks if b.phase == "quality")
    latency = [b for b in blocks if b.phase == "latency"]
    for group in {b.group for b in latency}:
        nonce = {b.arm: b.nonce for b in latency if b.group == group}
        assert nonce["baseline"] == nonce["candidate"] != nonce["control"]
    assert len({b.nonce for b in latency}) == 2 * len({b.group for b in latency})


def test_a_warm_cache_is_filled_with_every_case_first():
    plan = a_cached_workload("warm")
    filling = [b for b in plan.stages[1].blocks if b.phase == "warmup"]
    assert [(b.count, b.prefill_only) for b in filling] == [(8, True)] * 2


@pytest.mark.parametrize(
    ("arrivals", "words"),
    [({"requests": 4}, "neither"), ({"concurrency": (0,)}, "below 1")],
)
def test_a_level_that_makes_no_sense_is_refused(arrivals, words):
    with pytest.raises(ConfigError, match=words):
        build_plan(some_cases(3), a_workload(**arrivals))


def test_a_workload_without_cases_is_refused():
    with pytest.raises(ConfigError, match="no cases"):
        build_plan((), a_workload())


def test_a_plan_knows_its_size_unless_the_clock_decides():
    counted = build_plan(some_cases(10), a_workload())
    assert counted.planned == 2 * 4 + 3 * 10
    timed = build_plan(
        some_cases(10), a_workload("sweep", concurrency=(2,), duration_s=10.0)
    )
    assert timed.planned is None
    assert timed.summary()["stages"][-1]["requests"] is None


def a_trace(offsets_s):
    ones = np.ones(len(offsets_s), dtype=np.int64)
    return Trace("test", np.array(offsets_s), ones, ones)


def test_a_trace_is_replayed_whole_by_every_arm_at_its_own_times():
    trace = a_trace([0.0, 0.5, 0.6, 4.0])
    workload = a_workload("sweep", trace="t", requests=3)
    plan = build_plan(some_cases(2), workload, traces={"t": trace})
    blocks = [b for b in plan.stages[-1].blocks if b.phase == "sweep"]
    assert {b.arm for b in blocks} == {"baseline", "candidate", "control"}
    assert all(b.offsets_s.tolist() == [0.0, 0.5, 0.6] for b in blocks)
    assert plan.stages[-1].level == "trace"


def test_a_trace_at_another_rate_keeps_its_bursts():
    trace = a_trace([0.0, 1.0, 1.0, 4.0])
    workload = a_workload("sweep", trace="t", request_rate=(2.0,))
    plan = build_plan(some_cases(2), workload, traces={"t": trace})
    offsets = plan.stages[-1].blocks[-1].offsets_s
    assert offsets[1] == offsets[2]


def test_a_trace_with_a_concurrency_is_refused():
    workload = a_workload("sweep", trace="t", concurrency=(2,))
    with pytest.raises(ConfigError, match="no concurrency of its own"):
        build_plan(some_cases(2), workload, traces={})
