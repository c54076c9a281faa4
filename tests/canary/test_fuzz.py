"""Anything may come from outside: nothing here may crash or change a byte."""

import asyncio
import json

import pytest
from canary_fuzz import fuzz
from hypothesis import given, settings
from hypothesis import strategies as st

from routeproof.canary.deciding.lease import Lease
from routeproof.canary.deciding.state import State
from routeproof.canary.relay.connection import Connection, UpstreamError
from routeproof.canary.relay.request import Request
from routeproof.canary.relay.upstream import Exchange, Pool
from routeproof.canary.router import CanaryRouter
from routeproof.canary.samples.cleaning import KEPT_FIELDS
from routeproof.canary.samples.signals import SIGNALS, Tasting, taste
from routeproof.canary.samples.spool import Sample
from routeproof.canary.splitting.share import ShareMeter
from routeproof.canary.splitting.split import PPM
from routeproof.canary.splitting.structure import structure_check
from routeproof.canary.tasting.tee import Copy
from routeproof.engines.adapters import adapter
from routeproof.proof.canary import TrafficSpec

BODY = "Zürich\u2028🙂 ".encode() * 3
CHUNKED = (
    b"HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n"
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n"
    + b"".join(b"%x\r\n%s\r\n" % (len(p), p) for p in (BODY[:7], BODY[7:8], BODY[8:]))
    + b"0\r\nX-Trailer: 1\r\n\r\n"
)
SIZED = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(BODY), BODY)


class Wire(asyncio.Transport):
    """A transport that goes nowhere."""

    def __init__(self):
        super().__init__()
        self.gone = False

    def writelines(self, data):
        self.sent = b"".join(data)

    def is_closing(self):
        return self.gone

    def abort(self):
        self.gone = True

    def pause_reading(self):
        pass

    def resume_reading(self):
        pass


def a_connection():
    connection = Connection()
    connection.connection_made(Wire())
    connection.begin([b"GET / HTTP/1.1\r\n\r\n"])
    return connection


def read_all(pieces, *, ends=False):
    """(status, body, connection) after the pieces; raises ``UpstreamError``."""

    async def go():
        connection = a_connection()
        for piece in pieces:
            connection.data_received(piece)
        if ends:
            connection.connection_lost(None)
        if not connection.has_head:
            raise UpstreamError(connection.error or "none", is_before_first_byte=True)
        pool = Pool("http://127.0.0.1:1")
        exchange = Exchange(connection.status, connection.headers, pool, connection, 0)
        body = b""
        while piece := await exchange.read():
            body += piece
        return connection.status, body, connection

    return asyncio.run(go())


def cut(data, places):
    edges = [0, *sorted(places), len(data)]
    return [data[a:b] for a, b in zip(edges, edges[1:], strict=False) if a < b]


@pytest.mark.parametrize("answer", [CHUNKED, SIZED])
@given(places=st.sets(st.integers(1, len(CHUNKED))))
@settings(max_examples=60, deadline=None)
def test_any_split_of_an_answer_gives_the_same_bytes(answer, places):
    pieces = cut(answer, [p for p in places if p < len(answer)])
    status, body, connection = read_all(pieces)
    assert (status, body) == (200, BODY)
    assert connection.can_reuse


@pytest.mark.parametrize("answer", [CHUNKED, SIZED])
def test_an_answer_byte_by_byte_is_the_same_answer(answer):
    status, body, _ = read_all([answer[i : i + 1] for i in range(len(answer))])
    assert (status, body) == (200, BODY)


@pytest.mark.parametrize("answer", [CHUNKED, SIZED])
@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_an_answer_cut_anywhere_is_never_complete(answer, data):
    end = data.draw(st.integers(0, len(answer) - 1))
    with pytest.raises(UpstreamError):
        read_all([answer[:end]] if end else [], ends=True)


@pytest.mark.slow
@given(st.lists(st.binary(max_size=60), max_size=8))
@settings(max_examples=200, deadline=None)
def test_noise_from_an_upstream_is_an_error_and_never_a_crash(pieces):
    with pytest.raises(UpstreamError):
        read_all(pieces, ends=True)


@given(st.binary(min_size=1, max_size=80))
@settings(max_examples=100, deadline=None)
def test_what_follows_an_answer_is_never_part_of_it_nor_of_the_next(stray):
    status, body, connection = read_all([SIZED + stray])
    assert (status, body) == (200, BODY)
    late = a_connection()
    late.data_received(SIZED)
    late.is_serving = False
    late.data_received(stray)
    assert late.is_closed


def test_a_switch_of_protocols_is_an_error():
    switch = b"HTTP/1.1 101 X\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n"
    with pytest.raises(UpstreamError, match="not HTTP"):
        read_all([switch], ends=True)


def test_a_second_answer_in_the_same_bytes_is_not_added_to_the_first():
    smuggled = b"HTTP/1.1 500 X\r\nContent-Length: 3\r\n\r\nbad"
    status, body, connection = read_all([SIZED + smuggled])
    assert (status, body) == (200, BODY)
    assert not connection.can_reuse


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=4) | st.floats(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner)
    ),
    max_leaves=6,
)
KINDS = st.sampled_from(["json_object", "json_schema", "text", 3, None])
FORMS = JSON | st.fixed_dictionaries({"type": KINDS}, optional={"json_schema": JSON})
TOOLS = JSON | st.lists(
    st.fixed_dictionaries({"type": JSON}, optional={"function": JSON}), max_size=2
)
FIELDS = st.fixed_dictionaries(
    {},
    optional={
        "messages": JSON,
        "user": JSON,
        "stream": JSON,
        "n": JSON,
        "prompt": JSON,
        "response_format": FORMS,
        "tools": TOOLS,
        "max_tokens": JSON,
    },
)


def a_router(taken):
    lease = Lease(lease_s=10.0, clock=lambda: 0.0)
    lease.renew(State(name="c", candidate_digest="d", weight_ppm=PPM // 2))
    pool = Pool("http://127.0.0.1:1")
    return CanaryRouter(
        salt="s",
        pools={"baseline": pool, "canary": pool},
        keys={},
        traffic=TrafficSpec(retry_invalid_structure=True, fallback=("min_p",)),
        lease=lease,
        meter=ShareMeter(window_s=1.0, clock=lambda: 0.0),
        sample_ppm=PPM,
        taste=taken.append,
    )


@pytest.mark.slow
@given(fields=FIELDS, answer=st.binary(max_size=40) | JSON.map(json.dumps))
@settings(max_examples=150, deadline=None)
def test_any_request_is_routed_and_any_answer_is_tasted(fields, answer):
    body = json.dumps(fields).encode()
    taken: list[Copy] = []
    request = Request("POST", b"/v1/chat/completions", [], body)
    decision = a_router(taken).route(request)
    said = answer if isinstance(answer, bytes) else answer.encode()
    check = structure_check("/v1/chat/completions", json.loads(body))
    assert check is None or check(said) in (True, False)
    if decision.sample is None:
        return
    decision.sample.head(200, [(b"content-type", b"application/json")])
    decision.sample.piece(said, 0.0)
    decision.sample.end("completed")
    copy = taken[0]
    sample = Sample(
        request_id=copy.request_id,
        arm=copy.arm,
        at_s=0.0,
        stratum=copy.stratum,
        request={k: copy.body[k] for k in KEPT_FIELDS if k in copy.body},
        record=copy.record(adapter("openai"), 0.0),
    )
    assert set(taste(Tasting(sample, "", {}))) == set(SIGNALS)


CHUNK = (
    b'data: {"id":"a","choices":[{"index":0,"delta":{"content":"x"},'
    b'"finish_reason":"stop"}]}'
)


@pytest.mark.parametrize("end", [b"\n\n", b"\r\n\r\n", b"\r\r"])
@given(data=st.data())
@settings(max_examples=40, deadline=None)
def test_the_observer_reads_any_framing_in_any_split(end, data):
    whole = b": waiting" + end + CHUNK + end + CHUNK.replace(b"data: ", b"data:") + end
    places = data.draw(st.sets(st.integers(1, len(whole) - 1), max_size=20))
    copy = Copy("r", "canary", "stream", b"{}", None, lambda copy: None)
    copy.head(200, [(b"content-type", b"text/event-stream")])
    for piece in cut(whole, places):
        copy.piece(piece, 0.0)
    copy.end("completed")
    assert copy.record(adapter("openai"), 0.0).answer.text == "xx"


@pytest.mark.parametrize("seed", range(4))
def test_damaged_http_crashes_neither_side(seed):
    assert asyncio.run(fuzz(seed, times=150)) == 150
