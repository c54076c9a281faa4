import json
import zipfile

import pytest
from workloads_data import data_file

from routeproof.errors import ConfigError, FormatError
from routeproof.workloads.results.arguments import read_arguments
from routeproof.workloads.results.compare import compare_results, refusals
from routeproof.workloads.results.definitions import DEFINITIONS
from routeproof.workloads.results.table import RESULTS

FILES = {
    "lm-eval": "client_results/lm_eval/baseline-q4_1",
    "vllm-bench": "client_results/vllm_bench_serve/vllm-ngram.json",
    "inferencex": "bench_results_vllm_random/results.jsonl",
    "guidellm": "client_results/guidellm/vllm-ngram.json",
    "aiperf": "client_results/aiperf/profile_export_aiperf.json",
    "inference-perf": "inference_perf_vllm_sweep/reports.jsonl",
}


def of(kind, name=None):
    return RESULTS[kind].of(data_file(name or FILES[kind]))


def value(result, definition_id, statistic):
    (found,) = [
        m.value
        for m in result.measured
        if (m.definition_id, m.statistic) == (definition_id, statistic)
    ]
    return found


@pytest.mark.parametrize("kind", FILES)
def test_every_number_has_a_definition_and_times_are_seconds(kind):
    for result in of(kind):
        for one in result.measured:
            assert one.definition_id in DEFINITIONS
            assert not one.name.endswith("_ms") or one.unit == "s"


def test_milliseconds_and_seconds_of_one_family_come_out_alike():
    (vllm,) = of("vllm-bench")
    assert value(vllm, "vllm.tpot", "mean") == pytest.approx(0.0540, abs=1e-4)
    runs = of("inferencex")
    assert len(runs) == 169
    assert value(runs[0], "vllm.e2el", "p50") == pytest.approx(21.448, abs=1e-3)


def test_a_file_in_the_other_unit_is_refused_with_the_kind_to_use():
    with pytest.raises(FormatError, match="import it as `inferencex`"):
        RESULTS["vllm-bench"].of(data_file(FILES["inferencex"]))
    with pytest.raises(FormatError, match="import it as `vllm-bench`"):
        RESULTS["inferencex"].of(data_file(FILES["vllm-bench"]))


def bench(**changed):
    row = {
        "duration": 100.0,
        "completed": 400,
        "request_throughput": 4.0,
        "request_rate": "inf",
        "max_concurrency": 8,
        "mean_ttft_ms": 200.0,
        "mean_tpot_ms": 20.0,
        "mean_e2el_ms": 2000.0,
    }
    return row | changed


def bench_file(tmp_path, *rows, name="r.json"):
    path = tmp_path / name
    path.write_text("\n".join(json.dumps(row) for row in rows))
    return path


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"mean_e2el_ms": 2.0}, "means 0.008 requests in flight, not 8"),
        ({"mean_e2el_ms": 90_000.0}, "means 360 requests in flight, not 8"),
        ({"mean_ttft_ms": 200_000.0}, "`ttft` mean would be 200 s in a run of 100 s"),
        ({"mean_tpot_ms": -1.0}, "would be -0.001 s"),
    ],
)
def test_times_that_cannot_be_in_their_unit_are_refused(tmp_path, changed, said):
    with pytest.raises(FormatError, match=said):
        RESULTS["vllm-bench"].of(bench_file(tmp_path, bench(**changed)))


def test_a_sglang_line_keeps_its_own_definitions(tmp_path):
    row = bench(mean_e2e_latency_ms=2000.0, accept_length=2.5)
    del row["mean_e2el_ms"]
    (result,) = RESULTS["sglang-bench"].of(bench_file(tmp_path, row))
    assert value(result, "sglang.e2el", "mean") == 2.0
    assert value(result, "spec.acceptance_length", "total") == 2.5


def test_guidellm_names_are_not_taken_for_what_others_mean_by_them():
    (result,) = of("guidellm")
    inside, after = (
        value(result, d, "mean") for d in ("guidellm.tpot", "guidellm.itl")
    )
    assert inside == pytest.approx(0.0879, abs=1e-4)
    assert after == pytest.approx(0.0735, abs=1e-4)
    assert DEFINITIONS["guidellm.itl"].metric == "time_per_output_token"
    assert DEFINITIONS["guidellm.tpot"].metric != "time_per_output_token"


def test_aiperf_units_come_from_the_file_and_a_tokenizer_gap_is_told():
    (result,) = of("aiperf")
    assert value(result, "aiperf.latency", "p50") == pytest.approx(6.328, abs=1e-3)
    assert "93.8 %" in result.notes[0]
    assert result.level.concurrency == 2


def test_bursts_at_the_client_are_told_on_every_sweep_but_the_old_engine():
    noted = {
        result.label.split(",")[0]
        for result in of("inference-perf")
        if any("bursts" in note for note in result.notes)
    }
    assert {"vllm", "vllm+eagle"} <= noted


def sweep():
    routes = {}
    for result in of("inference-perf"):
        routes.setdefault(result.label.split(",")[0], []).append(result)
    return routes


@pytest.mark.parametrize(
    ("route", "fields"),
    [
        ("vllm+batch_size", {"args.max_num_seqs"}),
        (
            "vllm+eagle",
            {
                "args.enable_prefix_caching",
                "args.enable_chunked_prefill",
                "args.speculative_config",
            },
        ),
        (
            "vllm+quantization",
            {"args.enable_prefix_caching", "args.enable_chunked_prefill", "fault"},
        ),
        (
            "vllm+chunking_and_prefix_caching",
            {"args.enable_prefix_caching", "args.enable_chunked_prefill"},
        ),
        ("vllm+v0_engine", {"image"}),
    ],
)
def test_the_published_sweep_is_refused_with_each_difference_named(route, fields):
    routes = sweep()
    found = refusals(routes["vllm"], routes[route])
    assert {one.field for one in found} == fields
    with pytest.raises(ConfigError) as caught:
        compare_results(routes["vllm"], routes[route])
    assert all(field in str(caught.value) for field in fields)


def test_a_route_that_only_batches_more_is_compared_at_equal_rates_not_stages():
    routes = sweep()
    found = compare_results(
        routes["vllm"], routes["vllm+batch_size"], changes=["args.max_num_seqs"]
    )
    assert found.rows
    by_load = {row.load for row in found.rows}
    assert len(by_load) + len(found.unmatched) >= 7
    assert all(0.5 < row.ratio < 2 for row in found.rows if "rate" in row.metric)


def test_an_argument_of_two_words_is_a_fault_that_no_change_excuses():
    routes = sweep()
    changes = ["args.enable_prefix_caching", "args.enable_chunked_prefill"]
    (one,) = refusals(routes["vllm"], routes["vllm+quantization"], changes=changes)
    assert "`--quantization bitsandbytes` holds 2 words" in one.candidate


def test_loads_that_never_meet_are_refused(tmp_path):
    path = bench_file(tmp_path, bench())
    other = bench_file(
        tmp_path, bench(max_concurrency=4, mean_e2el_ms=1000.0), name="o.json"
    )
    one, two = (RESULTS["vllm-bench"].of(p) for p in (path, other))
    (refusal,) = refusals(one, two)
    assert str(refusal) == "`load`: concurrency 8 and concurrency 4"


def test_results_of_two_tools_are_never_compared():
    found = refusals(of("guidellm"), of("vllm-bench"))
    assert found[0].field == "tool"


def test_percentiles_of_too_few_requests_are_withheld():
    baseline = of("vllm-bench", "client_results/vllm_bench_serve/vllm-bf16.json")
    found = compare_results(baseline, of("vllm-bench"))
    shown = {(row.definition_id, row.statistic) for row in found.rows}
    assert ("vllm.ttft", "p50") in shown
    assert ("vllm.ttft", "p99") not in shown
    assert "ttft p99 of 24 values" in found.withheld


def test_scores_are_paired_case_by_case_and_texts_counted():
    lossy = of("lm-eval", "client_results/lm_eval/lossy-q2_k")
    pairs = {p.scorer: p for p in compare_results(of("lm-eval"), lossy).pairs}
    one = pairs["contains"]
    assert (one.n, one.losses, one.gains, one.missing) == (24, 3, 2, 0)
    assert one.baseline_mean * 24 == pytest.approx(8)
    assert one.candidate_mean * 24 == pytest.approx(7)
    assert one.equal_texts == 0


def test_other_prompts_are_not_the_same_test(tmp_path):
    path = data_file("client_results/lm_eval/baseline-q4_1/samples_xquad_en_mini.jsonl")
    lines = path.read_text().splitlines()
    fewer = tmp_path / "samples_x.jsonl"
    fewer.write_text("\n".join(lines[:-1]))
    found = refusals(RESULTS["lm-eval"].of(path), RESULTS["lm-eval"].of(fewer))
    assert "prompts" in {one.field for one in found}


INSPECT = {
    "2025-02-11T15-18-04-05-00_popularity_mj7khqpMM4GBCfVQozKgzB.eval": (10, 8.0),
    "2025-02-11T15-17-00-05-00_popularity_dPiJifoWeEQBrfWsAopzWr.eval": (10, None),
    "2025-05-12T20-28-13-04-00_popularity.json": (3, 2.0),
    "2025-05-12T20-28-26-04-00_security-guide.json": (3, 3.0),
    "2024-11-05T13-32-37-05-00_input-task_hxs4q9azL3ySGkjJirypKZ.eval": (1, 1.0),
    "log_formats.json": (1, 0.0),
    "log_read_sample.eval": (1, 1.0),
    "log_tool_call_error.json": (1, None),
    "mmlu-summary-choices.eval": (1, 0.0),
}


@pytest.mark.parametrize("name", INSPECT)
def test_an_inspect_log_keeps_every_sample_also_those_without_a_score(name):
    (result,) = of("inspect", f"inspect_logs/{name}")
    n, total = INSPECT[name]
    values = [sample.value for sample in result.samples]
    assert len(values) == n
    if total is None:
        assert values == [None] * n
        assert all(sample.note for sample in result.samples)
        assert f"{n} of {n} samples have no score" in result.notes
    else:
        assert sum(values) == total


def test_a_cancelled_inspect_run_is_a_fault_that_stops_a_comparison():
    (one,) = of("inspect", "inspect_logs/2025-05-12T20-28-13-04-00_popularity.json")
    assert one.faults == ("the run ended as `cancelled`",)
    assert "fault" in {r.field for r in refusals((one,), (one,))}


def zipped(path, **members):
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in members.items():
            archive.writestr(name.replace("__", "/"), text)
    return path


@pytest.mark.parametrize(
    ("kind", "content", "said"),
    [
        ("guidellm", "{", "not JSON"),
        ("guidellm", "{}", "no `benchmarks`"),
        ("guidellm", '{"benchmarks": [{}]}', "benchmark 1 has no `metrics`"),
        ("aiperf", "[]", "no `aiperf_version`"),
        ("aiperf", '{"aiperf_version": "1"}', "not its summary"),
        (
            "aiperf",
            '{"aiperf_version": "1", "request_latency": {"unit": "fortnight"}}',
            "unknown unit `fortnight`",
        ),
        ("lm-eval", '{"doc_id": 1}', "line 1: not a sample log .* no key `target`"),
        ("vllm-bench", '{"a": 1}', "line 1: not a result of vllm bench serve"),
        ("sglang-bench", "", "the file is empty"),
        ("inference-perf", '{"a": 1}', "line 1: not a report .* no key `config`"),
        ("inference-perf", '{"successes": {}}', "no `successes.latency`"),
        ("inspect", "{}", "no `eval.task`"),
        ("inspect", "[]", "no object"),
    ],
)
def test_a_result_file_of_another_kind_is_named(tmp_path, kind, content, said):
    path = tmp_path / "x.json"
    path.write_text(content)
    with pytest.raises(FormatError, match=said):
        RESULTS[kind].of(path)


def test_archives_that_are_no_inspect_log_are_named(tmp_path):
    (tmp_path / "a.eval").write_text("no zip")
    with pytest.raises(FormatError, match="not a zip archive"):
        RESULTS["inspect"].of(tmp_path / "a.eval")
    with pytest.raises(FormatError, match="has no header"):
        RESULTS["inspect"].of(zipped(tmp_path / "b.eval", readme="x"))
    with pytest.raises(ConfigError, match="cannot read"):
        RESULTS["inspect"].of(tmp_path / "none.eval")


def test_a_folder_of_inference_perf_reports_is_read_stage_by_stage(tmp_path):
    report = {
        "load_summary": {"requested_rate": 2.0, "achieved_rate": 2.0},
        "successes": {"count": 9, "latency": {"time_to_first_token": {"mean": 0.5}}},
    }
    for stage in (10, 2):
        path = tmp_path / f"stage_{stage}_lifecycle_metrics.json"
        path.write_text(json.dumps(report))
    labels = [one.label for one in RESULTS["inference-perf"].of(tmp_path)]
    assert labels == [f"{tmp_path.name}, stage 2", f"{tmp_path.name}, stage 10"]


def test_arguments_are_read_as_an_engine_would():
    settings, faults = read_arguments(
        ["--a-b=1", "--no-cache", "--c", "two", "--flag", "--q x", "stray", "--z={a b}"]
    )
    assert settings == {
        "a_b": "1",
        "cache": "false",
        "c": "two",
        "flag": "true",
        "z": "{a b}",
    }
    assert [fault.split("`")[1] for fault in faults] == ["--q x", "stray"]
