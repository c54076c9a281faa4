import json

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from route_specs import a_route, launched, speculation

from routeproof.engines.options_file import has_options_file, with_file
from routeproof.engines.template_options import impossible, with_options
from routeproof.engines.templates import TEMPLATES, launch_for, with_draft_tokens
from routeproof.errors import ConfigError
from routeproof.proof.route import EngineSpec, LaunchSpec, RouteSpec
from routeproof.routes.fields import same
from routeproof.routes.inventory import declared_fields


@pytest.mark.parametrize("engine", ["vllm", "sglang", "llama.cpp"])
@pytest.mark.parametrize("method", ["none", "ngram", "eagle3", "dflash", "draft_model"])
def test_a_template_says_what_the_route_says(engine, method):
    spec = None
    if method != "none":
        drafted = {} if method != "ngram" else {"draft": None}
        spec = speculation(method=method, draft_tokens=5, **drafted)
    route = a_route(
        engine=EngineSpec(name=engine), kv_cache="fp8_e5m2", speculation=spec
    )
    launch = launch_for(route)
    bare = RouteSpec(launch=launch)
    read, _ = declared_fields(bare)
    assert same("model", read["model"], "Qwen/Qwen3-8B")
    assert same("kv_cache", read["kv_cache"], "fp8_e5m2")
    assert "{port}" in launch.command
    if method == "none":
        assert read["speculation.method"] == "none"
        return
    if (engine, method) == ("llama.cpp", "ngram"):
        assert read["speculation.method"] == "ngram-simple"
        assert "5" in launch.command
        return
    assert same("speculation.method", read["speculation.method"], method)
    assert read["speculation.draft_tokens"] == "5"


def test_a_template_needs_a_model_and_a_known_engine():
    with pytest.raises(ConfigError, match="no launch template") as caught:
        launch_for(a_route(engine=EngineSpec(name="triton")))
    assert "vllm" in caught.value.hint
    with pytest.raises(ConfigError, match="names no model"):
        launch_for(a_route(model=None))
    assert "{options}" in launch_for(a_route(engine=EngineSpec(name="trtllm"))).command


@pytest.mark.slow
@given(st.integers(1, 32), st.sampled_from(["vllm", "sglang", "llama.cpp"]))
def test_a_changed_draft_length_reads_back(draft_tokens, engine):
    route = a_route(engine=EngineSpec(name=engine), speculation=speculation())
    changed = with_draft_tokens(launch_for(route), engine, draft_tokens)
    read, _ = declared_fields(RouteSpec(launch=changed))
    assert read["speculation.draft_tokens"] == str(draft_tokens)
    assert with_draft_tokens(changed, engine, 3) == with_draft_tokens(
        launch_for(route), engine, 3
    )


def test_only_the_draft_length_changes():
    config = {"method": "eagle3", "model": "d", "num_speculative_tokens": 3, "x": [1]}
    launch = launched(
        "vllm", "serve", "m", f"--speculative-config={json.dumps(config)}"
    )
    words = with_draft_tokens(launch, "vllm", 6).command
    assert words[:3] == ("vllm", "serve", "m")
    changed = json.loads(words[3].partition("=")[2])
    assert changed == {**config, "num_speculative_tokens": 6}


def test_ngram_sizes_are_changed_in_place():
    launch = launched("llama-server", "--spec-type", "ngram-simple", "-np", "2")
    words = with_draft_tokens(launch, "llama-server", 8).command
    assert words[-2:] == ("--spec-ngram-simple-size-m", "8")
    sglang = launched("serve", "--speculative-algorithm", "NGRAM")
    words = with_draft_tokens(sglang, "sglang", 4).command
    assert words[-2:] == ("--speculative-num-draft-tokens", "5")
    assert "--speculative-num-steps" not in words


@pytest.mark.parametrize(
    ("engine", "words", "says"),
    [
        ("vllm", ("vllm", "serve", "m"), "does not speculate"),
        ("sglang", ("serve",), "does not speculate"),
        ("llama.cpp", ("llama-server", "-m", "m"), "does not speculate"),
        ("vllm", ("vllm", "--speculative-config", "{oops"), "is not JSON"),
        ("tensorrt-llm", ("trtllm-serve", "m"), "not in its launch command"),
    ],
)
def test_a_command_without_a_draft_length_is_refused(engine, words, says):
    with pytest.raises(ConfigError, match=says):
        with_draft_tokens(launched(*words), engine, 4)


def test_every_engine_with_an_own_adapter_has_a_template():
    assert set(TEMPLATES) == {"vllm", "sglang", "llama.cpp", "tensorrt-llm"}


@pytest.mark.parametrize(
    ("engine", "words", "options", "wanted"),
    [
        (
            "sglang",
            ("serve", "--speculative-algorithm", "EAGLE3"),
            {"num_steps": "3", "eagle_topk": "2"},
            ("--speculative-num-steps", "3", "--speculative-eagle-topk", "2"),
        ),
        (
            "llama.cpp",
            ("llama-server", "--spec-ngram-simple-size-n=4"),
            {"ngram_simple_size_n": "3"},
            ("--spec-ngram-simple-size-n=3",),
        ),
        (
            "vllm",
            ("vllm", "--speculative-config", '{"method": "ngram"}'),
            {"prompt_lookup_max": "3"},
            ('{"method": "ngram", "prompt_lookup_max": 3}',),
        ),
    ],
)
def test_options_are_set_where_each_engine_keeps_them(engine, words, options, wanted):
    found = with_options(LaunchSpec(command=words), engine, options).command
    assert found[-len(wanted) :] == wanted
    again = with_options(LaunchSpec(command=found), engine, options).command
    assert again == found


@pytest.mark.parametrize(
    ("engine", "words", "says"),
    [
        ("vllm", ("vllm", "serve"), "does not speculate"),
        ("vllm", ("vllm", "--speculative-config", "{"), "not JSON"),
        ("tensorrt-llm", ("trtllm-serve",), "not in its launch command"),
    ],
)
def test_a_command_without_options_is_refused(engine, words, says):
    with pytest.raises(ConfigError, match=says):
        with_options(LaunchSpec(command=words), engine, {"a": "1"})


def test_a_tree_of_sglang_that_is_too_small_is_not_launched():
    assert impossible("sglang", 7, {"num_steps": "3", "eagle_topk": "2"})
    assert impossible("sglang", 6, {"num_steps": "3", "eagle_topk": "2"}) is None
    assert impossible("vllm", 7, {"num_steps": "3"}) is None
    assert impossible("sglang", 7, {}) is None


def an_options_file(folder, text):
    path = folder / "options.yaml"
    path.write_text(text)
    return LaunchSpec(
        command=("trtllm-serve", "m", "--extra_llm_api_options", "options.yaml"),
        cwd=str(folder),
    )


@pytest.mark.parametrize(
    ("config", "key"),
    [
        ("{decoding_type: Eagle3, max_draft_len: 3}", "max_draft_len"),
        ("{decoding_type: DFlash}", "max_draft_len"),
        (
            "{decoding_type: MTP, num_nextn_predict_layers: 1}",
            "num_nextn_predict_layers",
        ),
        ("{decoding_type: MTP, max_draft_len: 1}", "max_draft_len"),
    ],
)
def test_a_draft_length_in_a_file_is_changed_in_a_copy(tmp_path, config, key):
    given = an_options_file(
        tmp_path, f"kv_cache_config: {{dtype: fp8}}\nspeculative_config: {config}\n"
    )
    before = (tmp_path / "options.yaml").read_text()
    assert has_options_file(given, "TensorRT-LLM") and not has_options_file(
        given, "vllm"
    )
    target = tmp_path / "k5.options.yaml"
    found = with_file(given, 5, {"relaxed_topk": "10"}, target)
    assert found.command[-1] == str(target)
    content = yaml.safe_load(target.read_text())
    assert content["kv_cache_config"] == {"dtype": "fp8"}
    assert content["speculative_config"][key] == 5
    assert content["speculative_config"]["relaxed_topk"] == 10
    assert (tmp_path / "options.yaml").read_text() == before


@pytest.mark.parametrize(
    ("text", "says"),
    [("a: 1\n", "no `speculative_config`"), ("a: [\n", "cannot be read")],
)
def test_a_file_without_speculation_is_refused(tmp_path, text, says):
    with pytest.raises(ConfigError, match=says):
        with_file(an_options_file(tmp_path, text), 2, {}, tmp_path / "k2.yaml")
