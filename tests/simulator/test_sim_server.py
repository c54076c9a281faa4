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


@pytest.mark.parametrize("name", DIALECTS)
def test_thinking_comes_apart_from_the_answer(name):
    wish = {"chat_template_kwargs": {"enable_thinking": True}}
    _, whole = asked(client.route(dialect=name), client.chat(**wish))
    _, stream = asked(client.route(dialect=name), client.chat(stream=True, **wish))
    message = json.loads(whole)["choices"][0]["message"]
    field = DIALECTS[name].reasoning_field
    assert message[field] and message["content"] == "1, 2, 3, 4, 5, 6, 7, 8, 9"
    deltas = [c["delta"] for e in client.events(stream) for c in e["choices"]]
    assert "".join(d.get(field) or "" for d in deltas) == message[field]


def test_equal_seeds_give_equal_texts_and_others_other_texts():
    def say(seed):
        body = client.chat("Tell me a story.", temperature=0.9, seed=seed)
        return json.loads(asked(client.route(), body)[1])["choices"][0]["message"]

    assert say(1) == say(1) != say(2)


def test_log_probabilities_cover_every_token_and_rank_the_best_first():
    body = client.chat(logprobs=True, top_logprobs=3)
    choice = json.loads(asked(client.route(), body)[1])["choices"][0]
    found = choice["logprobs"]["content"]
    assert "".join(f["token"] for f in found) == choice["message"]["content"]
    for one in found:
        best = [t["logprob"] for t in one["top_logprobs"]]
        assert best == sorted(best, reverse=True) and len(best) == 3
        assert one["logprob"] <= 0.0


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


def test_a_running_engine_can_be_broken_and_mended():
    async def go():
        async with serve(client.route()) as running:
            said = []
            for faults in ({"http_500": 1.0}, {}):
                said.append(
                    await client.post(running.port, faults, "/simulator/faults")
                )
                said.append(await client.post(running.port, client.chat()))
            said.append(
                await client.post(running.port, {"no_such": 1}, "/simulator/faults")
            )
            return [status for status, _ in said]

    assert asyncio.run(go()) == [200, 500, 200, 200, 400]
