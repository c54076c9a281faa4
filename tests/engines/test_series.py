import math

import pytest
from engine_pages import recorded, rows
from hypothesis import given
from hypothesis import strategies as st

from routeproof.engines.adapters import ADAPTERS, adapter
from routeproof.engines.series import Series, info_labels, read_series, samples
from routeproof.errors import ConfigError

DRAFTS = Series("spec_passes_total", ("new_total", "old_total"))


def test_the_newest_name_present_is_taken():
    page = "old_total 3\nnew_total 5\n"
    assert read_series(page, (DRAFTS,), ()).values == {"spec_passes_total": 5.0}
    assert read_series("old_total 3\n", (DRAFTS,), ()).values["spec_passes_total"] == 3


def test_a_missing_series_is_absent_and_not_zero():
    assert read_series("other 1\n", (DRAFTS,), ()).values == {}


def test_replicas_are_kept_apart_and_summed():
    page = 'new_total{engine="0"} 22\nnew_total{engine="1"} 15\n'
    found = read_series(page, (DRAFTS,), ("engine",))
    assert found.values["spec_passes_total"] == 37
    assert found.replicas["engine=1"] == {"spec_passes_total": 15.0}


def test_an_undefined_label_is_no_replica():
    page = 'new_total{engine="undefined",model_name="m"} 4\n'
    assert list(read_series(page, (DRAFTS,), ("engine",)).replicas) == [""]


def test_ranks_that_report_the_same_gauge_are_not_added_up():
    series = Series("running", ("r",), within="max")
    page = "".join(
        f'r{{dp_rank="{dp}",tp_rank="{tp}"}} {3 + dp}\n'
        for dp in (0, 1)
        for tp in (0, 1)
    )
    assert read_series(page, (series,), ("dp_rank",)).values == {"running": 7.0}


def test_positions_become_names_of_their_own():
    series = Series("accepted", ("a_total",), position_label="position")
    page = (
        'a_total{position="0"} 9\na_total{position="10"} 1\na_total{position="x"} 5\n'
    )
    found = read_series(page, (series,), ())
    assert found.values == {"accepted:0": 9.0, "accepted:10": 1.0}


def test_created_stamps_buckets_and_nan_are_not_samples():
    page = 'a_created 1.7e9\na_bucket{le="1"} 2\na NaN\nb 3 1700000000000\nc +Inf\n'
    assert [(s.name, s.value) for s in samples(page)] == [("b", 3.0)]


def test_an_unknown_name_about_speculation_is_shown():
    page = "vllm:spec_decode_num_rewinds_total 3\nvllm:other 1\n"
    counters = ADAPTERS["vllm"].counters(page, 1.0)
    assert counters.unknown_names == ("vllm:spec_decode_num_rewinds_total",)
    assert counters.source == "none"
    assert "spec_passes_total" not in counters.values


def test_labels_with_commas_and_quotes_are_read():
    page = 'x_info{a="1,2",b="say \\"hi\\"",c="}"} 1\n'
    assert info_labels(page, "x_info") == {"a": "1,2", "b": 'say \\"hi\\"', "c": "}"}


@pytest.mark.slow
@given(st.text(max_size=300))
def test_any_text_reads_as_some_page(text):
    for engine in ADAPTERS.values():
        counters = engine.counters(text, 0.0)
        assert all(math.isfinite(value) for value in counters.values.values())


@pytest.mark.slow
@given(st.lists(st.floats(0, 1e12), min_size=1, max_size=5))
def test_a_sum_over_replicas_is_the_sum_of_the_replicas(values):
    page = "".join(f'new_total{{engine="{i}"}} {v!r}\n' for i, v in enumerate(values))
    found = read_series(page, (DRAFTS,), ("engine",))
    parts = [part["spec_passes_total"] for part in found.replicas.values()]
    assert parts == values
    assert found.values["spec_passes_total"] == pytest.approx(sum(values))


def test_a_published_data_parallel_page_is_summed():
    body = next(r for r in rows("engine_quotes", "quotes.jsonl") if "dp" in r["id"])
    counters = ADAPTERS["vllm"].counters(body["body"], 0.0)
    assert counters.values["spec_passes_total"] == 188
    assert len(counters.replicas) == 8


@pytest.mark.parametrize(
    ("engine", "folder", "route", "wanted"),
    [
        (
            "vllm",
            "engine_captures_vllm",
            "vllm-ngram",
            {
                "spec_passes_total": 159,
                "drafted_total": 629,
                "accepted_total": 250,
                "accepted_at_position_total:3": 44,
                "kv_capacity_tokens": 93184,
                "requests_total": 30,
            },
        ),
        (
            "llama.cpp",
            "engine_captures_llamacpp",
            "spec-draft-q2_k",
            {
                "spec_passes_total": 704,
                "drafted_total": 5191,
                "accepted_total": 1600,
                "accepted_at_position_total:0": 452,
                "output_tokens_total": 2347,
            },
        ),
        (
            "sglang",
            "engine_captures_sglang",
            "sglang-draft-q2k",
            {
                "spec_passes_total": 1438,
                "decode_tokens_total": 3527,
                "kv_capacity_tokens": 4096,
                "prompt_tokens_total": 5113,
            },
        ),
    ],
)
def test_recorded_pages_give_their_counters(engine, folder, route, wanted):
    page = recorded(folder, f"{route}.metrics_after.prom").read_text()
    counters = adapter(engine).counters(page, 0.0)
    assert {name: counters.values[name] for name in wanted} == wanted
    assert counters.unknown_names == ()


def test_a_baseline_without_speculation_has_no_speculation_counters():
    page = recorded("engine_captures_vllm", "vllm-bf16.metrics_after.prom").read_text()
    values = ADAPTERS["vllm"].counters(page, 0.0).values
    assert not {"spec_passes_total", "drafted_total", "accepted_total"} & set(values)


@pytest.mark.parametrize("body", ["[]", '{"iter": 60, "specDecodingStats": null}'])
def test_a_json_metrics_page_gives_nothing(body):
    assert ADAPTERS["tensorrt-llm"].counters(body, 0.0).values == {}


def test_an_unknown_engine_names_the_nearest():
    assert adapter("trtllm").name == "tensorrt-llm"
    with pytest.raises(ConfigError, match="no adapter") as caught:
        adapter("vlm")
    assert "`vllm`" in caught.value.hint


@pytest.mark.parametrize(
    ("labels", "wanted"),
    [
        ('kv_cache_size_tokens="93184",num_gpu_blocks="1",block_size="1"', 93184),
        ('num_gpu_blocks="728",block_size="128"', 93184),
        ('kv_cache_size_tokens="None",num_gpu_blocks="4",block_size="16"', 64),
        ('num_gpu_blocks="None",block_size="16"', None),
        ('block_size="16"', None),
    ],
    ids=["said", "blocks", "said to be none", "not yet known", "one label"],
)
def test_the_kv_capacity_of_vllm_is_said_or_follows_from_its_blocks(labels, wanted):
    page = f'vllm:cache_config_info{{engine="0",{labels}}} 1.0\n'
    found = ADAPTERS["vllm"].counters(page, 0.0)
    assert found.values.get("kv_capacity_tokens") == wanted


def test_replicas_add_up_to_the_kv_capacity():
    labels = 'num_gpu_blocks="10",block_size="16"'
    page = "".join(
        f'vllm:cache_config_info{{engine="{i}",{labels}}} 1.0\n' for i in range(3)
    )
    assert ADAPTERS["vllm"].counters(page, 0.0).values["kv_capacity_tokens"] == 480


def test_tensorrt_llm_counts_its_kv_cache_in_blocks():
    page = "trtllm_kv_cache_max_blocks 100\ntrtllm_kv_cache_tokens_per_block 32\n"
    found = ADAPTERS["tensorrt-llm"].counters(page, 0.0)
    assert found.values["kv_capacity_tokens"] == 3200
    half = ADAPTERS["tensorrt-llm"].counters("trtllm_kv_cache_max_blocks 100\n", 0.0)
    assert "kv_capacity_tokens" not in half.values
