"""A client that leaves: its upstream is told within a second, in every phase."""

import asyncio
import contextlib
import gc
import json
import socket

import pytest
from canary_cases import a_gateway, run
from fakes.openai_server import chunk, head, json_reply, stream_head

from routeproof.canary.relay.flight import Flight

pytestmark = pytest.mark.slow

BOUND_S = 1.0
FORM = {"response_format": {"type": "json_object"}}
RETRY = "  steps: [0.5]\n  traffic: {retry_invalid_structure: true}\n"


class Upstream(asyncio.Protocol):
    """Says what it is told to each request, and knows when it was left."""

    def __init__(self, says):
        self.says = says
        loop = asyncio.get_running_loop()
        self.asked, self.left = loop.create_future(), loop.create_future()

    def connection_made(self, transport):
        self.transport = transport

    def data_received(self, data):
        if not self.asked.done():
            self.asked.set_result(None)
        self.transport.write(self.says)

    def connection_lost(self, exc):
        self.left.set_result(asyncio.get_running_loop().time())


@contextlib.asynccontextmanager
async def listening(says=b""):
    """(URL, connections) of an upstream that never ends what it says."""
    made = asyncio.Queue()

    def accept():
        fresh = Upstream(says)
        made.put_nowait(fresh)
        return fresh

    loop = asyncio.get_running_loop()
    server = await loop.create_server(accept, "127.0.0.1", 0)
    try:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}", made
    finally:
        server.close()


async def a_client(stand, **fields):
    host, port = stand.url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    body = json.dumps({"messages": [], **fields}).encode()
    writer.write(
        b"POST /v1/chat/completions HTTP/1.1\r\nHost: h\r\n"
        b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
    )
    return reader, writer


async def until_nothing_runs(stand, since_s):
    """Seconds until no exchange is held any more."""
    loop = asyncio.get_running_loop()
    while any(pool.in_use for pool in stand.gateway.router.pools.values()):
        assert loop.time() - since_s < BOUND_S, "an exchange is held on to"
        await asyncio.sleep(0)


def point_at(stand, arm, address):
    """Have an arm's pool lead to another upstream."""
    host, _, port = address.partition(":")
    pool = stand.gateway.router.pools[arm]
    pool._host, pool._port = host, int(port)
    return pool


async def leaves(stand, writer, upstream):
    """Seconds from a client's end to that of its request upstream; nothing is held."""
    left_s = asyncio.get_running_loop().time()
    writer.transport.abort()
    async with asyncio.timeout(BOUND_S):
        seen_s = await upstream.left
    await until_nothing_runs(stand, left_s)
    return seen_s - left_s


PHASES = {
    "waiting for the head": (b"", False),
    "in the middle of the head": (b"HTTP/1.1 200 OK\r\nContent-Ty", False),
    "streaming": (b"".join(stream_head()) + chunk(b"data: 1\n\n"), True),
    "in a whole answer": (head(200, content_length=9) + b"a", True),
}


@pytest.mark.parametrize("phase", PHASES)
def test_an_upstream_that_was_asked_is_left_with_the_client(tmp_path, phase):
    says, is_seen = PHASES[phase]

    async def go():
        async with listening(says) as (address, made):
            async with a_gateway(tmp_path, trusted=[], fast=[]) as stand:
                point_at(stand, "baseline", address)
                reader, writer = await a_client(stand)
                upstream = await made.get()
                await upstream.asked
                if is_seen:
                    await reader.read(1)
                took_s = await leaves(stand, writer, upstream)
                return took_s, stand.gateway.router.counts.outcomes

    took_s, outcomes = run(go())
    assert took_s < BOUND_S
    assert dict(outcomes) == {("baseline", "cancelled"): 1}


def test_a_client_that_does_not_read_and_leaves_is_seen(tmp_path):
    says = head(200, content_length=1 << 26) + b"x" * (1 << 25)

    async def go():
        async with listening(says) as (address, made):
            async with a_gateway(tmp_path, trusted=[], fast=[]) as stand:
                point_at(stand, "baseline", address)
                reader, writer = await a_client(stand)
                writer.transport.pause_reading()
                upstream = await made.get()
                while not (running := list(stand.gateway.relay._running)):
                    await asyncio.sleep(0)
                while not running[0]._is_full:
                    await asyncio.sleep(0)
                return await leaves(stand, writer, upstream)

    assert run(go()) < BOUND_S


def test_a_client_that_leaves_during_the_tls_handshake_ends_it(tmp_path):
    import ssl

    async def go():
        async with listening() as (address, made):
            async with a_gateway(tmp_path, trusted=[], fast=[]) as stand:
                point_at(stand, "baseline", address)._tls = ssl.create_default_context()
                _, writer = await a_client(stand)
                upstream = await made.get()
                await upstream.asked
                return await leaves(stand, writer, upstream)

    assert run(go()) < BOUND_S


def test_a_client_that_leaves_while_nobody_accepts_holds_nothing(tmp_path):
    async def go():
        with socket.socket() as deaf, contextlib.ExitStack() as stack:
            deaf.bind(("127.0.0.1", 0))
            deaf.listen(0)
            address = deaf.getsockname()
            for _ in range(8):  # the queue of those that were not accepted is full
                waiting = stack.enter_context(socket.socket())
                waiting.setblocking(False)
                waiting.connect_ex(address)
            async with a_gateway(tmp_path, trusted=[], fast=[]) as stand:
                pool = point_at(stand, "baseline", f"127.0.0.1:{address[1]}")
                _, writer = await a_client(stand)
                while not pool.in_use:
                    await asyncio.sleep(0)
                left_s = asyncio.get_running_loop().time()
                writer.transport.abort()
                await until_nothing_runs(stand, left_s)
                return stand.gateway.router.counts.outcomes

    assert dict(run(go())) == {("baseline", "cancelled"): 1}


async def a_caller_of_the_candidate(stand, made):
    """A client whose structured request has reached the candidate."""
    stand.gateway.command("start", actor="test")
    for i in range(64):
        reader, writer = await a_client(stand, user=f"u{i}", **FORM)
        while not (made() or stand.trusted.seen):
            await asyncio.sleep(0)
        if made():
            return reader, writer
        stand.trusted.seen.clear()
        writer.close()
    raise AssertionError("nobody got the candidate")


def test_a_client_that_leaves_while_its_answer_is_held_back_is_seen(tmp_path):
    says = head(200, content_length=9) + b"{"

    async def go():
        async with listening(says) as (address, made):
            async with a_gateway(
                tmp_path, trusted=json_reply({}), fast=[], more=RETRY
            ) as stand:
                point_at(stand, "canary", address)
                reader, writer = await a_caller_of_the_candidate(stand, made.qsize)
                upstream = await made.get()
                await upstream.asked
                flight = next(iter(stand.gateway.relay._running))
                while not flight._held:
                    await asyncio.sleep(0)
                left_s = asyncio.get_running_loop().time()
                writer.transport.abort()
                async with asyncio.timeout(BOUND_S):
                    await upstream.left
                await until_nothing_runs(stand, left_s)
                return stand.gateway.router.counts.outcomes

    assert run(go())["canary", "cancelled"] == 1


def test_a_client_that_leaves_while_the_baseline_is_asked_instead_is_seen(tmp_path):
    broken = {"index": 0, "message": {"content": "{broken"}, "finish_reason": "stop"}

    async def go():
        async with listening() as (address, made):
            async with a_gateway(
                tmp_path,
                trusted=json_reply({}),
                fast=json_reply({"choices": [broken]}),
                more=RETRY,
            ) as stand:
                point_at(stand, "baseline", address)
                stand.gateway.command("start", actor="test")
                for i in range(64):
                    _, writer = await a_client(stand, user=f"u{i}", **FORM)
                    upstream = await made.get()
                    await upstream.asked
                    if stand.fast.seen:
                        break
                    writer.transport.abort()
                    await upstream.left
                assert stand.fast.seen
                left_s = asyncio.get_running_loop().time()
                writer.transport.abort()
                async with asyncio.timeout(BOUND_S):
                    await upstream.left
                await until_nothing_runs(stand, left_s)
                return stand.gateway.router.counts.outcomes

    assert run(go())["canary", "cancelled"] == 1


def test_an_exchange_that_is_over_leaves_nothing_to_collect(tmp_path):
    """A body that waits for the garbage collector is memory that grows."""

    async def go():
        async with a_gateway(tmp_path, trusted=json_reply({}), fast=[]) as stand:
            gc.collect()
            gc.disable()
            try:
                for _ in range(3):
                    reader, writer = await a_client(stand)
                    await reader.readuntil(b"{}")
                    writer.close()
                while sum(stand.gateway.router.counts.requests.values()) < 3:
                    await asyncio.sleep(0)
                return sum(isinstance(each, Flight) for each in gc.get_objects())
            finally:
                gc.enable()

    assert run(go()) == 0
