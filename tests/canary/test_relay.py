"""The relay between a real HTTP server and scripted upstreams: bytes pass untouched."""

import asyncio

import pytest
from canary_cases import a_gateway, ask, run, split
from fakes.openai_server import ABORT, CLOSE, chat_stream, head, json_reply

pytestmark = pytest.mark.slow


def through(tmp_path, trusted, *, more="", **request):
    async def go():
        async with a_gateway(tmp_path, trusted=trusted, fast=[], more=more) as stand:
            return split(await ask(stand.url, **request)), stand

    return run(go())


STREAM = chat_stream(["Zür", "ich\u2028", "🙂"])


def test_a_stream_passes_byte_for_byte(tmp_path):
    sent = b"".join(step for step in STREAM if isinstance(step, bytes))
    _, _, expected = split(sent)
    (status, headers, body), _ = through(tmp_path, STREAM)
    assert status == 200 and body == expected
    assert headers["content-type"].startswith("text/event-stream")


@pytest.mark.parametrize("status", [400, 404, 429, 500, 503])
def test_the_upstreams_own_status_and_words_pass(tmp_path, status):
    reply = json_reply({"error": {"message": "own words"}}, status=status)
    (seen, _, body), _ = through(tmp_path, reply)
    assert seen == status and b"own words" in body


def test_unknown_paths_go_to_the_baseline_with_their_query(tmp_path):
    (status, _, _), stand = through(
        tmp_path, json_reply({"ok": True}), path="/v1/anything?x=1"
    )
    assert status == 200
    assert stand.trusted.seen[0].path == "/v1/anything?x=1"


def test_an_upstream_that_dies_in_the_middle_is_no_complete_answer(tmp_path):
    with pytest.raises(ConnectionError, match="broke off"):
        through(tmp_path, [*STREAM[:3], ABORT])


def test_an_upstream_that_closes_without_an_answer_is_a_502(tmp_path):
    (status, _, body), _ = through(tmp_path, [CLOSE])
    assert status == 502 and b"upstream" in body


def test_a_body_above_the_limit_is_refused_before_it_is_read(tmp_path):
    more = "  traffic: {body_bytes_max: 10}\n"
    (status, _, _), stand = through(tmp_path, json_reply({}), body=b"x" * 11, more=more)
    assert status == 413 and not stand.trusted.seen


@pytest.mark.parametrize("host", ["a/b", "a#b", "a@b", "a b"])
def test_an_odd_host_is_refused(tmp_path, host):
    async def go():
        async with a_gateway(tmp_path, trusted=json_reply({}), fast=[]) as stand:
            address, port = stand.url.removeprefix("http://").split(":")
            reader, writer = await asyncio.open_connection(address, int(port))
            writer.write(f"GET / HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
            line = await reader.readline()
            writer.close()
            return line

    assert b" 400 " in run(go())


def test_a_client_that_leaves_during_prefill_is_seen_by_the_upstream(tmp_path):
    left = asyncio.Event()

    async def go():
        never = asyncio.Event()
        script = [never, *STREAM]
        async with a_gateway(tmp_path, trusted=script, fast=[]) as stand:
            host, port = stand.url.removeprefix("http://").split(":")
            reader, writer = await asyncio.open_connection(host, int(port))
            writer.write(
                b"POST /v1/chat/completions HTTP/1.1\r\nHost: h\r\n"
                b"Content-Length: 2\r\n\r\n{}"
            )
            while not stand.trusted.seen:
                await asyncio.sleep(0)
            writer.transport.abort()
            while stand.gateway.router.pools["baseline"].in_use:
                await asyncio.sleep(0)
            left.set()

    run(go())
    assert left.is_set()


def test_hop_by_hop_and_own_headers_do_not_reach_the_upstream(tmp_path):
    _, stand = through(
        tmp_path,
        json_reply({}),
        headers=["X-Routeproof-Arm: canary", "Keep-Alive: 5", "X-Mine: yes"],
    )
    seen = {name.lower() for name in stand.trusted.seen[0].headers}
    assert "x-mine" in seen
    assert not seen & {"x-routeproof-arm", "keep-alive", "connection"}


def test_a_gzip_body_passes_encoded_with_its_header(tmp_path):
    packed = b"\x1f\x8b..."
    script = [head(content_encoding="gzip", content_length=len(packed)) + packed]
    (status, headers, body), _ = through(tmp_path, script)
    assert (status, headers["content-encoding"], body) == (200, "gzip", b"\x1f\x8b...")
