"""A long body reaches whoever serves it whole; what follows is the next request."""

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from routeproof.canary.relay.inbound import LONG_BODY_BYTES, Inbound, Limits

LONG = bytes(range(256)) * (LONG_BODY_BYTES // 256) + b"\r\n0\r\n\r\nGET /odd HTTP/1.1"
NEXT = b"GET /next HTTP/1.1\r\nHost: h\r\n\r\n"


class Wire(asyncio.Transport):
    """A transport that keeps what is written."""

    def __init__(self):
        super().__init__()
        self.said, self.is_over = b"", False

    def write(self, data):
        self.said += data

    def close(self):
        self.is_over = True

    def abort(self):
        self.is_over = True

    def can_write_eof(self):
        return False

    def pause_reading(self):
        pass

    def resume_reading(self):
        pass


class Served:
    """Answers every request at once."""

    def __init__(self):
        self.requests = []

    def begin(self, request, client):
        self.requests.append((request.method, request.target, request.body))
        client.answer(200, "ok")


def after(pieces, *, limits=None, ends=False):
    """(requests served, transport) after the pieces."""

    async def go():
        served, wire = Served(), Wire()
        inbound = Inbound(served, limits or Limits())
        inbound.connection_made(wire)
        for piece in pieces:
            inbound.data_received(piece)
            await asyncio.sleep(0)
        for _ in range(3):
            await asyncio.sleep(0)
        inbound.connection_lost(None)
        return served.requests, wire

    return asyncio.run(go())


def post(body, *lines):
    top = [b"POST /v1 HTTP/1.1", b"Host: h", b"Content-Length: %d" % len(body), *lines]
    return b"\r\n".join([*top, b"", b""]) + body


def cut(data, places):
    edges = [0, *sorted(places), len(data)]
    return [data[a:b] for a, b in zip(edges, edges[1:], strict=False) if a < b]


@given(st.data())
@settings(max_examples=150, deadline=None)
def test_however_it_is_cut_it_is_whole_and_the_next_one_too(data):
    sent = post(LONG) + post(b"short") + post(LONG) + NEXT
    ends = [len(post(LONG)), len(post(LONG) + post(b"short")), len(sent) - len(NEXT)]
    near = [place + by for place in ends for by in (-1, 0, 1)]
    places = data.draw(st.sets(st.sampled_from(near)))
    places |= data.draw(st.sets(st.integers(1, len(sent) - 1), max_size=6))
    requests, _ = after(cut(sent, places))
    assert requests == [
        ("POST", b"/v1", LONG),
        ("POST", b"/v1", b"short"),
        ("POST", b"/v1", LONG),
        ("GET", b"/next", b""),
    ]


def test_after_the_last_request_nothing_is_served():
    first, rest = cut(post(LONG, b"Connection: close") + NEXT, [100])
    requests, wire = after([first, rest])
    assert [body for _, _, body in requests] == [LONG]
    assert wire.is_over and wire.said.count(b"HTTP/1.1 200") == 1


def test_a_length_above_the_limit_is_refused_before_its_body():
    requests, wire = after(
        [b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 200000\r\n\r\n", LONG],
        limits=Limits(body_bytes=LONG_BODY_BYTES + 1),
    )
    assert not requests and b" 413 " in wire.said


@pytest.mark.parametrize(
    "lines",
    [
        b"Content-Length: 100000\r\nTransfer-Encoding: chunked",
        b"Transfer-Encoding: chunked\r\nContent-Length: 100000",
        b"Content-Length: 100000\r\nContent-Length: 100000",
        b"Content-Length: 100000\r\nContent-Length: 5",
        b"Content-Length: 100000, 5",
        b"Content-Length: +100000",
    ],
)
def test_two_ways_to_tell_the_end_are_refused(lines):
    requests, wire = after(
        [b"POST / HTTP/1.1\r\nHost: h\r\n" + lines + b"\r\n\r\n", LONG + NEXT]
    )
    assert not requests and b" 400 " in wire.said


def test_a_long_body_that_ends_early_is_never_served():
    requests, _ = after(cut(post(LONG)[:-1], [50, 1_000, 60_000]))
    assert not requests


def test_a_target_above_the_limit_is_refused_though_it_came_in_one_read():
    target = b"/" + b"x" * Limits().header_bytes
    requests, wire = after([b"GET " + target + b" HTTP/1.1\r\nHost: h\r\n\r\n"])
    assert not requests and b" 431 " in wire.said


def test_the_head_after_a_long_body_is_not_taken_for_a_long_head():
    first = post(LONG) + NEXT[:10]
    requests, _ = after([first, NEXT[10:]])
    assert [target for _, target, _ in requests] == [b"/v1", b"/next"]
