"""The client on the wire: framing, deadlines, connections, nobody waits for ever."""

import asyncio
import itertools
import shutil
import ssl
import subprocess

import pytest
from fakes.openai_server import (
    ABORT,
    CLOSE,
    chat_stream,
    chunk,
    delta,
    event,
    head,
    json_reply,
    serving,
    stream_end,
    stream_head,
)
from run_cases import asked, record_of, run

from routeproof.engines.endpoint import Endpoint
from routeproof.errors import ConfigError
from routeproof.runs.client import Client, Limits
from routeproof.runs.request import head_of, request_of

SHORT = Limits(connect_s=0.2, total_s=0.05)


def answer(script, *, limits=None, **server):
    """The record of one request to a server that plays the script."""

    async def go():
        async with serving(script, **server) as running:
            return record_of(await asked(running.url, limits=limits)), running

    return run(go())


def test_the_stamps_are_in_order_and_agree_with_the_server():
    record, server = answer(chat_stream(["a", "b"], wait_s=0.002))
    clock, stream = record.clock, record.stream
    written = [ns / 1e9 for ns in server.seen[0].write_ns]
    assert clock.intended_s <= clock.dispatched_s <= clock.sent_s
    assert clock.sent_s <= server.seen[0].arrived_ns / 1e9 <= clock.first_byte_s
    assert clock.first_byte_s <= stream.chunk_s[0] <= stream.chunk_s[1] <= clock.end_s
    assert stream.chunk_s[0] >= written[2] and stream.chunk_s[1] >= written[3]


def _chunked(*parts):
    return [head(200, transfer_encoding="chunked"), *parts]


def _with_length(body):
    return head(200, content_length=len(body)) + body


FRAMES = {
    "length": lambda body: [_with_length(body)],
    "length in pieces": lambda body: [_with_length(body)[:70], _with_length(body)[70:]],
    "byte by byte": lambda body: [bytes([b]) for b in _with_length(body)],
    "chunked": lambda body: _chunked(chunk(body), b"0\r\n\r\n"),
    "trailers": lambda body: _chunked(chunk(body), b"0\r\nX-Sum: 1\r\n\r\n"),
    "chunk extension": lambda body: _chunked(
        b"5;x=1\r\n" + body[:5] + b"\r\n", chunk(body[5:]) + b"0\r\n\r\n"
    ),
    "until close": lambda body: [head(200) + body, CLOSE],
    "100 continue": lambda body: [head(100), _with_length(body)],
    "early hints": lambda body: [head(103, link="</x>"), _with_length(body)],
}


@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)
def test_a_body_is_read_however_it_is_framed(frame):
    body = b'data: {"choices":[{"delta":{"content":"hi"},"finish_reason":"stop"}]}\n\n'
    record, _ = answer(frame(body))
    assert (record.answer.outcome, record.answer.text) == ("completed", "hi")


_STARTED = [*stream_head(), event(delta("a"))]
BROKEN = {
    "closed at once": ([CLOSE], "connection_error"),
    "reset at once": ([ABORT], "connection_error"),
    "half a head": ([b"HTTP/1.1 200 OK\r\nContent-", CLOSE], "connection_error"),
    "not HTTP": ([b"hello there\r\n\r\n", CLOSE], "invalid_response"),
    "negative length": ([head(200, content_length="-5")], "invalid_response"),
    "absurd length": ([head(200, content_length="9" * 30)], "invalid_response"),
    "garbage chunk size": (_chunked(b"zz\r\nab"), "invalid_response"),
    "switches protocols": (
        [head(101, upgrade="websocket", connection="Upgrade") + b"\x81\x00"],
        "invalid_response",
    ),
    "length and chunked": (
        [head(200, content_length=9, transfer_encoding="chunked")],
        "invalid_response",
    ),
    "short of its length": (
        [head(200, content_length=1000) + b"data: ", CLOSE],
        "cut_short",
    ),
    "reset mid-stream": ([*_STARTED, ABORT], "cut_short"),
    "closed mid-chunk": ([*_STARTED, b"40\r\ndata: {", CLOSE], "cut_short"),
    "closed between chunks": ([*_STARTED, CLOSE], "cut_short"),
}


@pytest.mark.parametrize(("steps", "outcome"), BROKEN.values(), ids=BROKEN)
def test_a_broken_conversation_has_a_name(steps, outcome):
    record, _ = answer(steps)
    assert record.answer.outcome == outcome
    assert record.answer.error


@pytest.mark.parametrize(
    "steps",
    [
        lambda gate: [gate],
        lambda gate: [head(200, transfer_encoding="chunked"), gate],
        lambda gate: [*stream_head(), event(delta("a")), gate],
    ],
    ids=["never answers", "only a head", "stops in the middle"],
)
def test_a_server_that_stops_talking_is_a_timeout(steps):
    def script(seen):
        return steps(asyncio.Event())

    record, _ = answer(script, limits=SHORT)
    assert record.answer.outcome == "timeout"
    assert "0.05 s" in record.answer.error


def test_a_byte_now_and_then_does_not_extend_the_deadline():
    def script(seen):
        yield from stream_head()
        while True:
            yield 0.002
            yield chunk(b":")

    record, _ = answer(script, limits=SHORT)
    assert record.answer.outcome == "timeout"


def test_the_first_byte_may_have_a_deadline_of_its_own():
    limits = Limits(first_byte_s=0.05, total_s=30.0)
    record, _ = answer(lambda seen: [asyncio.Event()], limits=limits)
    assert record.answer.outcome == "timeout"
    assert "no answer within 0.05 s" in record.answer.error
    record, _ = answer(chat_stream(), limits=limits)
    assert record.answer.outcome == "completed"


@pytest.mark.parametrize(
    ("start", "more"),
    [
        (head(200, transfer_encoding="chunked"), chunk(b"x" * 65536)),
        (head(200)[:-2], b"X-Filler: " + b"y" * 65536 + b"\r\n"),
        (head(200, transfer_encoding="chunked"), b"1\r\nx\r\n" * 10_000),
    ],
    ids=["an event without end", "headers without end", "tiny chunks without end"],
)
def test_a_flood_is_bounded(start, more):
    limits = Limits(total_s=30.0, response_bytes=1 << 20)

    async def go():
        async with serving(itertools.chain([start], itertools.repeat(more))) as server:
            return await asked(server.url, limits=limits)

    capture = run(go())
    assert capture.size_bytes < 4 << 20
    assert len(capture.pieces) < 1000
    record = record_of(capture)
    assert record.answer.outcome == "invalid_response"
    assert "longer than" in record.answer.error


def test_nobody_there_is_a_connection_error():
    record = record_of(run(asked("http://127.0.0.1:9/v1")))
    assert record.answer.outcome == "connection_error"
    assert "127.0.0.1:9" in record.answer.error
    assert record.clock.first_byte_s is None


def test_a_name_that_does_not_exist_is_a_connection_error():
    record = record_of(run(asked("http://does-not-exist.invalid/v1")))
    assert record.answer.outcome == "connection_error"
    assert "does-not-exist.invalid" in record.answer.error


def test_connections_are_kept_alive_and_one_is_enough_for_one_stream():
    async def go():
        async with serving(chat_stream()) as server:
            client = Client(Endpoint(server.url))
            request = request_of(
                head_of(client.endpoint, "chat/completions"), b"{}", "r"
            )
            captures = [await client.send(request) for _ in range(5)]
            await client.close()
            return captures, server, client.opened

    captures, server, opened = run(go())
    assert opened == server.connections == 1
    assert [c.new_connection for c in captures] == [True] + [False] * 4


def test_a_server_that_says_close_gets_a_new_connection():
    async def go():
        async with serving(json_reply({"choices": []}, connection="close")) as server:
            client = Client(Endpoint(server.url))
            request = request_of(head_of(client.endpoint, "completions"), b"{}", "r")
            captures = [await client.send(request) for _ in range(3)]
            await client.close()
            return captures, client.opened

    captures, opened = run(go())
    assert opened == 3
    assert all(c.status == 200 and c.failure is None for c in captures)


def test_a_connection_that_was_idle_for_long_is_not_used_again():
    async def go():
        async with serving(chat_stream()) as server:
            client = Client(Endpoint(server.url), Limits(keep_idle_s=0.0))
            request = request_of(head_of(client.endpoint, "completions"), b"{}", "r")
            for _ in range(3):
                await client.send(request)
            await client.close()
            return client.opened

    assert run(go()) == 3


@pytest.mark.slow
def test_as_many_connections_are_opened_as_streams_run():
    async def go():
        gate = asyncio.Event()
        async with serving(lambda seen: [gate, *chat_stream()]) as server:
            client = Client(Endpoint(server.url))
            await client.open(20)
            request = request_of(head_of(client.endpoint, "completions"), b"{}", "r")
            sending = [asyncio.ensure_future(client.send(request)) for _ in range(150)]
            while server.in_flight < 150:
                await asyncio.sleep(0)
            gate.set()
            captures = await asyncio.gather(*sending)
            await client.close()
            return captures, server

    captures, server = run(go())
    assert server.most_in_flight == 150
    assert {record_of(c).answer.outcome for c in captures} == {"completed"}


def test_bytes_after_the_end_do_not_reach_the_next_request():
    def script(seen):
        if seen.number == 0:
            return [json_reply({"choices": []})[0] + b"HTTP/1.1 500 stray\r\n\r\n"]
        return chat_stream()

    async def go():
        async with serving(script) as server:
            client = Client(Endpoint(server.url))
            request = request_of(head_of(client.endpoint, "completions"), b"{}", "r")
            first = await client.send(request)
            second = await client.send(request)
            await client.close()
            return first, second

    first, second = run(go())
    assert first.status == 200
    assert record_of(second).answer.outcome == "completed"


def test_closing_the_client_ends_what_is_in_flight():
    async def go():
        async with serving(lambda seen: [asyncio.Event()]) as server:
            client = Client(Endpoint(server.url))
            request = request_of(head_of(client.endpoint, "completions"), b"{}", "r")
            sending = asyncio.ensure_future(client.send(request))
            while not server.in_flight:
                await asyncio.sleep(0)
            await client.close()
            return await sending

    assert record_of(run(go())).answer.outcome == "cancelled"


def test_the_request_carries_key_headers_and_its_id():
    async def go():
        async with serving(chat_stream()) as server:
            endpoint = Endpoint(server.url, headers={"X-Team": "eval"}, api_key="k-1")
            await asked(server.url, endpoint=endpoint, body=b'{"a": 1}')
            return server.seen[0]

    seen = run(go())
    assert (seen.method, seen.path) == ("POST", "/v1/chat/completions")
    assert seen.headers["authorization"] == "Bearer k-1"
    assert seen.headers["x-team"] == "eval"
    assert seen.request_id == "r0"
    assert seen.headers["accept-encoding"] == "identity"
    assert seen.json == {"a": 1}


@pytest.mark.parametrize("value", ["a\r\nX-Evil: 1", "a\nb", "a\0b", "\u20ac"])
def test_a_header_that_http_cannot_carry_is_refused(value):
    with pytest.raises(ConfigError, match="header"):
        head_of(Endpoint("http://h/v1", headers={"X-A": value}), "completions")


def test_proxies_of_the_environment_are_not_used(monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    record, _ = answer(chat_stream())
    assert record.answer.outcome == "completed"


def test_a_unix_socket_is_reached(tmp_path):
    path = str(tmp_path / "engine.sock")

    async def go():
        async with serving(chat_stream(), unix_socket=path) as server:
            endpoint = Endpoint(server.url, unix_socket=path)
            return record_of(await asked(server.url, endpoint=endpoint))

    assert run(go()).answer.outcome == "completed"


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    if shutil.which("openssl") is None:
        pytest.skip("needs the openssl command to make a certificate")
    folder = tmp_path_factory.mktemp("tls")
    command = [
        *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt"),
        *("ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"),
        *("-subj", "/CN=127.0.0.1", "-keyout", "key.pem", "-out", "cert.pem"),
    ]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    return context


def test_an_unknown_certificate_is_refused_unless_told_otherwise(certificate):
    async def go():
        async with serving(chat_stream(), ssl=certificate) as server:
            strict = await asked(server.url)
            trusting = Endpoint(server.url, verify_tls=False)
            return strict, await asked(server.url, endpoint=trusting)

    strict, trusting = map(record_of, run(go()))
    assert strict.answer.outcome == "connection_error"
    assert "certificate" in strict.answer.error.lower()
    assert trusting.answer.outcome == "completed"


@pytest.mark.slow
def test_a_large_request_and_a_large_answer_pass():
    big = "x" * 3_000_000
    steps = [
        *stream_head(),
        event(delta(big)),
        event(delta(finish="stop")),
        *stream_end(),
    ]

    async def go():
        async with serving(steps) as server:
            capture = await asked(server.url, body=b'"' + b"y" * 5_000_000 + b'"')
            return record_of(capture), len(server.seen[0].body)

    record, received = run(go())
    assert record.answer.text == big
    assert received == 5_000_002
