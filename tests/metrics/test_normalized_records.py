"""Pages of all four engines, recorded and simulated, become the same records."""

import json

import pytest
from engine_pages import recorded
from simulator import sim_client as client

from routeproof.engines.adapters import adapter
from routeproof.metrics.acceptance import SCHEMA, AcceptanceCounts, derive
from routeproof.metrics.acceptance_checks import identities
from routeproof.metrics.acceptance_windows import OwnTraffic, counts_of_window
from routeproof.simulator.route import Speculation
from routeproof.simulator.virtual import VirtualEngine

RECORDED = {
    "vllm": ("engine_captures_vllm", "vllm-ngram"),
    "sglang": ("engine_captures_sglang", "sglang-ngram"),
    "llama.cpp": ("engine_captures_llamacpp", "spec-draft-q2_k"),
}
DIALECTS = {
    "vllm": "vllm",
    "sglang": "sglang",
    "llama.cpp": "llamacpp",
    "tensorrt-llm": "tensorrt_llm",
}
TENSORRT_PAGE = """\
trtllm_spec_decode_num_draft_tokens_total{model_name="undefined"} 60
trtllm_spec_decode_num_accepted_tokens_total{model_name="undefined"} 30
trtllm_spec_decode_drafted_tokens_total{token_position="1"} 20
trtllm_spec_decode_drafted_tokens_total{token_position="2"} 20
trtllm_spec_decode_drafted_tokens_total{token_position="3"} 20
trtllm_spec_decode_accepted_tokens_total{token_position="1"} 15
trtllm_spec_decode_accepted_tokens_total{token_position="2"} 10
trtllm_spec_decode_accepted_tokens_total{token_position="3"} 5
trtllm_generation_tokens_total{model_name="undefined"} 52
trtllm_prompt_tokens_total{model_name="undefined"} 40
trtllm_request_success_total{finished_reason="stop"} 2
trtllm_num_requests_running 0
trtllm_num_requests_waiting 0
"""
"""Names of release 1.2, with labels that say nothing; nobody recorded a page of it."""


def page_of(engine, source):
    if source == "simulated":
        route = client.route(dialect=DIALECTS[engine], speculation=Speculation())
        venue = VirtualEngine(route)
        for number in range(6):
            body = client.chat(f"Tell me of {number}", max_tokens=32)
            venue.send(venue.now_s, "/v1/chat/completions", json.dumps(body).encode())
            venue.next_end()
        return venue.page(adapter(engine).metrics_path)
    if engine == "tensorrt-llm":
        return TENSORRT_PAGE
    folder, route = RECORDED[engine]
    return recorded(folder, f"{route}.metrics_after.prom").read_text()


def record_of(engine, page):
    values = adapter(engine).counters(page, 0.0).values
    requests = values.get("requests_total") or 57
    return counts_of_window(
        values,
        OwnTraffic(requests=int(requests)),
        AcceptanceCounts(engine=engine, method="draft_model", topology="chain"),
    )


@pytest.mark.parametrize("source", ["recorded", "simulated"])
@pytest.mark.parametrize("engine", DIALECTS)
def test_a_page_becomes_a_normalized_record(engine, source):
    found = record_of(engine, page_of(engine, source))
    assert (found.schema, found.source, found.engine) == (
        SCHEMA,
        "counter_delta",
        engine,
    )
    assert found.spec_passes > 0 and found.accepted >= 0
    assert found.completion_tokens > 0
    derived = derive(found)
    assert derived.acceptance_length >= 1.0
    assert derived.tokens_per_pass >= 1.0
    if engine == "sglang":
        # Its counters know neither the drafted tokens nor the positions.
        assert (found.drafted, found.accepted_at) == (None, None)
        assert found.trust == "derived"
    else:
        assert found.accepted <= found.drafted
        assert sum(found.accepted_at) == found.accepted
    broken = {i.name for i in identities(found) if not i.holds}
    assert broken == set()


@pytest.mark.parametrize("engine", DIALECTS)
def test_recorded_and_simulated_pages_know_the_same_of_speculation(engine):
    names = [
        {
            name.partition(":")[0]
            for name in adapter(engine).counters(page_of(engine, source), 0.0).values
            if any(word in name for word in ("spec", "draft", "accept", "decode_tok"))
        }
        for source in ("recorded", "simulated")
    ]
    missing = names[0] - names[1] - {"draft_tokens_gauge", "acceptance_length_gauge"}
    assert missing == set()


@pytest.mark.parametrize("engine", DIALECTS)
def test_future_names_are_unavailable_and_shown(engine):
    page = page_of(engine, "simulated")
    prefix = {"llama.cpp": "llamacpp:", "tensorrt-llm": "trtllm_"}.get(
        engine, f"{engine}:"
    )
    future = page.replace(f"{prefix}spec_", f"{prefix}speculative2_").replace(
        "realtime_tokens_total", "decoded_tokens_now_total"
    )
    assert future != page
    found = adapter(engine).counters(future, 0.0)
    made = record_of(engine, future)
    assert (made.source, made.trust) == ("none", "unavailable")
    assert (made.spec_passes, made.accepted, made.drafted) == (None, None, None)
    assert derive(made).acceptance_length is None
    assert any("speculative2_" in name for name in found.unknown_names)
