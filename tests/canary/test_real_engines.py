"""Two real engines behind the gateway, the official client before it."""

import asyncio
import contextlib

import pytest
from canary_cases import SHORT, until

from routeproof.canary.config import load_canary
from routeproof.canary.gateway import Gateway
from routeproof.canary.serve import serving
from routeproof.engines.embedded import fetch_embedded
from routeproof.engines.launch import launch
from routeproof.proof.route import LaunchSpec
from routeproof.simulator.defects import Defects, StreamDefects
from routeproof.simulator.proxy import serve_proxy

openai = pytest.importorskip("openai")

pytestmark = [pytest.mark.engine, pytest.mark.slow]

SCHEMA = {
    "type": "object",
    "properties": {"n": {"enum": [1, 2, 3]}},
    "required": ["n"],
    "additionalProperties": False,
}
FORM = {"type": "json_schema", "json_schema": {"name": "n", "schema": SCHEMA}}
TOOL = {
    "type": "function",
    "function": {"name": "count", "description": "Count.", "parameters": SCHEMA},
}
BROKEN = Defects(stream=StreamDefects(ignore_parameters=("response_format",)))
MORE = """\
  steps: [0.5, 1.0]
  scorers: [error, empty, invalid_structure]
  traffic: {retry_invalid_structure: true}
"""


@contextlib.asynccontextmanager
async def engines(folder):
    """Two real servers; yields their addresses."""
    found = fetch_embedded()
    command = [
        str(found.server), "-m", str(found.model), "--port", "{port}",
        "-c", "1024", "-np", "2", "-t", "1", "--jinja",
    ]  # fmt: skip
    spec = LaunchSpec(command=tuple(command))
    async with (
        launch(spec, name="trusted", log_path=folder / "trusted.log") as one,
        launch(spec, name="fast", log_path=folder / "fast.log") as two,
    ):
        yield one.endpoint_url, two.endpoint_url


@contextlib.asynccontextmanager
async def gateway_before(folder, trusted, fast, more=MORE):
    file = folder / "canary.yaml"
    file.write_text(SHORT.format(sample="100%", fast=fast, trusted=trusted, more=more))
    gateway = Gateway(load_canary(file), engine="llama.cpp")
    async with serving(gateway) as running:
        client = openai.AsyncOpenAI(
            base_url=f"{running.data_url}/v1", api_key="none", max_retries=0
        )
        async with client:
            yield gateway, client


def ask(client, user, **more):
    messages = [{"role": "user", "content": "Give me a number."}]
    given = {"model": "m", "messages": messages, "max_tokens": 24, "temperature": 0}
    return client.chat.completions.create(**given, user=user, **more)


def run(coroutine):
    return asyncio.run(asyncio.wait_for(coroutine, 240))


def test_streams_tools_and_structure_pass_for_callers_of_both_arms(tmp_path):
    async def go():
        async with (
            engines(tmp_path) as (one, two),
            gateway_before(tmp_path, one, two) as (gateway, client),
        ):
            gateway.command("start", actor="test")
            texts, structured, calls = [], [], []
            for i in range(6):
                usage = {"include_usage": True}
                stream = await ask(client, f"u{i}", stream=True, stream_options=usage)
                chunks = [chunk async for chunk in stream]
                texts.append(
                    "".join(
                        c.choices[0].delta.content or "" for c in chunks if c.choices
                    )
                )
                assert chunks[-1].usage.completion_tokens > 0
                whole = await ask(client, f"u{i}", response_format=FORM)
                structured.append(whole.choices[0].message.content)
                called = await ask(
                    client, f"u{i}", tools=[TOOL], tool_choice="required"
                )
                calls.append(called.choices[0])
            arms = {arm for arm, _ in gateway.router.counts.requests}
            return texts, structured, calls, arms

    texts, structured, calls, arms = run(go())
    assert arms == {"control", "canary"}
    assert len(set(texts)) == 1 and texts[0], "both engines are the same, greedy"
    assert len(set(structured)) == 1 and '"n"' in structured[0]
    assert len(calls) == 6


def canary_requests(gateway):
    counts = gateway.router.counts.requests.items()
    return sum(n for (arm, _), n in counts if arm == "canary")


def test_a_broken_candidate_goes_back_and_the_client_sees_no_gap(tmp_path):
    async def go():
        async with (
            engines(tmp_path) as (one, two),
            serve_proxy(two.removesuffix("/v1"), BROKEN) as proxy,
            gateway_before(tmp_path, one, proxy.url) as (gateway, client),
        ):
            gateway.command("start", actor="test")
            answers = []
            for first in range(0, 40, 4):
                asked = (
                    ask(client, f"u{first + i}", response_format=FORM) for i in range(4)
                )
                answers += await asyncio.gather(*asked)
                state = await asyncio.to_thread(gateway.store.read, "fast")
                if state.phase == "rolled_back":
                    break
            reached = canary_requests(gateway)
            answers += [await ask(client, f"after-{i}", response_format=FORM)
                        for i in range(4)]  # fmt: skip
            return state, answers, reached, canary_requests(gateway), gateway

    state, answers, reached, late, gateway = run(go())
    assert state.phase == "rolled_back", gateway.taster.standings()
    assert late == reached > 0
    assert gateway.rollback_s < 2.0
    assert all('"n"' in a.choices[0].message.content for a in answers)


async def one_of_each(client, user):
    """A stream, a call and a structured answer of one user, as they ended."""
    usage = {"include_usage": True}
    stream = await ask(client, user, stream=True, stream_options=usage)
    chunks = [chunk async for chunk in stream]
    called = await ask(client, user, tools=[TOOL], tool_choice="required")
    whole = await ask(client, user, response_format=FORM)
    ends = [c.choices[0].finish_reason for c in chunks if c.choices]
    return [ends[-1], called.choices[0].finish_reason, whole.choices[0].message.content]


def test_a_rollback_under_streams_and_tools_is_seen_by_nobody(tmp_path):
    """It goes back by itself while streams run; all of them end as they should."""

    async def go():
        async with (
            engines(tmp_path) as (one, two),
            serve_proxy(two.removesuffix("/v1"), BROKEN) as proxy,
            gateway_before(tmp_path, one, proxy.url) as (gateway, client),
        ):
            gateway.command("start", actor="test")
            ended, first = [], 0
            while gateway.store.read("fast").phase in ("stepping", "held"):
                asked = (one_of_each(client, f"u{first + i}") for i in range(4))
                ended += await asyncio.gather(*asked)
                first += 4
                assert first < 80, gateway.taster.standings()
            ended += await asyncio.gather(
                *(one_of_each(client, f"late{i}") for i in range(4))
            )
            await until(lambda: gateway.rollback_s is not None)
            return ended, gateway

    ended, gateway = run(go())
    assert all(stream in ("stop", "length") for stream, _, _ in ended)
    assert all(call in ("tool_calls", "stop", "length") for _, call, _ in ended)
    assert all('"n"' in text for _, _, text in ended)
    assert "invalid_structure" in gateway.store.read("fast").reason
    assert gateway.share_zero_s < 2.0
    outcomes = {how for _, how in gateway.router.counts.outcomes}
    assert outcomes == {"completed"}


def test_responses_of_a_real_engine_are_tasted_whole_and_streamed(tmp_path):
    async def go():
        async with (
            engines(tmp_path) as (one, two),
            gateway_before(tmp_path, one, two) as (gateway, client),
        ):
            gateway.command("start", actor="test")
            texts = []
            for i in range(4):
                given = {
                    "model": "m",
                    "input": "Give me a number.",
                    "max_output_tokens": 16,
                    "temperature": 0,
                    "extra_body": {"user": f"u{i}"},
                }
                whole = await client.responses.create(**given)
                stream = await client.responses.create(**given, stream=True)
                async for each in stream:
                    last = each
                texts.append((whole.output_text, last.response.output_text))
            await asyncio.to_thread(gateway.taster.stop)
            return texts, gateway.taster.spool.latest()

    texts, samples = run(go())
    assert len(samples) == 8 and {s.stratum for s in samples} == {"whole", "stream"}
    assert {s.record.answer.text for s in samples} == {
        t for pair in texts for t in pair
    }
    assert all(s.record.usage.output_tokens > 0 for s in samples)
    assert {s.signals["error"] for s in samples} == {False}
