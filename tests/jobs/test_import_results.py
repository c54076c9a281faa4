import json

import pytest
from click.testing import CliRunner
from workloads_data import data_file

from routeproof.cli.import_ import command
from routeproof.errors import ConfigError, FormatError
from routeproof.jobs.import_results import compare_files, import_file, kinds
from routeproof.workloads.cases import read_cases

LM_EVAL = "client_results/lm_eval"


def gsm8k_file(tmp_path):
    path = tmp_path / "in.jsonl"
    row = {"question": "One and one?", "answer": "#### 2"}
    path.write_text(json.dumps(row) + "\n" + json.dumps(row))
    return path


def test_a_data_set_becomes_a_file_of_cases(tmp_path):
    out = tmp_path / "cases.jsonl"
    summary = import_file("gsm8k", gsm8k_file(tmp_path), out)
    assert (summary.n, summary.what, summary.counts) == (2, "cases", {"arithmetic": 2})
    assert [case.reference for case in read_cases(out)] == ["2", "2"]


def test_a_private_log_becomes_a_shape_or_cases(tmp_path):
    log = tmp_path / "log.jsonl"
    log.write_text(
        '{"time": 1, "prompt": "hush", "response": "yes, quite"}\n'
        '{"time": 3, "prompt": "hush hush", "response": "no"}\n'
    )
    shape = import_file("chat-log", log, tmp_path / "shape.jsonl")
    assert (shape.n, shape.what) == (2, "requests")
    cases = import_file(
        "trace", tmp_path / "shape.jsonl", tmp_path / "c.jsonl", synthesize_requests=1
    )
    assert (cases.n, cases.what) == (1, "cases")
    assert "hush" not in (tmp_path / "c.jsonl").read_text()


def test_results_are_written_with_their_definitions(tmp_path):
    out = tmp_path / "r.jsonl"
    source = data_file("client_results/vllm_bench_serve/vllm-ngram.json")
    summary = import_file("vllm-bench", source, out)
    (row,) = map(json.loads, out.read_text().splitlines())
    assert summary.n == 1
    assert {"vllm.itl", "vllm.tpot"} <= {m["definition_id"] for m in row["measured"]}


@pytest.mark.parametrize(
    ("kind", "out", "said"),
    [
        ("gsm8", "o.jsonl", "did you mean `gsm8k`"),
        ("gsm8k", "in.jsonl", "would overwrite"),
        ("gsm8k", "no/folder/o.jsonl", "cannot write"),
    ],
)
def test_what_cannot_be_imported_is_said_before_anything_is_lost(
    tmp_path, kind, out, said
):
    source = gsm8k_file(tmp_path)
    before = source.read_text()
    with pytest.raises(ConfigError, match=said):
        import_file(kind, source, tmp_path / out)
    assert source.read_text() == before


def test_two_logs_are_paired_and_a_small_sample_decides_nothing():
    folder = data_file(LM_EVAL)
    found = compare_files("lm-eval", folder / "baseline-q4_1", folder / "lossy-q2_k")
    decided = found.decided["contains"]
    assert decided.decision == "undecided"
    assert decided.n_needed > 1000


def test_a_sweep_in_one_file_is_compared_by_the_names_in_it():
    path = data_file("inference_perf_vllm_sweep/reports.jsonl")

    def route(name):
        return path.with_name(f"{path.name}::{name}")

    with pytest.raises(ConfigError, match="args.max_num_seqs`: 128 and 192"):
        compare_files("inference-perf", route("vllm"), route("vllm+batch_size"))
    with pytest.raises(ConfigError, match="no result `eagle` in it"):
        compare_files("inference-perf", route("vllm"), route("eagle"))


def test_only_results_can_be_compared_and_a_tolerance_is_a_share(tmp_path):
    with pytest.raises(ConfigError, match="holds no results"):
        compare_files("gsm8k", tmp_path, tmp_path)
    with pytest.raises(ConfigError, match="between 0 and 1"):
        compare_files("lm-eval", tmp_path, tmp_path, tolerance_share=2)


def test_the_command_lists_writes_and_compares(tmp_path):
    run = CliRunner().invoke
    listed = run(command, ["--json"])
    assert json.loads(listed.stdout) == kinds()
    source, out = gsm8k_file(tmp_path), tmp_path / "o.jsonl"
    written = run(command, ["gsm8k", str(source), "-o", str(out)])
    assert written.stdout.startswith("2 cases -> ")
    assert run(command, ["gsm8k", str(source)]).exit_code == 2
    assert run(command, ["gsm8k"]).exit_code == 2
    wrong = run(command, ["humaneval", str(source), "-o", str(out)])
    assert isinstance(wrong.exception, FormatError)
    folder = data_file(LM_EVAL)
    asked = ["lm-eval", str(folder / "lossy-q2_k"), "--against"]
    shown = run(command, [*asked, str(folder / "baseline-q4_1")])
    assert "3 worse, 2 better" in shown.stdout
    assert "nothing right here" in shown.stdout
    document = run(command, [*asked, str(folder / "baseline-q4_1"), "--json"])
    assert json.loads(document.stdout)["decided"]["contains"]["n"] == 24
