"""Chunks that pass as they came give the same bytes as chunks that are parsed."""

import asyncio

import pytest
from canary_cases import a_gateway, ask, run, split
from fakes.openai_server import chat_stream, chunk, head
from hypothesis import given, settings
from hypothesis import strategies as st

from routeproof.canary.relay.connection import Connection

TOP = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
END = b"0\r\n\r\n"


class Wire(asyncio.Transport):
    """A transport that goes nowhere."""

    def writelines(self, data):
        pass

    def is_closing(self):
        return False

    def abort(self):
        pass


def received(reads):
    """(payload, how many reads passed unparsed, connection) of what came."""
    connection = Connection()
    connection.connection_made(Wire())
    connection.begin([b"GET / HTTP/1.1\r\n\r\n"])
    found, passed = [], []

    def changed():
        if connection.chunks:
            found.append(connection.take())

    connection.on_change = changed
    tee = lambda payload, at_s: found.append(payload)  # noqa: E731
    connection.pass_chunks(passed.append, lambda: 1.5, tee)
    for read in reads:
        connection.data_received(read)
    assert connection.passed_bytes <= sum(map(len, passed))
    return b"".join(found), len(passed), connection


@given(st.lists(st.binary(min_size=1, max_size=40), min_size=1, max_size=8), st.data())
@settings(max_examples=300, deadline=None)
def test_however_a_body_is_cut_into_reads_it_is_the_same(parts, data):
    framed = [chunk(part) for part in parts]
    stream = b"".join([TOP, *framed, END])
    edges, at = [], len(TOP)
    for each in framed:
        edges.append(at)
        at += len(each)
    cuts = data.draw(st.sets(st.sampled_from([*edges, at])))
    cuts |= data.draw(st.sets(st.integers(1, len(stream) - 1), max_size=4))
    places = [0, *sorted(cuts - {0}), len(stream)]
    reads = [stream[a:b] for a, b in zip(places, places[1:], strict=False) if a < b]
    body, _, connection = received(reads)
    assert body == b"".join(parts)
    assert connection.is_complete and connection.can_reuse and connection.error is None


def test_one_chunk_a_read_passes_unparsed_but_for_the_first():
    parts = [b"data: %d\n\n" % i for i in range(5)]
    reads = [TOP + chunk(parts[0]), *map(chunk, parts[1:]), END]
    body, passed, connection = received(reads)
    assert (body, passed) == (b"".join(parts), 4)
    assert connection.is_complete


@pytest.mark.parametrize(
    "odd",
    [
        b"5;name=value\r\nhello\r\n",
        b"05\r\nhello\r\n",
        b"+5\r\nhello\r\n",
        b"0x5\r\nhello\r\n",
        b" 5\r\nhello\r\n",
        b"5 \r\nhello\r\n",
        b"1_0\r\nhellohellohelloh\r\n",
        b"A\r\nhellohello\r\n",
        b"5\nhello\r\n",
        b"5\r\nhello\n\n",
        b"5\r\nhell\r\n",
        b"5\r\nhelloo\r\n",
        b"5\r\nhello\r\n5\r\nhello\r\n",
        b"0\r\n\r\n",
        b"\r\n\r\n",
        b"",
        b"hello",
    ],
)
def test_what_is_not_plainly_one_chunk_is_parsed(odd):
    assert received([TOP + chunk(b"first"), odd])[1] == 0


def test_in_the_middle_of_a_chunk_nothing_is_taken_for_a_chunk():
    inner = chunk(b"hello")
    outer = b"%x\r\n" % (3 * len(inner))
    reads = [TOP + chunk(b"first"), outer + inner, inner, inner, b"\r\n", END]
    body, passed, connection = received(reads)
    assert (body, passed) == (b"first" + 3 * inner, 0)
    assert connection.is_complete


def test_trailers_and_extensions_stay_behind(tmp_path):
    """They belong to the connection they came on."""

    async def go():
        script = [
            head(200, content_type="text/event-stream", transfer_encoding="chunked")
            + chunk(b"data: 1\n\n"),
            chunk(b"data: 2\n\n"),
            b"9;secret=1\r\ndata: 3\n\n\r\n",
            b"0\r\nX-Trailer: 1\r\n\r\n",
        ]
        async with a_gateway(tmp_path, trusted=script, fast=[]) as stand:
            return await ask(stand.url)

    answer = run(go())
    assert split(answer)[2] == b"data: 1\n\ndata: 2\n\ndata: 3\n\n"
    assert b"secret" not in answer and b"X-Trailer" not in answer


def test_a_sample_holds_what_passed_unparsed(tmp_path):
    stream = chat_stream(["one ", "two ", "three"])

    async def go():
        more = "  steps: [0.5]\n"
        async with a_gateway(tmp_path, trusted=stream, fast=stream, more=more) as stand:
            stand.gateway.command("start", actor="test")
            copies = []
            stand.gateway.router.taste = copies.append
            await ask(stand.url, b'{"messages": [], "stream": true}')
            return copies

    (copy,) = run(go())
    _, _, sent = split(b"".join(s for s in stream if isinstance(s, bytes)))
    assert b"".join(copy.capture.pieces) == sent
