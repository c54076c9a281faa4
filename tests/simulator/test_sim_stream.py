"""Faults of the stream: what they change, and that nothing else changes."""

import asyncio
import json
from random import Random

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from simulator import sim_client as client

from routeproof.errors import ConfigError
from routeproof.simulator.defects import SOUND, StreamDefects
from routeproof.simulator.faults import FAULTS, defects_of, parse_fault
from routeproof.simulator.proxy import serve_proxy
from routeproof.simulator.route import SimulatedRoute
from routeproof.simulator.server import serve
from routeproof.simulator.stream_filter import DONE, StreamFilter


def event(**delta):
    body = {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    return b"data: " + json.dumps(body, separators=(",", ":")).encode() + b"\n\n"


STREAM = [
    event(role="assistant", content=""),
    *(event(content=str(i)) for i in range(20)),
    DONE,
]


def through(wrong, events=STREAM, seed=1):
    pipe = StreamFilter(wrong, Random(seed))
    timed = []
    for number, one in enumerate(events):
        timed += pipe.feed(number * 0.01, [one])
    return timed + pipe.end(len(events) * 0.01), pipe


harmless = st.builds(
    StreamDefects,
    split_bytes=st.integers(0, 50),
    coalesce_chunks=st.integers(1, 9),
    buffer_share=st.sampled_from([0.0, 1.0]),
    chunk_delay_s=st.sampled_from([0.0, 0.003]),
    first_delay_s=st.sampled_from([0.0, 0.5]),
)


@pytest.mark.slow
@given(harmless, st.integers(0, 999))
@settings(max_examples=80, deadline=None)
def test_timing_and_splitting_lose_no_byte_and_keep_the_order(wrong, seed):
    timed, pipe = through(wrong, seed=seed)
    assert b"".join(t.data for t in timed) == b"".join(STREAM)
    assert [t.due_s for t in timed] == sorted(t.due_s for t in timed)
    assert pipe.ended == "complete"


def test_a_cut_stream_has_no_end():
    timed, pipe = through(StreamDefects(cut_share=1.0))
    data = b"".join(t.data for t in timed)
    assert pipe.ended == "cut"
    assert DONE not in data
    assert b"".join(STREAM).startswith(data)


def test_a_buffered_stream_comes_at_once_at_the_end():
    timed, _ = through(StreamDefects(buffer_share=1.0))
    assert {t.due_s for t in timed} == {len(STREAM) * 0.01}


def test_below_its_concurrency_a_fault_sleeps():
    pipe = StreamFilter(StreamDefects(cut_share=1.0, min_concurrency=4), Random(1), 3)
    assert [t.data for t in pipe.feed(0.0, STREAM)] == STREAM


def test_every_fault_changes_something_and_knows_its_range():
    for name, fault in FAULTS.items():
        assert parse_fault(name) == (name, fault.usual)
        changed = defects_of(SimulatedRoute(faults={name: fault.usual}))
        assert changed != SOUND, name
        assert (
            min(fault.low, fault.high) <= fault.usual <= max(fault.low, fault.high)
        ), name
        assert fault.reference and fault.what


def test_an_unknown_fault_is_named_with_its_neighbours():
    with pytest.raises(ConfigError, match="did you mean"):
        parse_fault("repetition_loops")
    with pytest.raises(ConfigError, match="must be a number"):
        parse_fault("http_500:often")


def by_proxy(name, body, strength=1.0):
    async def go():
        async with serve(client.route()) as engine:
            wrong = (
                defects_of(SimulatedRoute(faults={name: strength})) if name else SOUND
            )
            async with serve_proxy(f"{engine.url}/v1", wrong) as proxy:
                direct = await client.post(engine.port, body)
                return direct, await client.post(proxy.port, body)

    return asyncio.run(go())


def test_without_a_fault_the_proxy_passes_everything_on():
    for body in (client.chat(), client.chat(stream=True)):
        direct, passed = by_proxy(None, body)
        assert passed[0] == direct[0] == 200
        assert client.shown(passed[1]) == client.shown(direct[1])


def test_the_proxy_makes_errors_of_its_own():
    _, (status, body) = by_proxy("http_500", client.chat())
    assert status == 500 and b"error" in body


def test_the_proxy_cuts_streams():
    direct, passed = by_proxy("stream_cut", client.chat(stream=True))
    assert b"[DONE]" in direct[1]
    assert b"[DONE]" not in passed[1]
    assert len(passed[1]) < len(direct[1])


def test_the_proxy_says_when_there_is_no_engine():
    async def go():
        async with serve_proxy("http://127.0.0.1:1", SOUND) as proxy:
            return await client.post(proxy.port, client.chat())

    assert asyncio.run(go())[0] == 502


@pytest.mark.parametrize(
    "name", ["http_500", "error_in_200", "html_page", "stream_cut", "usage_missing"]
)
def test_the_server_makes_the_faults_of_the_stream_too(name):
    async def go():
        async with serve(client.route(faults={name: 1.0})) as engine:
            options = {"include_usage": True}
            return await client.post(
                engine.port, client.chat(stream=True, stream_options=options)
            )

    status, body = asyncio.run(go())
    assert status == (500 if name == "http_500" else 200)
    assert b'"usage"' not in body


@pytest.mark.parametrize("row", FAULTS.values(), ids=FAULTS)
def test_every_fault_changes_something_at_every_level(row):
    plain = defects_of(SimulatedRoute())
    for strength in row.levels:
        assert row.apply(plain, strength) != plain
    weak = (row.usual - row.low) * (row.high - row.usual)
    assert weak >= 0, "the levels go one way"


@pytest.mark.parametrize(
    "wrong",
    [{"engine": {"step_facter": 2.0}}, {"spoil": {"how": "wrng"}}],
    ids=["a field that is not there", "a value it cannot have"],
)
def test_a_wrong_table_is_refused(wrong):
    row = msgspec.structs.replace(FAULTS["slower"], **wrong)
    with pytest.raises(msgspec.ValidationError):
        row.apply(defects_of(SimulatedRoute()), 1.0)
