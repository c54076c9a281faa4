"""Bad input: each is one readable error with the right exit code, never a traceback."""

import contextlib
import json
import sys

import pytest
from fakes.openai_server import CLOSE, head, json_reply, serving_in_thread

from routeproof.cli.app import main

ROUTES = """\
baseline: {{endpoint: "{url}", model: m, weights: bf16, kv_cache: bf16}}
candidate: {{like: baseline, endpoint: "{url}", changes: []}}
"""
CASE = {
    "id": "a",
    "class": "c",
    "messages": [{"role": "user", "content": "?"}],
    "reference": "x",
}
NOWHERE = "http://127.0.0.1:9/v1"


@pytest.fixture
def said(monkeypatch, capsys):
    """Run the command line; (exit code, stdout, stderr)."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["routeproof", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capsys.readouterr()
        assert "Traceback" not in out + err
        assert "internal error" not in err, err
        return ended.value.code, out, err

    return run


def a_file(tmp_path, text, name="proof.yaml"):
    path = tmp_path / name
    path.write_text(text)
    return path


def a_proof(tmp_path, more="", url=NOWHERE):
    return a_file(tmp_path, ROUTES.format(url=url) + more)


FILES = {
    "empty": ("", "empty"),
    "only a comment": ("# nothing\n", "empty"),
    "not YAML": ("a: [1, 2\n", "line"),
    "a tab": ("a:\n\tb: 1\n", "tab"),
    "a list": ("- 1\n- 2\n", "mapping"),
    "a duplicate key": (
        ROUTES.format(url=NOWHERE) + "policy: {alpha: 0.1, alpha: 0.2}\n",
        "alpha",
    ),
    "nothing of a proof": ("x: 1\n", "x"),
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_is_no_proof_is_refused(tmp_path, said, name):
    text, word = FILES[name]
    code, _, err = said("qualify", a_file(tmp_path, text))
    assert code == 2 and "proof.yaml" in err and word in err.lower()


VALUES = {
    "an unknown key": ("polcy: {alpha: 0.1}", "policy"),
    "an unknown key deep down": (
        "workload: {sampling: {temprature: 0}}",
        "temperature",
    ),
    "a wrong type": ("workload: {trials: many}", "workload.trials"),
    "a tolerance that is NaN": (
        "quality: [{metric: headline, tolerance: .nan}]",
        "quality[0].tolerance",
    ),
    "a negative tolerance": (
        "quality: [{metric: headline, tolerance: -0.1}]",
        "quality[0].tolerance",
    ),
    "alpha above one half": ("policy: {alpha: 0.7}", "policy.alpha"),
    "one trial at a temperature": (
        "workload: {sampling: {temperature: 0.7}}",
        "trials",
    ),
    "perplexity alone": (
        "quality: [{metric: perplexity, tolerance: 0.1}]",
        "perplexity",
    ),
    "an infinite limit": (
        "performance: {slo: {request_latency_s: {p95: .inf}}}",
        "slo",
    ),
    "a percentile that is none": (
        "performance: {slo: {request_latency_s: {q95: 1}}}",
        "q95",
    ),
    "no cases there": ("workload: {cases: [nothing/*.jsonl]}", "nothing"),
    "a metric no case has": (
        "quality: [{metric: exact_mach, tolerance: 0.1}]",
        "exact_match",
    ),
    "a class no case has": (
        "quality: [{metric: headline, tolerance: 0.1, slice: {class: poetry}}]",
        "poetry",
    ),
}


@pytest.mark.parametrize("name", VALUES)
def test_a_wrong_value_is_named_with_its_place(tmp_path, said, name):
    more, word = VALUES[name]
    code, _, err = said("qualify", a_proof(tmp_path, more + "\n"))
    assert code == 2 and word in err
    assert "hint:" in err or "must be" in err


CASES = {
    "broken JSON": ('{"id": "a"', "line 1"),
    "no class": (json.dumps({"id": "a", "messages": []}), "class"),
    "an id twice": (f"{json.dumps(CASE)}\n{json.dumps(CASE)}", "line 2"),
    "an unknown scorer": (
        json.dumps({**CASE, "scorers": ["exact_mach"]}),
        "exact_match",
    ),
    "nothing": ("", "no case"),
}


@pytest.mark.parametrize("name", CASES)
def test_broken_cases_are_named_with_their_line(tmp_path, said, name):
    text, word = CASES[name]
    a_file(tmp_path, text + "\n", "cases.jsonl")
    proof = a_proof(tmp_path, "workload: {cases: [cases.jsonl]}\n")
    code, _, err = said("qualify", proof)
    assert code == 2 and word in err


def test_an_endpoint_that_refuses_is_named(tmp_path, said):
    code, _, err = said("qualify", a_proof(tmp_path), "--out", tmp_path / "run")
    assert code == 2 and NOWHERE in err and "baseline" in err


MODELS = json_reply({"object": "list", "data": [{"id": "m"}, {"id": "other"}]})
SERVERS = {
    "wants a key": (json_reply({"error": {"message": "no key"}}, 401), "api_key_env"),
    "is no API": (
        [head(content_type="text/html", content_length=6) + b"<html>"],
        "HTML",
    ),
    "closes at once": ([CLOSE], "closed"),
    "has another model": (
        json_reply({"object": "list", "data": [{"id": "mm"}]}),
        "`model: mm`",
    ),
    "answers with rubbish": ([b"\x00\x01\x02 rubbish\r\n\r\n"], "HTTP"),
}


@pytest.mark.parametrize("name", SERVERS)
def test_an_endpoint_that_is_not_what_was_meant_is_named(tmp_path, said, name):
    script, word = SERVERS[name]
    with serving_in_thread(script) as server:
        proof = a_proof(tmp_path, url=server.url)
        code, _, err = said("qualify", proof, "--out", tmp_path / "run")
    assert code == 2 and word in err, err


def launched(tmp_path, *command):
    words = json.dumps(list(command))
    return a_file(
        tmp_path,
        f"baseline: {{model: m, launch: {{command: {words}, ready_timeout_s: 5}}}}\n"
        "candidate: {like: baseline, changes: []}\n",
    )


@pytest.mark.slow
def test_an_engine_that_dies_at_start_shows_its_last_words(tmp_path, said):
    code = "import sys; print('out of memory, sorry'); sys.exit(3)"
    proof = launched(tmp_path, sys.executable, "-c", code, "--port", "{port}")
    exit_code, _, err = said("qualify", proof, "--out", tmp_path / "run")
    assert exit_code == 3 and "out of memory, sorry" in err


def test_a_program_that_is_not_there_is_named(tmp_path, said):
    proof = launched(tmp_path, "no-such-engine", "--port", "{port}")
    code, _, err = said("qualify", proof, "--out", tmp_path / "run")
    assert code == 2 and "no-such-engine" in err


def test_a_taken_port_is_named(tmp_path, said):
    with serving_in_thread(MODELS) as server:
        proof = launched(tmp_path, "engine", "--port", str(server.port))
        code, _, err = said("qualify", proof, "--out", tmp_path / "run")
    assert code == 2 and str(server.port) in err and "{port}" in err


def test_a_missing_file_a_folder_and_a_missing_key_are_named(
    tmp_path, said, monkeypatch
):
    code, _, err = said("qualify", tmp_path / "none.yaml")
    assert code == 2 and "none.yaml" in err
    code, _, err = said("qualify", tmp_path)
    assert code == 2
    monkeypatch.delenv("ROUTEPROOF_TEST_KEY", raising=False)
    text = ROUTES.format(url=NOWHERE).replace(
        "kv_cache: bf16}", "kv_cache: bf16, auth: {api_key_env: ROUTEPROOF_TEST_KEY}}"
    )
    code, _, err = said("qualify", a_file(tmp_path, text))
    assert code == 2 and "ROUTEPROOF_TEST_KEY" in err


def test_folders_that_cannot_be_used_are_named(tmp_path, said):
    with serving_in_thread(MODELS) as server:
        proof = a_proof(tmp_path, url=server.url)
        code, _, err = said("qualify", proof, "--out", "/proc/run")
        assert code == 3 and "/proc/run" in err
        (tmp_path / "full").mkdir()
        (tmp_path / "full" / "manifest.json").write_text("{}")
        code, _, err = said("qualify", proof, "--out", tmp_path / "full")
        assert code == 3 and "--resume" in err
        code, _, err = said("qualify", proof, "--resume", tmp_path / "nothing")
        assert code == 3 and "run folder" in err


@pytest.mark.parametrize(
    "arguments",
    [
        ["nonsense"],
        ["demo", "nonsense"],
        ["qualify"],
        ["qualify", "p.yaml", "--require", "perfect"],
        ["judge", "/nowhere"],
        ["report", "/nowhere"],
        ["show", "/nowhere", "--case", "x"],
        ["load", "not a url"],
        ["probe", "ftp://host/v1"],
        ["canary", "check", "/nowhere.yaml"],
        ["diff", "/nowhere.yaml"],
        ["plan", "/nowhere.yaml"],
    ],
    ids=" ".join,
)
def test_wrong_use_is_one_sentence_and_never_a_success(said, arguments):
    code, _, err = said(*arguments)
    assert code in (2, 3) and err.strip()


@pytest.mark.slow
def test_a_full_disk_stops_the_run_with_a_sentence(tmp_path, said):
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    with serving_in_thread(MODELS) as server, contextlib.ExitStack() as stack:
        proof = a_proof(tmp_path, url=server.url)
        stack.callback(resource.setrlimit, resource.RLIMIT_FSIZE, (soft, hard))
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
        code, _, err = said("qualify", proof, "--out", tmp_path / "run")
    assert code == 3 and err.strip()
