import pytest

from routeproof.routes.launch_flags import (
    arguments,
    fields_of_command,
    fields_of_environment,
    malformed_words,
)


def fields(text: str) -> dict[str, str]:
    return fields_of_command(text.split())


def test_a_vllm_command_is_read():
    command = [
        *"vllm serve org/Model --dtype bfloat16 -tp 2 --kv-cache-dtype=fp8".split(),
        *"--max-model-len 4096 --no-enable-prefix-caching --port 8000".split(),
        "--speculative-config",
        '{"method": "ngram", "num_speculative_tokens": 4, "prompt_lookup_max": 3}',
    ]
    assert fields_of_command(command) == {
        "model": "org/Model",
        "weights": "bfloat16",
        "hardware.topology": "tp2",
        "kv_cache": "fp8",
        "context_limit_tokens": "4096",
        "prefix_cache": "false",
        "speculation.method": "ngram",
        "speculation.draft_tokens": "4",
        "speculation.options.prompt_lookup_max": "3",
    }


def test_a_sglang_command_is_read_and_the_root_is_not_a_draft():
    found = fields(
        "python -m sglang.launch_server --model-path org/M"
        " --speculative-algorithm EAGLE3 --speculative-draft-model-path org/D"
        " --speculative-num-draft-tokens 4"
        " --speculative-eagle-topk 1 --disable-radix-cache"
    )
    assert found["speculation.draft_tokens"] == "3"
    assert found["speculation.method"] == "EAGLE3"
    assert found["speculation.draft.model"] == "org/D"
    assert found["prefix_cache"] == "false"


def test_a_llama_server_command_is_read():
    found = fields(
        "llama-server -m t.gguf -md d.gguf --spec-draft-n-max 8"
        " -ctk q8_0 -np 2 --metrics"
    )
    assert found["speculation.method"] == "draft_model"
    assert found["speculation.draft_tokens"] == "8"
    assert found["kv_cache"] == "q8_0/f16"
    assert found["scheduler.max_running_requests"] == "2"


def test_a_command_that_does_not_speculate_says_so():
    assert fields("llama-server -m t.gguf")["speculation.method"] == "none"


@pytest.mark.parametrize(
    "command",
    ["x --flag-a 1 2 --b", "x --flag_a 1 2 --b", "x --flag-a=1 2 --b"],
)
def test_underscores_equal_signs_and_several_values(command):
    found = dict(arguments(command.split()))
    assert found["--flag-a"] in ("1 2", "1")
    assert found["--b"] == "true"


def test_a_negative_number_is_a_value():
    assert dict(arguments(["x", "--n-predict", "-1"])) == {"--n-predict": "-1"}


def test_two_words_in_one_argument_are_found_and_not_believed():
    command = ["serve", "--quantization fp8", "--model=a b", "plain words"]
    assert malformed_words(command) == ("--quantization fp8",)
    assert "weights" not in fields_of_command(command)


def test_a_broken_speculative_config_is_kept_as_it_is():
    found = fields_of_command(["serve", "--speculative-config", "{broken"])
    assert found["speculation.options.config"] == "{broken"


def test_how_a_server_is_reached_is_no_part_of_a_route():
    assert fields("serve --port 1 --host h --api-key k --alias a --log-level info") == {
        "speculation.method": "none"
    }


def test_environment_switches_are_fields_and_secrets_are_not_shown():
    assert fields_of_environment({"A_MODE": "1", "MY_API_KEY": "s"}) == {
        "launch.env.A_MODE": "1",
        "launch.env.MY_API_KEY": "set",
    }


def test_where_things_are_is_noted_and_not_compared():
    found = fields_of_environment({"CUDA_VISIBLE_DEVICES": "3", "HF_TOKEN": "x"})
    assert found == {
        "observed.env.CUDA_VISIBLE_DEVICES": "3",
        "observed.env.HF_TOKEN": "set",
    }


def test_ngram_runs_of_llamacpp_are_its_draft_length():
    found = fields("llama-server --spec-type ngram-mod --spec-ngram-mod-size-m 12")
    assert found["speculation.draft_tokens"] == "12"
