import pytest
from route_specs import a_route, launched, said

from routeproof.proof.route import LaunchSpec, RouteSpec
from routeproof.routes.inventory import take_inventory
from routeproof.routes.modes import mode_of
from routeproof.routes.option_files import launched_fields

OPTIONS = """\
speculative_config:
  decoding_type: Eagle3
  max_draft_len: 3
  speculative_model: org/Draft
kv_cache_config: {dtype: fp8, enable_block_reuse: false}
max_batch_size: 64
return_perf_metrics: true
"""


def trtllm(tmp_path, text=OPTIONS, name="options.yaml") -> LaunchSpec:
    (tmp_path / "options.yaml").write_text(text)
    words = ("trtllm-serve", "org/M", "--extra_llm_api_options", name)
    return LaunchSpec(command=words, cwd=str(tmp_path))


def test_the_option_file_of_tensorrt_llm_is_read(tmp_path):
    assert launched_fields(trtllm(tmp_path)) == {
        "model": "org/M",
        "speculation.method": "Eagle3",
        "speculation.draft_tokens": "3",
        "speculation.draft.model": "org/Draft",
        "kv_cache": "fp8",
        "prefix_cache": "false",
        "scheduler.max_running_requests": "64",
        "launch.return_perf_metrics": "true",
    }


def test_an_option_file_without_speculation_says_there_is_none(tmp_path):
    found = launched_fields(trtllm(tmp_path, "max_batch_size: 8\n"))
    assert found["speculation.method"] == "none"


@pytest.mark.parametrize("text", ["- a\n", "{", "a: &a {b: *a}\n"])
def test_a_file_that_cannot_be_read_says_nothing_about_speculation(tmp_path, text):
    found = launched_fields(trtllm(tmp_path, text))
    assert "speculation.method" not in found
    assert found["launch.extra_llm_api_options"] == "options.yaml"
    missing = launched_fields(trtllm(tmp_path, name="gone.yaml"))
    assert "speculation.method" not in missing
    spec = RouteSpec(launch=trtllm(tmp_path, name="gone.yaml"))
    assert mode_of(spec, None).mode == "unknown"
    assert "speculation.method" in take_inventory(spec, None).unverified()


def test_relaxed_acceptance_hides_in_the_option_file(tmp_path):
    text = OPTIONS.replace(
        "max_draft_len", "use_relaxed_acceptance_for_thinking: true\n  max_draft_len"
    )
    found = mode_of(RouteSpec(launch=trtllm(tmp_path, text)), None)
    assert found.mode == "lossy"


def test_flags_in_a_file_of_vllm_are_flags(tmp_path):
    (tmp_path / "vllm.yaml").write_text(
        "max-model-len: 4096\nenforce_eager: true\nno-enable-prefix-caching: true\n"
        "speculative-config: {method: ngram, num_speculative_tokens: 4}\n"
    )
    launch = LaunchSpec(
        command=("vllm", "serve", "org/M", "--config", "vllm.yaml"), cwd=str(tmp_path)
    )
    found = launched_fields(launch)
    assert found["context_limit_tokens"] == "4096"
    assert found["prefix_cache"] == "false"
    assert found["speculation.method"] == "ngram"
    assert found["speculation.draft_tokens"] == "4"


def test_the_command_line_wins_over_the_file(tmp_path):
    (tmp_path / "c.yaml").write_text("kv-cache-dtype: fp8\n")
    words = ("vllm", "serve", "m", "--kv-cache-dtype", "bf16", "--config", "c.yaml")
    found = launched_fields(LaunchSpec(command=words, cwd=str(tmp_path)))
    assert found["kv_cache"] == "bf16"


def test_a_route_without_a_launch_has_no_launched_fields():
    assert launched_fields(None) == {}
    spec = a_route(launch=launched("vllm", "serve", "Qwen/Qwen3-8B"))
    assert take_inventory(spec, said()).value("speculation.method") == "none"
