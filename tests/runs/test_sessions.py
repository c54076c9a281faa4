"""Conversations with time to think, and streams that begin over a ramp."""

import dataclasses
from collections import Counter, defaultdict

import msgspec
import numpy as np
import pytest
from fakes.openai_server import chat_stream, json_reply, serving
from hypothesis import given, settings
from hypothesis import strategies as st
from record_cases import a_record
from run_cases import a_target, a_workload, captured, run, some_cases

from routeproof.engines.adapters import adapter
from routeproof.errors import ConfigError
from routeproof.proof.workload import ArrivalSpec, LoadSpec, WorkloadSpec
from routeproof.records.store import RunFolder
from routeproof.runs.blocks import Block
from routeproof.runs.conduct import conduct
from routeproof.runs.job import read_job, write_job
from routeproof.runs.plan import build_plan
from routeproof.runs.shard import Shard, every
from routeproof.runs.watch import Watch
from routeproof.workloads.arrivals import closed_offsets_s
from routeproof.workloads.fingerprint import fingerprint
from routeproof.workloads.sessions import Session, Turn
from routeproof.workloads.trace import Trace

THINK_S = 0.005


def turns(*clusters):
    """Cases whose clusters are given, one letter each; ``-`` has none."""
    return tuple(
        msgspec.structs.replace(case, cluster=None if name == "-" else name)
        for case, name in zip(some_cases(len(clusters)), clusters, strict=True)
    )


def a_plan(cases, *, arms=("baseline", "candidate"), **arrivals):
    workload = a_workload("sweep", load={"warmup_requests": 0}, **arrivals)
    return build_plan(cases, workload, arms=arms, phases=("sweep",))


def blocks_of(plan):
    return [block for stage in plan.stages for block in stage.blocks]


def test_the_turns_of_a_session_are_sent_together_in_their_order():
    plan = a_plan(turns(*"ab-a b".replace(" ", "")), concurrency=(1,), think_s=1.0)
    (block, other) = blocks_of(plan)
    sent = [(p.case, p.session) for p in block.requests()]
    assert sent == [(0, 0), (3, 0), (1, 1), (4, 1), (2, 2)]
    firsts = {p.case for p in block.requests() if p.think_s == 0.0}
    assert firsts == {0, 1, 2}
    asked = [(p.case, p.think_s) for p in block.requests()]
    assert asked == [(p.case, p.think_s) for p in other.requests()]


def test_a_level_of_sessions_is_whole_sessions_and_at_least_what_was_asked():
    cases = turns(*"aaabbb")
    assert a_plan(cases, concurrency=(1,), think_s=0.0).planned == 2 * 6
    assert a_plan(cases, concurrency=(1,), think_s=0.0, requests=4).planned == 2 * 6
    assert a_plan(cases, concurrency=(1,), think_s=0.0, requests=7).planned == 2 * 9
    plan = a_plan(cases, request_rate=(10.0,), think_s=0.0, requests=7)
    (block, _) = blocks_of(plan)
    assert len(block.offsets_s) == 3 and block.count == 9


def test_sessions_arrive_by_the_rate_and_their_turns_share_the_arrival():
    plan = a_plan(turns(*"aabb"), request_rate=(2.0,), think_s=1.0)
    (block, _) = blocks_of(plan)
    offsets = defaultdict(set)
    for planned in block.requests():
        offsets[planned.session].add(planned.offset_s)
    assert [o for s in offsets.values() for o in s] == block.offsets_s.tolist()


@pytest.mark.slow
@given(
    clusters=st.lists(st.sampled_from("abc-"), min_size=1, max_size=9),
    shards=st.integers(1, 4),
    concurrency=st.sampled_from([1, 2, 5]),
    position=st.integers(0, 3),
    count=st.integers(1, 40),
)
@settings(max_examples=60, deadline=None)
def test_no_session_is_split_over_processes(
    clusters, shards, concurrency, position, count
):
    plan = a_plan(turns(*clusters), concurrency=(concurrency,), think_s=0.0)
    block = blocks_of(plan)[0]
    block = dataclasses.replace(block, position=position % block.n_units)
    block = dataclasses.replace(block, count=block.n_requests(count))
    whole, owners = Counter(), defaultdict(set)
    for index in range(shards):
        share = Shard(index, shards).share(block)
        if share is None:
            continue
        _, offset, step = share
        for planned in every(block.requests(), offset, step):
            whole[planned.request_id] += 1
            owners[planned.session].add(index)
    assert whole == Counter(p.request_id for p in block.requests())
    assert all(len(owner) == 1 for owner in owners.values())
    assert len(owners) == count


def test_the_streams_of_a_ramp_are_shared_out_with_their_starts():
    block = Block(
        number=1,
        group=1,
        arm="baseline",
        phase="sweep",
        level="c5",
        n_cases=3,
        concurrency=5,
        starts_s=closed_offsets_s(5, ramp_s=10.0),
    )
    shares = [Shard(index, 2).share(block)[0] for index in range(2)]
    assert [s.starts_s.tolist() for s in shares] == [[0.0, 4.0, 8.0], [2.0, 6.0]]
    assert [s.concurrency for s in shares] == [3, 2]


@pytest.mark.parametrize(
    ("arrivals", "words"),
    [
        ({"trace": "t", "think_s": 1.0}, "times of every turn"),
        ({"request_rate": (2.0,), "ramp_s": 1.0}, "closed level"),
    ],
)
def test_what_makes_no_sense_together_is_refused(arrivals, words):
    with pytest.raises(ConfigError, match=words):
        a_plan(some_cases(2), **arrivals)


def test_a_stage_without_ramp_and_thinking_keeps_its_fingerprint():
    def mark(**changes):
        stage = ArrivalSpec(concurrency=(2,), **changes)
        return fingerprint((), WorkloadSpec(load=LoadSpec(sweep=stage)))

    assert mark() == mark(ramp_s=0.0, think_s=None)
    assert len({mark(), mark(ramp_s=1.0), mark(think_s=0.0), mark(think_s=1.0)}) == 4


def carry_out(path, plan, script=None):
    """All columns a test may want, of one arm, by request id."""
    played = script or chat_stream()

    async def go():
        async with serving(played) as server:
            targets = dict.fromkeys(plan.arms, a_target(server.url))
            folder = RunFolder.create(path)
            await conduct(plan, targets, folder)
            return server

    server = run(go())
    rows = {}
    for part in RunFolder.open(path).parts():
        names = part.text("request_id").tolist()
        columns = [
            part.number(name).values.tolist()
            for name in ("intended_s", "dispatched_s", "end_s")
        ]
        rows.update(zip(names, zip(*columns, strict=True), strict=True))
    return rows, server


@pytest.mark.parametrize(
    "arrivals", [{"concurrency": (2,)}, {"request_rate": (400.0,)}]
)
def test_a_turn_is_due_its_think_time_after_the_answer_before_it(tmp_path, arrivals):
    plan = a_plan(turns(*"aaabbb"), arms=("baseline",), think_s=THINK_S, **arrivals)
    rows, _ = carry_out(tmp_path / "r", plan)
    (block,) = blocks_of(plan)
    before = {}
    for planned in block.requests():
        intended_s, dispatched_s, end_s = rows[planned.request_id]
        assert dispatched_s >= intended_s
        if planned.session in before:
            due_s = before[planned.session] + planned.think_s
            assert intended_s == pytest.approx(due_s, abs=1e-6)
        before[planned.session] = end_s
    assert len(rows) == 6


def test_a_turn_that_fails_does_not_end_the_session(tmp_path):
    plan = a_plan(turns(*"aaa"), arms=("baseline",), concurrency=(1,), think_s=0.0)

    def script(seen):
        return json_reply({"error": "busy"}, 503) if seen.number == 1 else chat_stream()

    rows, server = carry_out(tmp_path / "r", plan, script)
    assert len(rows) == len(server.seen) == 3


@pytest.mark.slow
def test_streams_begin_over_the_ramp(tmp_path):
    plan = a_plan(
        some_cases(12), arms=("baseline",), concurrency=(3,), ramp_s=0.03, requests=12
    )
    gate = []

    def script(seen):
        gate.append(seen.arrived_ns)
        return chat_stream(wait_s=0.01)

    rows, _ = carry_out(tmp_path / "r", plan, script)
    dispatched = np.sort([d for _, d, _ in rows.values()])
    begun = dispatched - dispatched[0]
    assert len(rows) == 12
    assert (begun >= 0.0099).sum() >= 9
    assert np.sum(begun < 0.0099) <= 1


def test_a_resumed_session_goes_on_where_it_was(tmp_path):
    cases = turns(*"aaab")
    plan = a_plan(cases, arms=("baseline",), concurrency=(1,), think_s=0.0)
    ids = [p.request_id for p in blocks_of(plan)[0].requests()]

    async def go():
        async with serving(chat_stream()) as server:
            folder = RunFolder.create(tmp_path / "r")
            folder.append((a_record(request_id=ids[0]), a_record(request_id=ids[1])))
            folder.flush()
            await conduct(plan, {"baseline": a_target(server.url)}, folder)
            return [s.request_id for s in server.seen]

    assert run(go()) == ids[2:]


def test_a_job_carries_sessions_ramps_and_traces(tmp_path):
    folder = RunFolder.create(tmp_path / "r")
    target = a_target("http://h/v1", adapter=adapter("openai"))

    def again(plan):
        write_job(folder, plan, {"baseline": target}, 0.0)
        return read_job(folder, {})[0]

    plan = a_plan(turns(*"aab"), concurrency=(3,), think_s=1.0, ramp_s=2.0)
    for one, two in zip(blocks_of(plan), blocks_of(again(plan)), strict=True):
        assert list(one.requests()) == list(two.requests())
        assert one.starts_s.tolist() == two.starts_s.tolist()
    ones = np.ones(3, dtype=np.int64)
    trace = Trace("test", np.array([0.0, 0.1, 4.0]), ones, ones)
    workload = a_workload("sweep", trace="t")
    plan = build_plan(some_cases(2), workload, phases=("sweep",), traces={"t": trace})
    one, two = blocks_of(plan)[-1], blocks_of(again(plan))[-1]
    assert one.offsets_s.tolist() == two.offsets_s.tolist() == [0.0, 0.1, 4.0]


# -- what the client says of itself ----------------------------------------------------


def watched(spans, block):
    """Numbers of a block with requests of the given (dispatched, end), in order."""
    watch = Watch()
    watch.enter()
    for number, (dispatched, end) in enumerate(spans):
        record = a_record(
            request_id=f"x/{number}",
            phase=block.phase,
            level=block.level,
            intended_s=dispatched,
            dispatched_s=dispatched,
            end_s=end,
        )
        watch.see(record, captured([]))
    watch.leave(block, 0)
    return watch.numbers()["baseline/sweep/x"]


def a_block(**changes):
    given = {
        "number": 1,
        "group": 1,
        "arm": "baseline",
        "phase": "sweep",
        "level": "x",
        "n_cases": 4,
    }
    return Block(**{**given, **changes})


TWO_TURNS = (Session(0.0, (Turn(0, 0.0), Turn(1, 3.0))),)


def test_who_thinks_is_a_stream_that_is_busy():
    block = a_block(concurrency=1, sessions=TWO_TURNS)
    spans = [(0, 1), (4, 5), (5, 6), (9, 10)]
    assert watched(spans, block)["concurrency_share"] == pytest.approx(1.0)
    without = a_block(concurrency=1)
    assert watched(spans, without)["concurrency_share"] < 0.4


def test_the_rate_of_sessions_is_that_of_their_first_turns():
    block = a_block(sessions=TWO_TURNS, offsets_s=np.array([0.0, 1.0]))
    spans = [(0, 1), (4, 5), (1, 2), (5, 60)]
    assert watched(spans, block)["rate_share"] == pytest.approx(1.0)


def test_streams_that_have_not_begun_are_not_asked_for():
    starts = closed_offsets_s(2, ramp_s=2.0)
    spans = [(0, 1), (1, 2), (1, 2), (2, 3), (2, 3)]
    block = a_block(concurrency=2, starts_s=starts)
    assert watched(spans, block)["concurrency_share"] == pytest.approx(1.0)
    at_once = a_block(concurrency=2)
    assert watched(spans, at_once)["concurrency_share"] == pytest.approx(0.75)
