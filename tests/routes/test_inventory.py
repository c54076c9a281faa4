import pytest
from hypothesis import given
from hypothesis import strategies as st
from route_specs import a_route, launched, said, speculation

from routeproof.proof.route import RouteSpec
from routeproof.routes.fields import canonical, is_draft_free, same
from routeproof.routes.inventory import Field, Inventory, digest, take_inventory


def field(inventory: Inventory, name: str) -> Field:
    return next(f for f in inventory.fields if f.name == name)


def test_what_the_endpoint_says_is_read_back():
    found = take_inventory(a_route(), said(kv_cache="torch.bfloat16"))
    kv = field(found, "kv_cache")
    assert (kv.value, kv.known, kv.note) == ("bf16", "read_back", None)


def test_what_only_the_file_says_is_declared_and_what_nobody_says_unverified():
    found = take_inventory(a_route(), said())
    assert field(found, "kv_cache").known == "declared"
    missing = field(found, "hardware.device")
    assert (missing.value, missing.known) == (None, "unverified")
    assert "hardware.device" in found.unverified()


def test_an_endpoint_that_contradicts_the_file_is_noted():
    found = field(take_inventory(a_route(), said(kv_cache="fp8")), "kv_cache")
    assert found.value == "fp8_e4m3"
    assert found.note == "declared bf16, but the endpoint says fp8"


def test_a_launch_command_fills_in_and_can_contradict():
    spec = a_route(kv_cache=None, launch=launched("serve", "--kv-cache-dtype", "fp8"))
    kv = field(take_inventory(spec, None), "kv_cache")
    assert (kv.value, kv.note) == ("fp8_e4m3", "from the launch command")
    twice = a_route(launch=launched("serve", "--kv-cache-dtype", "fp8"))
    kv = field(take_inventory(twice, None), "kv_cache")
    assert kv.note == "declared bf16, but the launch command says fp8"


def test_a_speculative_route_needs_more_fields():
    plain = take_inventory(a_route(), said(speculation__method="none"))
    assert "speculation.draft_tokens" not in plain.unverified()
    ngram = take_inventory(a_route(), said(speculation__method="NGRAM"))
    assert "speculation.draft_tokens" in ngram.unverified()
    assert "speculation.draft.model" not in ngram.unverified()
    eagle = take_inventory(a_route(), said(speculation__method="eagle3"))
    assert "speculation.draft.revision" in eagle.unverified()
    full = take_inventory(a_route(speculation=speculation()), None)
    assert not [n for n in full.unverified() if n.startswith("speculation")]


def test_secrets_in_a_launch_are_not_written_down():
    spec = a_route(
        launch=launched("serve", "--hf-token", "hf_abc", HF_TOKEN="hf_abc", MODE="x")
    )
    found = take_inventory(spec, None)
    assert field(found, "observed.env.HF_TOKEN").value == "set"
    assert field(found, "launch.env.MODE").value == "x"
    assert not any("hf_abc" in (f.value or "") for f in found.fields)


def test_where_a_route_is_reached_is_no_part_of_its_digest():
    here = take_inventory(a_route(), said(model__served="a"))
    there = take_inventory(a_route(endpoint="http://other/v1"), said(model__served="b"))
    assert here.digest == there.digest
    assert here.digest != take_inventory(a_route(kv_cache="fp8"), said()).digest


@given(st.permutations(range(8)))
def test_the_digest_does_not_depend_on_order(order):
    fields = [Field(name=f"n{i}", value=str(i), known="declared") for i in range(8)]
    assert digest([fields[i] for i in order]) == digest(fields)


def test_files_at_another_place_are_the_same_model():
    assert same("model", "Qwen/Qwen3-8B", "/data/models/Qwen3-8B")
    assert same("model", "SmolLM2-135M-Instruct", "/m/SmolLM2-135M-Instruct.Q4_1.gguf")
    assert not same("model", "Qwen/Qwen3-8B", "other/Qwen3-8B")
    assert not same("model", "Qwen/Qwen3-8B", "/data/Qwen3-4B")


def test_a_short_revision_is_the_long_one():
    assert same("revision", "b968826", "b968826d9c46dd60")
    assert not same("revision", "b96", "b968826d9c46dd60")
    assert not same("revision", "main", "b968826d9c46dd60")


def test_words_of_several_engines_mean_the_same():
    assert canonical("kv_cache", "torch.float8_e4m3fn") == canonical("kv_cache", "fp8")
    assert canonical("speculation.method", "STANDALONE") == "draft_model"
    assert canonical("speculation.method", "draft-simple") == "draft_model"
    assert canonical("engine.name", "llama-server") == "llama.cpp"
    assert canonical("context_limit_tokens", "4096.0") == "4096"


def test_methods_without_a_draft_model():
    assert is_draft_free("ngram-simple")
    assert is_draft_free("NGRAM")
    assert not is_draft_free("ngram-simple,draft-simple")
    assert not is_draft_free("eagle3")


@pytest.mark.slow
@given(
    st.sampled_from(["weights", "kv_cache", "speculation.method", "model", "x_tokens"]),
    st.text("abcdefFP8_-. /0123", max_size=12),
)
def test_canonical_spelling_is_settled(name, value):
    once = canonical(name, value)
    assert canonical(name, once) == once
    assert same(name, value, value)


def test_an_empty_route_is_all_unverified():
    found = take_inventory(RouteSpec(), None)
    assert "model" in found.unverified()
    assert field(found, "speculation.mode").value == "unknown"


def test_a_build_tag_behind_a_version_is_the_same_version():
    assert same("engine.version", "0.32.0", "0.32.0+cpu")
    assert same("engine.version", "b10434", "b10434-7e4c0a9")
    assert not same("engine.version", "0.3", "0.32.0")


def test_lists_and_families_of_methods_have_one_spelling():
    one = canonical("speculation.method", "ngram-simple,draft-simple")
    assert one == canonical("speculation.method", "draft-simple, ngram-simple")
    assert canonical("speculation.method", "qwen3_next_mtp") == "mtp"
    assert canonical("speculation.method", "DFlash2") == "dflash"


def test_auto_in_a_launch_command_says_nothing():
    words = ("serve", "--dtype", "auto", "--kv-cache-dtype", "auto")
    found = take_inventory(a_route(launch=launched(*words)), said(weights="bfloat16"))
    assert field(found, "weights").note is None
    assert field(found, "kv_cache").value == "bf16"
