"""The adapters of ``routeproof.engines`` read what the simulated engine writes."""

import asyncio
import json

import pytest
from simulator import sim_client as client

from routeproof.engines.adapters import adapter
from routeproof.engines.endpoint import Endpoint
from routeproof.engines.probe import probe
from routeproof.simulator.route import Speculation
from routeproof.simulator.server import serve
from routeproof.simulator.virtual import VirtualEngine

NAMES = {
    "vllm": "vllm",
    "sglang": "sglang",
    "llamacpp": "llama.cpp",
    "tensorrt_llm": "tensorrt-llm",
    "openai": "openai",
}
SPECULATING = [n for n in NAMES if n != "openai"]


@pytest.mark.parametrize("dialect", NAMES)
def test_the_probe_knows_the_engine_again(dialect):
    async def go():
        async with serve(client.route(dialect=dialect)) as running:
            return await probe(Endpoint(f"{running.url}/v1"), model="simulated/target")

    found = asyncio.run(go())
    assert found.engine == NAMES[dialect]


def finished(dialect, n=20, stream=True):
    route = client.route(dialect=dialect, speculation=Speculation())
    venue = VirtualEngine(route)
    fields = adapter(NAMES[dialect]).request_fields()
    exchanges = []
    for number in range(n):
        body = client.chat(
            f"Tell me of {number}",
            stream=stream,
            stream_options={"include_usage": True},
            **fields,
        )
        venue.send(venue.now_s, "/v1/chat/completions", json.dumps(body).encode())
        exchanges.append(venue.next_end())
    return venue, exchanges


@pytest.mark.parametrize("dialect", SPECULATING)
def test_counters_are_what_the_engine_counted(dialect):
    venue, _ = finished(dialect)
    chosen = adapter(NAMES[dialect])
    values = chosen.counters(venue.page(chosen.metrics_path), 0.0).values
    tally = venue.engine.tally
    assert values["output_tokens_total"] == tally.output_tokens
    assert values["running"] == 0
    if "spec_passes_total" in values:
        assert values["spec_passes_total"] == tally.spec_passes
    if "accepted_total" in values:
        assert values["accepted_total"] == tally.accepted


@pytest.mark.parametrize("dialect", SPECULATING)
def test_details_of_a_request_are_what_the_engine_did(dialect):
    stream = dialect != "tensorrt_llm"
    venue, exchanges = finished(dialect, n=1, stream=stream)
    body = b"".join(piece.data for piece in exchanges[0].pieces)
    last = client.events(body)[-1] if stream else json.loads(body)
    details = adapter(NAMES[dialect]).details(last)
    tally = venue.engine.tally
    if dialect == "tensorrt_llm":
        return
    assert details.accepted == tally.accepted
    assert details.drafted == tally.drafted
    assert details.spec_passes in (tally.spec_passes, None)


def test_tensorrt_tells_of_each_request_once():
    venue, exchanges = finished("tensorrt_llm", n=3, stream=False)
    entries = json.loads(venue.page("/perf_metrics"))
    tally = venue.engine.tally
    found = [adapter("tensorrt-llm").details(entry) for entry in entries]
    assert len(found) == 3
    assert sum(each.accepted for each in found) == tally.accepted
    assert sum(each.drafted for each in found) == tally.drafted
    for each, exchange in zip(found, exchanges, strict=True):
        whole_s = each.queue_s + each.prefill_s + each.decode_s
        assert whole_s == pytest.approx(exchange.end_s - exchange.sent_s, abs=0.001)
    assert json.loads(venue.page("/perf_metrics")) == []
