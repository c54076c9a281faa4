"""A server that drops a kept connection is not an engine that fails."""

from fakes.openai_server import CLOSE, chat_stream, serving
from run_cases import run

from routeproof.engines.endpoint import Endpoint
from routeproof.runs.client import Client
from routeproof.runs.request import head_of, request_of

ANSWER = chat_stream(["a", "b"])


def send(script, times):
    """Captures of requests sent one after the other, the client, the server."""

    async def go():
        async with serving(script) as server:
            endpoint = Endpoint(server.url)
            client = Client(endpoint)
            request = request_of(head_of(endpoint, "chat/completions"), b"{}", "r")
            captures = [await client.send(request) for _ in range(times)]
            await client.close()
            return captures, client, server

    return run(go())


def test_a_kept_connection_that_died_in_silence_is_replaced_once():
    captures, client, server = send(
        lambda seen: [CLOSE] if seen.number == 1 else ANSWER, times=2
    )
    assert [c.failure for c in captures] == [None, None]
    assert len(server.seen) == 3
    assert client.replaced == 1


def test_after_that_no_connection_is_used_twice():
    captures, client, server = send(
        lambda seen: [CLOSE] if seen.number == 1 else ANSWER, times=5
    )
    assert all(c.failure is None for c in captures)
    assert all(c.new_connection for c in captures[1:])
    assert client.replaced == 1 and len(server.seen) == 6


def test_the_time_lost_on_the_dead_connection_counts():
    captures, _, server = send(
        lambda seen: [CLOSE] if seen.number == 1 else ANSWER, times=2
    )
    assert captures[1].dispatched_ns <= server.seen[1].arrived_ns


def test_the_same_close_on_a_fresh_connection_is_a_failure_and_sent_once():
    captures, client, server = send([CLOSE], times=1)
    assert captures[0].failure[0] == "connection_error"
    assert len(server.seen) == 1 and client.replaced == 0


def test_a_kept_connection_that_dies_in_the_middle_is_a_failure():
    broken = [*ANSWER[:2], CLOSE]
    captures, client, server = send(
        lambda seen: broken if seen.number == 1 else ANSWER, times=2
    )
    assert captures[1].failure[0] == "cut_short"
    assert len(server.seen) == 2 and client.replaced == 0
