import asyncio
import json

import pytest
from simulator import sim_client as client

from routeproof.simulator.dialects.table import DIALECTS
from routeproof.simulator.route import Speculation
from routeproof.simulator.server import serve


def asked(route, body, path="/v1/chat/completions"):
    async def go():
        async with serve(route) as running:
            return await client.post(running.port, body, path)

    return asyncio.run(go())


@pytest.mark.parametrize("name", DIALECTS)
def test_a_stream_says_what_the_whole_body_says(name):
    route = client.route(dialect=name, speculation=Speculation())
    streamed = asked(route, client.chat(stream=True))
    whole = asked(route, client.chat())
    assert streamed[0] == whole[0] == 200
    answer = json.loads(whole[1])["choices"][0]["message"]["content"]
    assert (
        client.text_of(client.events(streamed[1]))
        == answer
        == "1, 2, 3, 4, 5, 6, 7, 8, 9"
    )


def test_usage_comes_in_the_last_chunk_when_it_is_asked_for():
    options = {"include_usage": True}
    _, body = asked(client.route(), client.chat(stream=True, stream_options=options))
    last = client.events(body)[-1]
    assert last["choices"] == []
    assert last["usage"]["completion_tokens"] == 25


def test_max_tokens_cuts_and_says_so():
    _, body = asked(client.route(), client.chat(max_tokens=4))
    assert json.loads(body)["choices"][0]["finish_reason"] == "length"
    assert json.loads(body)["usage"]["completion_tokens"] == 4


def test_a_stop_string_is_not_shown():
    _, body = asked(client.route(), client.chat(stop=["5"]))
    assert json.loads(body)["choices"][0]["message"]["content"] == "1, 2, 3, 4, "


def test_a_schema_is_kept():
    schema = {
        "type": "object",
        "properties": {"age": {"type": "integer", "minimum": 3, "maximum": 5}},
        "required": ["age"],
    }
    wanted = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
    _, body = asked(client.route(), client.chat("Who?", response_format=wanted))
    assert json.loads(json.loads(body)["choices"][0]["message"]["content"])["age"] in (
        3,
        4,
        5,
    )


def test_a_tool_is_called():
    tool = {
        "type": "function",
        "function": {
            "name": "look",
            "parameters": {
                "type": "object",
                "properties": {"place": {"type": "string"}},
                "required": ["place"],
            },
        },
    }
    _, body = asked(client.route(), client.chat("Where?", tools=[tool]))
    choice = json.loads(body)["choices"][0]
    assert choice["finish_reason"] == "tool_calls"
    call = choice["message"]["tool_calls"][0]["function"]
    assert call["name"] == "look" and "place" in json.loads(call["arguments"])


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"model": "m", "messages": []}, 400),
        (
            {
                "model": "m",
                "messages": [{"role": "user", "content": "x"}],
                "temperature": -1,
            },
            400,
        ),
        ({"model": "m"}, 400),
    ],
)
def test_a_bad_request_is_refused(body, status):
    assert asked(client.route(), body)[0] == status


def test_a_client_that_goes_away_frees_its_place():
    async def go():
        async with serve(client.route()) as running:
            _, writer = await asyncio.open_connection("127.0.0.1", running.port)
            body = json.dumps(
                client.chat("Count from 1 to 4000.", stream=True, max_tokens=10**6)
            ).encode()
            head = "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\n"
            head += f"content-length: {len(body)}\r\n\r\n"
            writer.write(head.encode() + body)
            engine = running.server.engine
            while not engine.running:
                await asyncio.sleep(0)
            writer.close()
            while engine.running:
                await asyncio.sleep(0)
            return engine.tally.finished_by_reason["abort"]

    assert asyncio.run(go()) == 1
