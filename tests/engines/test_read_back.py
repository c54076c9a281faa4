import json

import pytest
from engine_pages import answers

from routeproof.engines.adapters import ADAPTERS


def vllm(route: str):
    paths = ("/v1/models", "/version", "/server_info?config_format=json", "/metrics")
    return ADAPTERS["vllm"].read_back(answers("engine_captures_vllm", route, *paths))


def sglang(route: str):
    paths = ("/v1/models", "/server_info", "/model_info")
    return ADAPTERS["sglang"].read_back(
        answers("engine_captures_sglang", route, *paths)
    )


def llama(route: str, *paths: str):
    paths = paths or ("/v1/models", "/props", "/slots")
    return ADAPTERS["llama.cpp"].read_back(
        answers("engine_captures_llamacpp", route, *paths)
    )


def has(found, **wanted: str) -> None:
    fields = {name.replace("__", "."): value for name, value in wanted.items()}
    assert {name: found.fields.get(name) for name in fields} == fields


def test_vllm_with_its_server_info_tells_the_whole_route():
    found = vllm("vllm-ngram")
    has(
        found,
        engine__version="0.32.0",
        model__served="smollm2-135m",
        weights="torch.bfloat16",
        kv_cache="torch.bfloat16",
        context_limit_tokens="2048",
        speculation__method="ngram",
        speculation__draft_tokens="4",
        speculation__options__rejection_sample_method="standard",
        prefix_cache="true",
        hardware__device="cpu",
    )
    assert "speculation.draft.model" not in found.fields
    assert "revision" in found.cannot_tell


def test_vllm_tells_its_kv_cache_type():
    has(vllm("vllm-fp8kv"), kv_cache="fp8_e5m2", speculation__method="none")


def test_vllm_without_server_info_tells_only_that_it_speculates():
    found = vllm("vllm-draft-self")
    assert "speculation.method" in found.cannot_tell
    assert "kv_cache" in found.cannot_tell
    has(found, observed__kv_capacity_tokens="46592")


def test_vllm_metrics_without_speculation_series_leave_speculation_unknown():
    page = "vllm:num_requests_running 0\n"
    found = ADAPTERS["vllm"].read_back({"/metrics": page})
    assert "speculation.method" not in found.fields
    assert "speculation.method" in found.cannot_tell
    assert "speculation.method" in ADAPTERS["vllm"].read_back({}).cannot_tell


def test_sglang_tells_its_route_and_counts_proposals_without_the_root():
    has(
        sglang("sglang-draft-q2k"),
        engine__version="0.5.23",
        weights="bfloat16",
        kv_cache="bfloat16",
        attention_backend="intel_amx+torch_native",
        speculation__method="STANDALONE",
        speculation__draft_tokens="3",
        speculation__draft__model="/models/smollm2-135m-instruct-q2k-dequantised",
        speculation__options__accept_threshold_single="1",
        prefix_cache="true",
    )


def test_sglang_ngram_has_no_draft_model_and_the_baseline_no_method():
    ngram = sglang("sglang-ngram")
    has(ngram, speculation__method="NGRAM", speculation__draft_tokens="4")
    assert "speculation.draft.model" in ngram.cannot_tell
    has(sglang("sglang-bf16"), speculation__method="none")
    has(sglang("sglang-fp32-draft-self-noradix"), prefix_cache="false")


def test_llamacpp_props_are_not_believed_about_speculation():
    drafting = llama("spec-draft-q2_k")
    props = json.loads(drafting.raw["/props"])
    default = props["default_generation_settings"]["params"]["speculative.types"]
    assert default == "none"
    has(drafting, speculation__method="draft-simple", weights="Q4_1")
    assert {"kv_cache", "speculation.draft.model"} <= set(drafting.cannot_tell)


def test_llamacpp_slots_of_a_plain_route_mean_no_speculation():
    has(llama("baseline-q4_1"), speculation__method="none", tokenizer__eos="<|im_end|>")


def test_llamacpp_without_slots_cannot_tell_whether_it_speculates():
    found = llama("spec-draft-q2_k", "/v1/models", "/props")
    assert "speculation.method" in found.cannot_tell
    assert "speculation.method" not in found.fields


def info(name: str, **labels: str) -> str:
    inside = ",".join(f'{key}="{value}"' for key, value in labels.items())
    return f"{name}{{{inside}}} 1\n"


def test_tensorrt_llm_reads_its_configuration_series():
    page = info(
        "trtllm_model_config_info",
        model="m",
        dtype="bfloat16",
        quantization="FP8",
        max_model_len="4096",
    )
    page += info("trtllm_parallel_config_info", tensor_parallel_size="2")
    page += info(
        "trtllm_speculative_config_info",
        spec_enabled="true",
        spec_method="Eagle3",
        spec_num_tokens="3",
        spec_draft_model="d",
    )
    page += info(
        "trtllm_kv_cache_config_info", cache_dtype="fp8", enable_block_reuse="True"
    )
    found = ADAPTERS["tensorrt-llm"].read_back(
        {"/version": '{"version": "1.3.0"}', "/prometheus/metrics": page}
    )
    has(
        found,
        engine__version="1.3.0",
        weights="FP8",
        kv_cache="fp8",
        context_limit_tokens="4096",
        hardware__topology="tp2",
        speculation__method="Eagle3",
        speculation__draft_tokens="3",
        speculation__draft__model="d",
        prefix_cache="True",
    )


def test_tensorrt_llm_labels_that_say_nothing_are_unknown():
    page = (
        'trtllm_model_config_info{dtype="undefined",quantization="none"} 1\n'
        'trtllm_speculative_config_info{spec_enabled="false",spec_method="none"} 1\n'
    )
    found = ADAPTERS["tensorrt-llm"].read_back({"/prometheus/metrics": page})
    has(found, speculation__method="none")
    assert "weights" in found.cannot_tell


@pytest.mark.parametrize("engine", list(ADAPTERS))
@pytest.mark.parametrize("body", ["", "[]", "null", '{"data": [3]}', "<html>", "{"])
def test_broken_answers_read_as_unknown(engine, body):
    chosen = ADAPTERS[engine]
    found = chosen.read_back({path: body for path in chosen.probe_paths})
    assert found.models == ()
    assert set(found.fields) <= {"engine.name"}


def test_a_llamacpp_build_that_does_not_know_itself_has_no_version():
    for build, version in (("b10434-7e4c0a9", "b10434-7e4c0a9"), ("b0-unknown", None)):
        page = json.dumps({"build_info": build, "model_path": "/m.gguf"})
        found = ADAPTERS["llama.cpp"].read_back({"/props": page})
        assert found.fields.get("engine.version") == version
