"""The paced server: what it writes, when it meant to, and what it says of it."""

import asyncio
import json
import socket

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from simulator import sim_client as client

from routeproof.errors import ConfigError
from routeproof.simulator.http import protocol
from routeproof.simulator.lateness import Lateness
from routeproof.simulator.paced import PacedServer
from routeproof.simulator.route import Quality, SimulatedRoute
from routeproof.simulator.server import serve
from routeproof.simulator.wheel import SLOTS, PhaseWheel, spread

PACE_NS = 10_240_000
SLOT_NS = PACE_NS // SLOTS


def turned(until_ns, pace_ns=PACE_NS, streams=(), writes=3, step_ns=20_000):
    """Every write of some streams as (stream, due, at), on a clock that steps."""
    seen, left = [], {}

    def write(stream, due_ns):
        left[stream] = left.get(stream, writes) - 1
        seen.append((stream, due_ns, now))
        return left[stream] > 0

    wheel, now = PhaseWheel(pace_ns, write, 0), 0
    waiting = sorted(streams, key=lambda s: s[1])
    promised = {}
    while now < until_ns:
        while waiting and waiting[0][1] <= now:
            name, _, first_ns = waiting.pop(0)
            promised[name] = (now + first_ns, wheel.add(name, now + first_ns, now))
        while not wheel.turn(now, 256):
            pass
        now += step_ns
    return seen, promised, wheel


def test_slots_are_taken_as_far_apart_as_may_be():
    order = list(spread(16))
    assert sorted(order) == list(range(16))
    for taken in (2, 4, 8):
        assert sorted(order[:taken]) == list(range(0, 16, 16 // taken))


def test_streams_that_begin_together_are_written_one_after_the_other():
    streams = [(f"s{i}", 0, 0) for i in range(512)]
    seen, _, _ = turned(2 * PACE_NS, streams=streams)
    first = sorted(due for _, due, _ in seen[:512])
    gaps = {b - a for a, b in zip(first, first[1:], strict=False)}
    assert gaps == {2 * SLOT_NS}


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 20_000_000), st.integers(0, 15_000_000)),
        min_size=1,
        max_size=20,
    ),
    st.integers(2_000_000, 12_000_000),
)
def test_no_write_comes_early_and_none_is_left_out(arrivals, pace_ns):
    streams = [(i, at, first) for i, (at, first) in enumerate(arrivals)]
    end_ns = 40_000_000 + 4 * pace_ns
    seen, promised, wheel = turned(end_ns, pace_ns, streams, writes=3)
    assert wheel.alive == 0
    for name, (asked_ns, due_ns) in promised.items():
        mine = [(due, at) for stream, due, at in seen if stream == name]
        assert len(mine) == 3
        assert asked_ns <= due_ns == mine[0][0] < asked_ns + pace_ns + 20_000
        assert all(0 <= at - due <= 20_000 for due, at in mine)
        gaps = [b[0] - a[0] for a, b in zip(mine, mine[1:], strict=False)]
        assert all(abs(gap - pace_ns) <= 1 for gap in gaps)


def test_a_clock_that_stood_still_leaves_late_writes_and_no_gap():
    streams = [("s", 0, 0)]
    step_ns = 5 * PACE_NS
    seen, _, _ = turned(30 * PACE_NS, streams=streams, writes=6, step_ns=step_ns)
    late = [at - due for _, due, at in seen]
    assert len(seen) == 6
    assert max(late) >= 3 * PACE_NS


def test_the_next_time_is_that_of_a_slot_with_a_stream_in_it():
    wheel = PhaseWheel(PACE_NS, lambda stream, due_ns: True, 0)
    due_ns = wheel.add("s", 4_000_000, 0)
    assert wheel.next_ns() == due_ns
    assert wheel.turn(due_ns, 2 * SLOTS)
    assert wheel.next_ns() == due_ns + PACE_NS


def test_lateness_is_unknown_before_a_write():
    late = Lateness()
    assert late.quantile_s(0.5) is None
    assert late.most_s is None
    for ms in range(1, 101):
        late.add(ms * 1_000_000)
    assert late.quantile_s(0.5) == pytest.approx(0.05, abs=2e-5)
    assert late.quantile_s(0.99) == pytest.approx(0.099, abs=2e-5)
    assert late.most_s == 0.1


def paced(**changes):
    quality = Quality(filler_tokens=5)
    return SimulatedRoute(paced_s=0.001, quality=quality, **changes)


def posted(asked, headers=b""):
    body = json.dumps(asked).encode()
    length = b"content-length: %d\r\n\r\n" % len(body)
    return b"POST /v1/chat/completions HTTP/1.1\r\n" + headers + length + body


def test_every_chunk_comes_and_the_log_knows_the_request():
    async def go():
        async with serve(paced()) as running:
            options = {"include_usage": True}
            body = client.chat(stream=True, stream_options=options)
            _, short = await client.post(running.port, body)
            _, longer = await client.post(running.port, body | {"max_tokens": 40})
            log = await client.get(running.port, "/log")
            again = await client.get(running.port, "/log")
            page = await client.get(running.port, "/")
        return short, longer, log, again, page

    short, longer, log, again, page = asyncio.run(go())
    for body, count in ((short, 5), (longer, 40)):
        found = client.events(body)
        assert client.text_of(found) == " word" * count
        assert found[-1]["usage"]["completion_tokens"] == count
        assert body.endswith(b"data: [DONE]\n\n")
    served = json.loads(log[1])["served"]
    assert len(served) == 2
    for _, arrived_ns, first_ns, last_ns, late_ns in served:
        assert arrived_ns < first_ns < last_ns
        assert late_ns >= 0
    assert json.loads(again[1])["served"] == []
    assert json.loads(page[1])["chunks"] == 45


def test_the_first_chunk_waits_as_long_as_it_was_told():
    async def go():
        async with serve(paced(paced_first_s=0.05)) as running:
            await client.post(running.port, client.chat(stream=True))
            return await client.get(running.port, "/log")

    (row,) = json.loads(asyncio.run(go())[1])["served"]
    _, arrived_ns, first_ns, _, late_ns = row
    assert first_ns - arrived_ns >= 50_000_000


def test_a_kept_connection_is_served_again_and_again():
    async def go():
        async with serve(paced()) as running:
            reader, writer = await asyncio.open_connection("127.0.0.1", running.port)
            found = []
            for number in range(3):
                name = b"x-request-id: r%d\r\n" % number
                writer.write(posted(client.chat(stream=True), name))
                found.append(await reader.readuntil(b"\r\n0\r\n\r\n"))
            writer.close()
            log = await client.get(running.port, "/log")
        return found, json.loads(log[1])["served"]

    found, served = asyncio.run(go())
    assert [answer.count(b" word") for answer in found] == [5, 5, 5]
    assert [row[0] for row in served] == ["r0", "r1", "r2"]


@pytest.mark.slow
def test_a_reader_that_sleeps_gets_everything_later():
    """What the socket does not take at once is kept for it, in order."""

    tokens = 1_000

    async def go():
        loop = asyncio.get_running_loop()
        route = SimulatedRoute(paced_s=0.0001, quality=Quality(filler_tokens=tokens))
        server = PacedServer(route, loop)
        small = socket.create_server(("127.0.0.1", 0))
        small.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        listening = await loop.create_server(protocol(server), sock=small)
        slow = socket.socket()
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.setblocking(False)
        await loop.sock_connect(slow, small.getsockname())
        await loop.sock_sendall(slow, posted(client.chat(stream=True)))
        while server.is_writing or not server.chunks:
            await asyncio.sleep(0)
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
        got = [b""]
        while not got[-1].endswith(b"\r\n0\r\n\r\n"):
            got.append(await loop.sock_recv(slow, 1 << 20))
        slow.close()
        server.stop()
        listening.close()
        return b"".join(got), server.deferred

    got, deferred = asyncio.run(go())
    assert deferred > 0
    assert got.count(b" word") == tokens


def test_a_client_that_goes_away_stops_its_stream():
    async def go():
        async with serve(paced()) as running:
            _, writer = await asyncio.open_connection("127.0.0.1", running.port)
            writer.write(posted(client.chat(stream=True, max_tokens=10**9)))
            while running.server.chunks < 3:
                await asyncio.sleep(0)
            writer.transport.abort()
            while running.server.connections:
                await asyncio.sleep(0)
            while running.server.is_writing:
                await asyncio.sleep(0)
            return running.server.chunks

    assert asyncio.run(go()) < 10_000


def test_a_pace_of_nothing_is_refused():
    with pytest.raises(ConfigError, match="paced_s"):
        asyncio.run(served(SimulatedRoute(paced_s=0.0)))


async def served(route):
    async with serve(route) as running:
        return running.port
