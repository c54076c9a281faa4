"""``routeproof load`` and ``routeproof worker`` as a person types them."""

import json
import os
import signal
import subprocess
import sys

import pytest
from click.testing import CliRunner
from fakes.openai_server import chat_stream, json_reply, serving_in_thread

from routeproof.cli import load, worker
from routeproof.errors import ConfigError

MODELS = {"object": "list", "data": [{"id": "m", "object": "model"}]}


def script(seen):
    if seen.method == "GET":
        known = seen.path.endswith("/models")
        return json_reply(MODELS) if known else json_reply({}, 404)
    return chat_stream(["a", "b"])


def typed(command, *arguments):
    return CliRunner().invoke(command, list(arguments), catch_exceptions=True)


def test_json_is_one_document_on_stdout_and_progress_is_elsewhere(tmp_path):
    with serving_in_thread(script) as server:
        result = typed(
            load.command,
            *(server.url, "--requests", "5", "--no-self-test", "--json"),
            *("--out", str(tmp_path / "run")),
        )
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["outcomes"] == {"completed": 5}
    assert (tmp_path / "run" / "report.html").exists()


@pytest.mark.slow
def test_the_table_says_what_was_measured_and_where_the_page_is(tmp_path):
    with serving_in_thread(script) as server:
        result = typed(
            load.command,
            *(server.url, "--concurrency", "1", "--concurrency", "2"),
            *("--requests", "6", "--no-self-test", "--out", str(tmp_path / "run")),
        )
    for words in ("c1: 6 requests, 6 completed", "c2: 6", "steady window", "page"):
        assert words in result.output
    assert "client  valid" in result.output or "NOT VALID" in result.output


@pytest.mark.slow
def test_every_flag_of_the_load_is_taken(tmp_path):
    with serving_in_thread(script) as server:
        result = typed(
            load.command,
            *(server.url, "--model", "m", "--request-rate", "200"),
            *("--arrivals", "gamma", "--burstiness", "0.5", "--requests", "8"),
            *("--max-tokens", "5", "--prompt", "hello", "--warmup", "1"),
            *("--slo", "time_to_first_token_s=9", "--header", "X-Team=eval"),
            *("--max-failure-share", "0.5", "--timeout", "5", "--seed", "3"),
            *("--no-self-test", "--json", "--out", str(tmp_path / "run")),
        )
        bodies = [seen for seen in server.seen if seen.method == "POST"]
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["requests"] == 8
    assert len(bodies) == 9
    assert {seen.headers["x-team"] for seen in bodies} == {"eval"}
    assert {seen.json["max_tokens"] for seen in bodies} == {5}
    assert {seen.json["messages"][0]["content"] for seen in bodies} == {"hello"}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--slo", "time_to_first_token_s"], "no value"),
        (["--slo", "time_to_first_token_s=soon"], "no number"),
        (["--slo", "time_to_first_token_s=-1"], "positive"),
        (["--slo", "speed=1"], "no time of a request"),
        (["--header", "X-Team"], "no value"),
        (["--duration", "0"], "positive"),
        (["--duration", "nan"], "positive"),
        (["--request-rate", "-3"], "positive"),
        (["--timeout", "0"], "positive"),
        (["--max-failure-share", "2"], "0 to 1"),
        (["--on", "somewhere"], "no Ray cluster"),
        (["--trace", "t", "--concurrency", "2"], "a load of|has its own load"),
        (["--prompt", "p", "--cases", "golden"], "prompts already"),
        (["--request-rate", "3", "--burstiness", "2"], "no burstiness to choose"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_sent(tmp_path, arguments, words):
    out = ["--out", str(tmp_path / "run")]
    result = typed(load.command, "http://127.0.0.1:9/v1", *arguments, *out)
    assert isinstance(result.exception, ConfigError)
    assert any(each in str(result.exception) for each in words.split("|"))
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("name", ["--concurrency", "--requests", "--shards"])
def test_a_count_below_one_is_refused(name):
    assert typed(load.command, "http://h/v1", name, "0").exit_code == 2


@pytest.mark.slow
def test_a_prepared_plan_is_sent_and_collected(tmp_path):
    path = str(tmp_path / "run")
    with serving_in_thread(script) as server:
        prepared = typed(
            load.command, *(server.url, "--requests", "6", "--prepare", "--out", path)
        )
        assert f"worker {path} --shard i/1" in prepared.output
        sent = typed(worker.command, path)
        assert sent.exit_code == 0, sent.output
        collected = typed(worker.command, path, "--collect", "1", "--json")
    assert json.loads(collected.stdout)["outcomes"] == {"completed": 6}


@pytest.mark.slow
def test_ctrl_c_shows_what_had_finished(tmp_path):
    counted = []

    def slow(seen):
        counted.append(seen.method)
        if seen.method == "POST" and counted.count("POST") == 40:
            os.kill(process.pid, signal.SIGINT)
        return (
            chat_stream(["a"], wait_s=0.002) if seen.method == "POST" else script(seen)
        )

    with serving_in_thread(slow) as server:
        command = [sys.executable, "-m", "routeproof", "load", server.url]
        command += ["--requests", "5000", "--no-self-test", "--json"]
        process = subprocess.Popen(
            [*command, "--out", str(tmp_path / "run")],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        out, err = process.communicate(timeout=60)
    assert process.returncode == load.INTERRUPTED, err
    assert 20 < json.loads(out)["requests"] <= 40
    assert b"interrupted" in err
    assert b"Traceback" not in err


def modules_after(statement):
    """What a fresh process has imported by then."""
    code = f"import sys; {statement}; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    return set(done.stdout.split())


def test_nothing_that_is_for_afterwards_is_imported_before_the_first_request():
    loaded = modules_after("import routeproof.cli.listening, routeproof.jobs.load")
    assert "routeproof.runs.client" in loaded
    assert not loaded & {"scipy", "altair", "jinja2", "routeproof.jobs.qualify"}


def test_numpy_is_not_imported_before_its_threads_can_be_forbidden():
    assert "numpy" not in modules_after("import routeproof.cli.load")
    assert "numpy" not in modules_after("import routeproof.cli.worker")
