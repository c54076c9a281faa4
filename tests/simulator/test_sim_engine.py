"""The engine core: what a continuous-batching engine must and must not do."""

import json

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from simulator import sim_client as client

from routeproof.simulator.route import (
    Memory,
    SimulatedRoute,
    Speculation,
    Timing,
)
from routeproof.simulator.virtual import VirtualEngine

STEADY = Timing(jitter=0.0)


def run(route, bodies, gap_s=0.0, deadline_s=1e6):
    """Send all bodies, ``gap_s`` apart; exchanges in the order of sending."""
    venue = VirtualEngine(route)
    sent = [
        venue.send(
            i * gap_s,
            "/v1/chat/completions",
            json.dumps(b).encode(),
            deadline_s=deadline_s,
        )
        for i, b in enumerate(bodies)
    ]
    while venue.next_end() is not None:
        pass
    return venue, sent


def telling(i, words=1, **fields):
    return client.chat(f"{i} " + "word " * words, stream=True, **fields)


def first_token_s(exchange):
    return exchange.pieces[0].due_s - exchange.sent_s


def test_the_first_token_takes_longer_for_a_longer_prompt():
    route = SimulatedRoute(timing=STEADY)
    times = []
    for words in (100, 2000, 8000):
        _, (one,) = run(route, [telling(1, words)])
        times.append(first_token_s(one))
    assert times[0] < times[1] < times[2]
    # Compute bound: four times the prompt takes about four times as long.
    assert times[2] / times[1] == pytest.approx(4.0, rel=0.15)


def test_a_larger_batch_is_slower_for_each_and_faster_for_all():
    route = SimulatedRoute(timing=msgspec.structs.replace(STEADY, sequence_s=0.0005))
    alone, _ = run(route, [telling(0)])
    many, _ = run(route, [telling(i) for i in range(32)])
    assert many.now_s > alone.now_s
    rate = many.engine.tally.output_tokens / many.now_s
    assert rate > 5 * alone.engine.tally.output_tokens / alone.now_s


def test_what_exceeds_the_slots_waits():
    timing = msgspec.structs.replace(STEADY, max_running=1)
    venue, (one, two) = run(SimulatedRoute(timing=timing), [telling(1), telling(2)])
    assert two.pieces[0].due_s >= one.end_s
    assert venue.engine.tally.queue_s > 0


def test_a_repeated_prompt_comes_from_the_cache_and_sooner():
    route = SimulatedRoute(timing=STEADY)
    _, (cold, warm) = run(route, [telling(1, 3000), telling(1, 3000)], gap_s=10.0)
    assert first_token_s(warm) < first_token_s(cold) / 3
    off = SimulatedRoute(timing=STEADY, memory=Memory(prefix_cache=False))
    _, (first, second) = run(off, [telling(1, 3000), telling(1, 3000)], gap_s=10.0)
    assert first_token_s(second) == pytest.approx(first_token_s(first))


def test_too_little_memory_preempts_and_everybody_finishes():
    memory = Memory(kv_capacity_tokens=300, prefix_cache=False)
    venue, sent = run(SimulatedRoute(memory=memory), [telling(i, 40) for i in range(8)])
    assert venue.engine.tally.preemptions > 0
    assert all(e.failure is None for e in sent)
    assert venue.engine.kv_used == 0


def test_a_prompt_beyond_the_context_is_refused():
    route = SimulatedRoute(memory=Memory(context_limit_tokens=100))
    _, (one,) = run(route, [telling(1, 500)])
    assert one.status == 400


def test_drafts_that_are_accepted_save_time():
    plain, _ = run(SimulatedRoute(timing=STEADY), [telling(1)])
    good, _ = run(
        SimulatedRoute(timing=STEADY, speculation=Speculation()), [telling(1)]
    )
    none = Speculation(acceptance=(0.0,))
    bad, _ = run(SimulatedRoute(timing=STEADY, speculation=none), [telling(1)])
    assert good.now_s < plain.now_s < bad.now_s


def test_a_block_drafter_drafts_in_one_pass():
    chain = Speculation(draft_tokens=8, draft_step_s=0.002)
    block = msgspec.structs.replace(chain, shape="block")
    slow, _ = run(SimulatedRoute(timing=STEADY, speculation=chain), [telling(1)])
    fast, _ = run(SimulatedRoute(timing=STEADY, speculation=block), [telling(1)])
    assert fast.now_s < slow.now_s


@pytest.mark.slow
@given(
    st.integers(0, 7),
    st.lists(st.floats(0.0, 1.0), min_size=1, max_size=4),
    st.integers(1, 12),
    st.integers(0, 2**20),
)
@settings(max_examples=40, deadline=None)
def test_the_counts_of_speculation_agree_among_themselves(k, curve, n, seed):
    spec = Speculation(draft_tokens=k, acceptance=tuple(curve)) if k else None
    route = SimulatedRoute(speculation=spec, seed=seed)
    venue, sent = run(route, [telling(i) for i in range(n)])
    tally = venue.engine.tally
    sequences = [s for e in sent for s in e._sequences]
    assert tally.output_tokens == sum(s.produced for s in sequences)
    assert tally.accepted == sum(s.accepted for s in sequences) <= tally.drafted
    assert tally.accepted == sum(tally.accepted_at)
    for s in sequences:
        assert sum(s.hist) == s.spec_passes
        assert sum(j * h for j, h in enumerate(s.hist)) == s.accepted
        made = s.spec_passes + s.plain_passes + s.accepted
        # Drafts past the end are accepted too; they are not shown.
        assert 0 <= made - (s.produced - 1) <= k
    assert sorted(tally.accepted_at, reverse=True) == tally.accepted_at


@pytest.mark.slow
def test_the_toy_text_with_exact_speculation_is_as_long_as_without_on_average():
    lengths = []
    for spec in (None, Speculation()):
        route = SimulatedRoute(answers="toy", speculation=spec)
        bodies = [
            client.chat(f"list {i}", stream=True, temperature=1.0, seed=i)
            for i in range(150)
        ]
        venue, _ = run(route, bodies)
        lengths.append(venue.engine.tally.output_tokens / 150)
    assert lengths[0] == pytest.approx(lengths[1], rel=0.2)


def test_a_stuck_request_ends_with_the_client_s_patience():
    route = SimulatedRoute(faults={"structured_stuck": 1.0})
    wanted = {"type": "json_object"}
    _, (one,) = run(route, [telling(1, response_format=wanted)], deadline_s=5.0)
    assert one.failure == "timeout"
    assert one.end_s == pytest.approx(5.0)


def test_the_same_route_says_the_same_twice():
    route = SimulatedRoute(speculation=Speculation())
    bodies = [telling(i) for i in range(6)]
    _, first = run(route, bodies)
    _, second = run(route, bodies)
    assert [e.pieces for e in first] == [e.pieces for e in second]


def test_a_request_given_up_in_mid_pass_leaves_no_trace():
    venue = VirtualEngine(SimulatedRoute(timing=STEADY))
    body = json.dumps(telling(1)).encode()
    gone = venue.send(0.0, "/v1/chat/completions", body, deadline_s=0.05)
    stays = venue.send(0.0, "/v1/chat/completions", body)
    while venue.next_end() is not None:
        pass
    assert gone.failure == "timeout" and stays.failure is None
    assert not venue.engine.running and venue.engine.kv_used == 0
