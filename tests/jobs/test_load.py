"""The load command's summary: what is unknown is null, failures stay in."""

import json

import pytest
from click.testing import CliRunner
from fakes.openai_server import chat_stream, json_reply, serving_in_thread

from routeproof.cli.load import command
from routeproof.errors import ConfigError
from routeproof.jobs.load import LoadOptions, load
from routeproof.proof.workload import ArrivalSpec

MODELS = json_reply({"object": "list", "data": [{"id": "m"}]})


def answers(stream):
    def script(seen):
        if seen.method == "GET":
            return MODELS if seen.path.endswith("/models") else json_reply({}, 404)
        return stream(seen) if callable(stream) else stream

    return script


def options(n=30, **given):
    arrivals = ArrivalSpec(concurrency=(2,), requests=n)
    return LoadOptions(arrivals=arrivals, warmup=0, is_tested=False, **given)


def test_a_good_server_is_all_completed_and_inside_a_wide_slo(tmp_path):
    slo = {"time_to_first_token_s": 30.0}
    with serving_in_thread(answers(chat_stream(["a", "b"]))) as server:
        found = load(server.url, tmp_path / "run", options(slo=slo))
    assert found["requests"] == 30
    assert found["outcomes"] == {"completed": 30}
    metrics = found["metrics"]
    assert metrics["goodput_per_s"]["mean"] == pytest.approx(
        metrics["request_throughput_per_s"]["mean"]
    )
    assert metrics["request_latency_s"]["p50"] > 0
    assert metrics["request_latency_s"]["p99"] is None


def test_failures_stay_in_the_count_and_push_percentiles_to_the_unknown(tmp_path):
    stream = chat_stream(["a"])
    half = answers(lambda seen: stream if seen.number % 2 else json_reply({}, 500))
    with serving_in_thread(half) as server:
        found = load(server.url, tmp_path / "run", options(n=80))
    assert found["requests"] == 80
    assert found["outcomes"]["http_error"] > 30
    latency = found["metrics"]["request_latency_s"]
    assert latency["n"] == 80 and latency["p95"] is None


def test_goodput_without_an_slo_is_unknown_rather_than_zero(tmp_path):
    with serving_in_thread(answers(chat_stream(["a"]))) as server:
        found = load(server.url, tmp_path / "run", options(n=8))
    assert found["metrics"]["goodput_per_s"]["mean"] is None


def test_an_slo_on_an_unknown_metric_is_an_error(tmp_path):
    with pytest.raises(ConfigError, match="no time of a request"):
        load("http://127.0.0.1:9/v1", tmp_path / "r", options(slo={"speed": 1.0}))


def test_the_command_prints_one_document(tmp_path):
    with serving_in_thread(answers(chat_stream(["a"]))) as server:
        result = CliRunner().invoke(
            command,
            [server.url, "--requests", "5", "--no-self-test", "--json"]
            + ["--out", str(tmp_path / "run")],
        )
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert {"requests", "outcomes", "metrics", "client"} <= set(found)
    assert set(found["metrics"]["chunk_gap_s"]) == {"p50", "p95", "p99", "mean", "n"}
