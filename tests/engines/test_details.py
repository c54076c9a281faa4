import json

import pytest
from engine_pages import merged, recorded, rows
from hypothesis import given
from hypothesis import strategies as st

from routeproof.engines.adapters import ADAPTERS
from routeproof.records.record import EngineDetails

VLLM, SGLANG = ADAPTERS["vllm"], ADAPTERS["sglang"]
LLAMA, TRT = ADAPTERS["llama.cpp"], ADAPTERS["tensorrt-llm"]


def vllm_body(output=64, **spec):
    numbers = {
        "num_spec_steps": 22,
        "num_accepted_draft_tokens": 9,
        "num_draft_tokens": 87,
        "acceptance_histogram": [16, 5, 0, 0, 1],
        **spec,
    }
    metrics = {
        "queue_time_ms": 5.0,
        "time_to_first_token_ms": 250.0,
        "generation_time_ms": 1500.0,
        "speculative_decoding": numbers,
    }
    return {"usage": {"completion_tokens": output}, "metrics": metrics}


def test_vllm_counts_passes_without_a_draft_too():
    found = VLLM.details(vllm_body())
    assert (found.spec_passes, found.plain_passes, found.passes) == (22, 32, 54)
    assert (found.drafted, found.accepted) == (87, 9)
    assert found.accepted_hist == (16, 5, 0, 0, 1)
    assert (found.queue_s, found.prefill_s, found.decode_s) == (0.005, 0.25, 1.5)


def test_vllm_passes_never_fall_below_zero_when_the_last_run_was_cut():
    found = VLLM.details(vllm_body(output=20))
    assert found.plain_passes == 0


def test_vllm_drafts_per_position_come_from_drafts_per_pass():
    found = VLLM.details(vllm_body(per_step_drafted=[4, 3, 4, 0]))
    assert found.drafted_per_position == (3, 3, 3, 2)


def test_vllm_without_the_server_flags_tells_nothing():
    assert VLLM.details({"usage": {"completion_tokens": 9}}) == EngineDetails()
    assert VLLM.details({"metrics": None}) == EngineDetails()


@pytest.mark.parametrize(
    "keys",
    [
        (
            "spec_num_correct_drafts",
            "spec_num_proposed_drafts",
            "spec_correct_drafts_histogram",
        ),
        ("spec_accepted_drafts", "spec_proposed_drafts", "spec_accept_histogram"),
        ("spec_accept_token_num", "spec_draft_token_num", "spec_accept_histogram"),
    ],
)
def test_sglang_reads_the_names_of_three_releases(keys):
    meta = dict(zip(keys, (30, 57, [3, 7, 4, 5]), strict=True)) | {"spec_verify_ct": 19}
    found = SGLANG.details({"meta_info": meta})
    assert (found.spec_passes, found.plain_passes, found.passes) == (19, 0, 19)
    assert (found.accepted, found.drafted) == (30, 57)
    assert found.accepted_hist == (3, 7, 4, 5)


def test_sglang_without_speculation_has_no_counts():
    found = SGLANG.details({"choices": [{"meta_info": {"queue_time": 0.25}}]})
    assert found == EngineDetails(queue_s=0.25)


def test_llamacpp_leaves_draft_n_out_when_nothing_was_drafted():
    found = LLAMA.details({"timings": {"predicted_n": 26, "predicted_ms": 500.0}})
    assert (found.drafted, found.accepted, found.spec_passes) == (0, 0, 0)
    assert (found.plain_passes, found.passes, found.decode_s) == (25, 25, 0.5)


def test_llamacpp_passes_are_what_drafts_did_not_give():
    timings = {"predicted_n": 64, "draft_n": 62, "draft_n_accepted": 55}
    found = LLAMA.details({"timings": timings})
    assert (found.drafted, found.accepted, found.passes) == (62, 55, 8)
    assert found.spec_passes is None and found.plain_passes is None


def test_llamacpp_without_timings_tells_nothing():
    assert LLAMA.details({}) == EngineDetails()


def test_tensorrt_reads_a_performance_record():
    record = {
        "request_id": 7,
        "perf_metrics": {
            "timing_metrics": {
                "arrival_time": 10.0,
                "first_scheduled_time": 10.25,
                "first_token_time": 11.0,
                "last_token_time": 13.0,
            },
            "speculative_decoding": {
                "acceptance_rate": 0.5,
                "total_accepted_draft_tokens": 20,
                "total_draft_tokens": 40,
            },
        },
    }
    found = TRT.details(record)
    assert (found.queue_s, found.prefill_s, found.decode_s) == (0.25, 0.75, 2.0)
    assert (found.drafted, found.accepted) == (40, 20)
    inside = TRT.details({"phases": {"server": record["perf_metrics"]}})
    assert inside == found


def test_tensorrt_passes_come_from_tokens_per_iteration():
    choice = {"avg_decoded_tokens_per_iter": 2.5}
    found = TRT.details({"choices": [choice], "usage": {"completion_tokens": 51}})
    assert found.passes == 20
    assert found.drafted is None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                "timings metrics speculative_decoding sglext meta_info choices usage "
                "spec_tokens_details predicted_n draft_n per_step_drafted".split()
            ),
            inner,
            max_size=3,
        )
    ),
    max_leaves=6,
)


@pytest.mark.slow
@given(st.dictionaries(st.sampled_from(["timings", "metrics", "choices"]), JSON))
def test_any_body_gives_counts_that_are_not_negative(body):
    for engine in ADAPTERS.values():
        found = engine.details(body)
        for count in (found.drafted, found.accepted, found.passes, found.spec_passes):
            assert count is None or count >= 0


def test_a_recorded_vllm_stream_and_answer_agree():
    body = recorded("engine_captures_vllm", "vllm-ngram.chat.json").read_bytes()
    plain = VLLM.details(json.loads(body))
    stream = VLLM.details(
        merged("engine_captures_vllm", "vllm-ngram.chat_stream.sse.jsonl")
    )
    assert plain.accepted_hist == stream.accepted_hist == (16, 5, 0, 0, 1)
    # 64 tokens: the first from prefill, 9 accepted drafts, 54 passes.
    assert plain.passes == stream.passes == 54
    assert plain.fingerprint == "vllm-0.32.0-84ba3fa8"
    assert plain.drafted_per_position == (22, 22, 22, 21)


def test_a_recorded_sglang_stream_carries_its_counts():
    found = SGLANG.details(
        merged("engine_captures_sglang", "sglang-draft-q2k.chat_stream.sse.jsonl")
    )
    assert (found.spec_passes, found.accepted, found.drafted) == (17, 46, 51)
    assert found.accepted_hist == (0, 2, 1, 14)


def test_a_recorded_llamacpp_stream_carries_its_counts():
    found = LLAMA.details(
        merged("engine_captures_llamacpp", "spec-draft-q2_k.chat_stream.sse.jsonl")
    )
    assert (found.drafted, found.accepted, found.passes) == (62, 55, 8)


def test_published_bodies_parse_into_the_same_shape():
    quotes = {row["id"]: row for row in rows("engine_quotes", "quotes.jsonl")}
    found = VLLM.details({"metrics": quotes["vllm-per-request-summary"]["body"]})
    assert (found.spec_passes, found.accepted, found.drafted) == (43, 10, 129)
    assert found.plain_passes is None
    old = LLAMA.details({"timings": quotes["llamacpp-timings-draft"]["body"]})
    assert (old.drafted, old.accepted, old.passes) == (347, 65, 134)
