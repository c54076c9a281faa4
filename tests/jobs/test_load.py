"""``load``: what it reports when the server misbehaves, and when it does not."""

import itertools
import json
import os
import signal
import threading

import msgspec
import numpy as np
import pytest
from fakes.openai_server import (
    chat_stream,
    chunk,
    delta,
    event,
    json_reply,
    serving_in_thread,
    stream_end,
    stream_head,
)

from routeproof.errors import ConfigError, MeasurementError, StoredRunError
from routeproof.jobs.load import LoadOptions, collect, load, prepare
from routeproof.jobs.loading.page import write_page
from routeproof.jobs.loading.summary import summary
from routeproof.metrics.windows import MOST_POINTS, flying
from routeproof.proof.workload import ArrivalSpec
from routeproof.records.store import RunFolder
from routeproof.runs.worker import carry_out

MODELS = {"object": "list", "data": [{"id": "m", "object": "model"}]}
NAMES = {
    "time_to_first_token_s",
    "time_to_first_visible_token_s",
    "time_per_output_token_s",
    "chunk_gap_s",
    "tokens_per_chunk",
    "request_latency_s",
    "output_token_throughput_per_s",
    "goodput_per_s",
}


def answers(stream, *, owned_by=None):
    """A server that names its model and answers every chat with ``stream``."""

    def script(seen):
        if seen.method == "GET":
            models = json.loads(json.dumps(MODELS))
            if owned_by:
                models["data"][0]["owned_by"] = owned_by
            known = seen.path.endswith("/models")
            return json_reply(models) if known else json_reply({}, 404)
        return stream(seen) if callable(stream) else stream

    return script


def options(n=30, *, levels=(2,), **given):
    arrivals = ArrivalSpec(
        **{"concurrency": levels, "requests": n, **given.pop("arrivals", {})}
    )
    return LoadOptions(
        **{"arrivals": arrivals, "warmup": 0, "is_tested": False, **given}
    )


def loaded(tmp_path, script, given):
    """The document of a run against a server with this script."""
    with serving_in_thread(script) as server:
        found = load(server.url, tmp_path / "run", given)
    return summary(found.run), found


def test_the_document_has_the_agreed_shape_and_nothing_else(tmp_path):
    found, _ = loaded(tmp_path, answers(chat_stream(["a", "b"])), options())
    assert set(found) == {"requests", "outcomes", "metrics", "client"}
    assert set(found["metrics"]) == NAMES
    for row in found["metrics"].values():
        assert set(row) == {"p50", "p95", "p99", "mean", "n"}
    assert set(found["client"]) == {"valid", "reasons"}
    assert json.loads(json.dumps(found, allow_nan=False)) == found


@pytest.mark.slow
def test_several_levels_are_told_apart(tmp_path):
    given = options(n=10, levels=(1, 3))
    found, _ = loaded(tmp_path, answers(chat_stream(["a"])), given)
    assert found["requests"] == 20
    assert {level: part["requests"] for level, part in found["levels"].items()} == {
        "c1": 10,
        "c3": 10,
    }
    assert found["metrics"]["output_token_throughput_per_s"]["mean"] is None


@pytest.mark.slow
def test_a_good_server_is_all_completed_and_inside_a_wide_slo(tmp_path):
    given = options(slo={"time_to_first_token_s": 30.0})
    found, _ = loaded(tmp_path, answers(chat_stream(["a", "b"])), given)
    assert found["requests"] == 30
    assert found["outcomes"] == {"completed": 30}
    metrics = found["metrics"]
    assert metrics["goodput_per_s"]["mean"] > 0
    assert metrics["request_latency_s"]["p50"] > 0
    assert metrics["request_latency_s"]["p99"] is None
    assert metrics["chunk_gap_s"]["n"] == 30


@pytest.mark.slow
def test_every_gap_counts_not_a_mean_per_request(tmp_path):
    script = answers(lambda seen: _with_a_stall())
    found, _ = loaded(tmp_path, script, options(n=4, levels=(1,)))
    gaps = found["metrics"]["chunk_gap_s"]
    assert gaps["n"] == 4 * 9
    assert gaps["p99"] > 0.02 > gaps["mean"] > gaps["p50"]


def _with_a_stall():
    steps = [*stream_head()]
    for number in range(10):
        steps += [0.03 if number == 5 else 0.001, event(delta("x"))]
    return [*steps, event(delta(finish="stop")), *stream_end()]


@pytest.mark.slow
def test_what_was_cut_by_its_own_limit_is_complete(tmp_path):
    cut = chat_stream(["a"], finish="length")
    found, done = loaded(tmp_path, answers(cut), options(n=8))
    assert found["outcomes"] == {"completed": 8}
    assert (
        "truncated" not in done.page.read_text().split("<body>")[1].split("<script")[0]
    )
    found, _ = loaded(tmp_path / "2", answers(cut), options(n=8, max_tokens=None))
    assert found["outcomes"] == {"completed": 0, "truncated": 8}


@pytest.mark.slow
def test_failures_stay_in_the_count_and_push_percentiles_to_the_unknown(tmp_path):
    stream = chat_stream(["a"])
    turns = itertools.cycle([stream, json_reply({}, 500)])
    found, _ = loaded(tmp_path, answers(lambda seen: next(turns)), options(n=80))
    assert found["outcomes"] == {"completed": 40, "http_error": 40}
    assert found["requests"] == 80
    latency = found["metrics"]["request_latency_s"]
    assert latency["n"] == 80 and latency["p95"] is None


@pytest.mark.slow
def test_goodput_without_an_slo_is_unknown_rather_than_zero(tmp_path):
    found, _ = loaded(tmp_path, answers(chat_stream(["a"])), options(n=8))
    assert found["metrics"]["goodput_per_s"]["mean"] is None


@pytest.mark.slow
def test_tokens_are_unknown_where_the_server_does_not_count(tmp_path):
    script = answers(chat_stream(["a", "b"], with_usage=False))
    found, _ = loaded(tmp_path, script, options(n=8))
    for name in ("tokens_per_chunk", "output_token_throughput_per_s"):
        assert found["metrics"][name]["mean"] is None


def test_an_slo_on_an_unknown_metric_is_an_error(tmp_path):
    with pytest.raises(ConfigError, match="no time of a request"):
        load("http://127.0.0.1:9/v1", tmp_path / "r", options(slo={"speed": 1.0}))


@pytest.mark.slow
def test_one_arm_is_not_cut_into_blocks(tmp_path):
    _, found = loaded(tmp_path, answers(chat_stream(["a"])), options(n=60))
    assert set(found.run.requests.number("block").values) == {1.0}


@pytest.mark.slow
def test_a_field_that_the_engine_refuses_is_left_out(tmp_path):
    def fussy(seen):
        if "return_spec_tokens_details" in seen.json:
            return json_reply({"error": "unknown field"}, 400)
        return chat_stream(["a"])

    asked = []

    def script(seen):
        if seen.method == "POST":
            asked.append(seen.json)
        return answers(fussy, owned_by="sglang")(seen)

    found, done = loaded(tmp_path, script, options(n=6))
    assert done.run.manifest.engines["baseline"]["name"] == "sglang"
    assert found["outcomes"] == {"completed": 6}
    assert sum("return_spec_tokens_details" in body for body in asked) == 1


@pytest.mark.slow
def test_a_run_that_fails_too_often_stops_and_keeps_what_it_has(tmp_path):
    script = answers(json_reply({"error": "key expired"}, 401))
    given = options(n=400, levels=(1,), max_failure_share=0.1)
    with (
        serving_in_thread(script) as server,
        pytest.raises(MeasurementError, match="key expired") as caught,
    ):
        load(server.url, tmp_path / "run", given)
    assert "--max-failure-share" in caught.value.hint
    page = (tmp_path / "run" / "report.html").read_text()
    assert "http error" in page and "no: it was ended early" in page


def test_a_key_that_expires_in_the_middle_is_counted_and_the_run_goes_on(tmp_path):
    asked = itertools.count(1)

    def expiring(seen):
        if next(asked) > 30:
            return json_reply({"error": {"message": "key expired"}}, 401)
        return chat_stream(["a"])

    found, done = loaded(tmp_path, answers(expiring), options(n=50, levels=(1,)))
    assert found["outcomes"] == {"completed": 30, "http_error": 20}
    parts = list(RunFolder.open(tmp_path / "run").parts())
    words = {w for part in parts for w in part.text("error") if w}
    assert words == {"status 401: key expired"}


@pytest.mark.slow
def test_an_engine_that_is_away_for_a_while_does_not_end_the_run(tmp_path):
    asked = itertools.count(1)

    def busy(seen):
        if 10 < next(asked) <= 20:
            return json_reply({"error": "loading"}, 503, retry_after="1")
        return chat_stream(["a"])

    given = options(n=60, levels=(1,), max_failure_share=0.6)
    found, _ = loaded(tmp_path, answers(busy), given)
    assert found["outcomes"] == {"completed": 50, "http_error": 10}


@pytest.mark.slow
def test_a_resumed_load_sends_what_is_missing_and_nothing_else(tmp_path):
    countdown = itertools.count(-30)

    def script(seen):
        if next(countdown) == 0:
            os.kill(os.getpid(), signal.SIGINT)
        return answers(chat_stream(["a"], wait_s=0.001))(seen)

    with serving_in_thread(script) as server:
        first = load(server.url, tmp_path / "run", options(n=60))
        before = len(server.seen)
        again = load(server.url, tmp_path / "run", options(n=60, resume=True))
        sent = sum(s.method == "POST" for s in server.seen[before:])
        with pytest.raises(StoredRunError, match="another load"):
            load(server.url, tmp_path / "run", options(n=61, resume=True))
    assert first.is_interrupted and not again.is_interrupted
    assert sent == 60 - first.run.requests.n
    assert summary(again.run)["outcomes"] == {"completed": 60}
    assert again.run.manifest.finished


# -- the page --------------------------------------------------------------------------


@pytest.mark.slow
def test_the_page_stands_alone_and_shows_what_was_measured(tmp_path):
    given = options(n=100, slo={"time_to_first_token_s": 30.0})
    _, found = loaded(tmp_path, answers(chat_stream(["a", "b"])), given)
    page = found.page.read_text()
    assert found.page == tmp_path / "run" / "report.html"
    for words in (
        "default-src",
        "Time to first token",
        "Percentiles of request latency",
        "Requests under way",
        "steady window",
        "loop_lag_p99_s",
        "needs 368 samples",
    ):
        assert words in page, words
    assert 'src="http' not in page and 'href="http' not in page


def test_what_a_server_says_is_shown_and_not_run(tmp_path):
    evil = {"object": "list", "data": [{"id": "<script>m", "object": "model"}]}

    def script(seen):
        return json_reply(evil if seen.method == "GET" else {"error": "no"})

    _, found = loaded(tmp_path, script, options(n=3))
    page = found.page.read_text()
    assert "<script>m" not in page and "&lt;script&gt;m" in page


@pytest.mark.slow
def test_an_invalid_run_says_so_on_top(tmp_path):
    script = answers(chat_stream(["a"]))
    _, found = loaded(tmp_path, script, options(n=30))
    manifest = found.run.manifest
    bad = msgspec.structs.replace(
        manifest.health, valid=False, reasons=("the client was too slow",)
    )
    folder = RunFolder.open(tmp_path / "run")
    folder.write_manifest(msgspec.structs.replace(manifest, health=bad))
    assert "NOT VALID: the client was too slow." in write_page(folder).read_text()


# -- several ways to send --------------------------------------------------------------


@pytest.mark.slow
def test_a_trace_brings_its_own_lengths(tmp_path):
    trace = tmp_path / "trace.csv"
    trace.write_text(
        "TIMESTAMP,ContextTokens,GeneratedTokens\n"
        "2024-05-10 00:00:00.000000,12,7\n"
        "2024-05-10 00:00:00.010000,40,3\n"
    )
    asked = []

    def script(seen):
        if seen.method == "POST":
            asked.append(seen.json)
        return answers(chat_stream(["a"]))(seen)

    given = options(arrivals={"concurrency": (), "trace": str(trace), "requests": None})
    found, _ = loaded(tmp_path, script, given)
    assert found["requests"] == 2
    lengths = [
        (len(body["messages"][0]["content"].split()), body["max_tokens"])
        for body in sorted(asked, key=lambda body: -body["max_tokens"])
    ]
    assert lengths == [(12, 7), (40, 3)]


@pytest.mark.slow
def test_a_conversation_is_sent_turn_by_turn(tmp_path):
    cases = tmp_path / "cases.jsonl"
    rows = [
        {
            "id": f"{who}{turn}",
            "class": "chat",
            "cluster": who,
            "messages": [{"role": "user", "content": f"{who}{turn}"}],
        }
        for turn in range(3)
        for who in "ab"
    ]
    cases.write_text("\n".join(map(json.dumps, rows)))
    asked = []

    def script(seen):
        if seen.method == "POST":
            asked.append(seen.json["messages"][0]["content"])
        return answers(chat_stream(["a"]))(seen)

    given = options(
        cases=(str(cases),),
        arrivals={"concurrency": (1,), "requests": None, "think_s": 0.001},
    )
    found, _ = loaded(tmp_path, script, given)
    assert found["requests"] == 6
    assert asked == ["a0", "a1", "a2", "b0", "b1", "b2"]


@pytest.mark.slow
def test_a_prepared_plan_is_sent_by_workers_and_collected(tmp_path):
    path = tmp_path / "run"
    with serving_in_thread(answers(chat_stream(["a"]))) as server:
        assert prepare(server.url, path, options(n=12, shards=2)) == path
        before = len(server.seen)
        carry_out_both(path)
        assert sum(s.method == "POST" for s in server.seen[before:]) == 12
    found = collect(path, 2)
    assert summary(found.run)["outcomes"] == {"completed": 12}
    assert found.run.manifest.finished
    assert found.run.manifest.health.valid


def carry_out_both(path):
    """Both shards at once: they wait for each other before each block."""
    one = threading.Thread(target=carry_out, args=(path, "1/2"))
    one.start()
    carry_out(path, "0/2")
    one.join()


@pytest.mark.slow
def test_a_worker_that_wrote_nothing_makes_the_run_invalid(tmp_path):
    path = tmp_path / "run"
    with serving_in_thread(answers(chat_stream(["a"]))) as server:
        prepare(server.url, path, options(n=12, levels=(1,)))
        carry_out(path, "0/1")
    found = summary(collect(path, 2).run)
    assert not found["client"]["valid"]
    assert any("shard_1_alive" in reason for reason in found["client"]["reasons"])


@pytest.mark.slow
def test_an_interrupt_shows_what_had_finished(tmp_path):
    countdown = itertools.count(-30)

    def script(seen):
        if next(countdown) == 0:
            os.kill(os.getpid(), signal.SIGINT)
        return answers(chat_stream(["a"], wait_s=0.001))(seen)

    found, done = loaded(tmp_path, script, options(n=5000))
    assert done.is_interrupted
    assert 20 < found["requests"] < 100
    assert found["outcomes"] == {"completed": found["requests"]}
    assert not done.run.manifest.finished


def test_the_course_of_requests_under_way_is_counted():
    course = flying(np.array([0.0, 1.0, 1.0]), np.array([2.0, 3.0, 2.5]))
    assert course == ((0.0, 1), (1.0, 3), (2.0, 2), (2.5, 1), (3.0, 0))
    many = flying(np.arange(1000.0), np.arange(1000.0) + 0.5)
    assert len(many) == MOST_POINTS


@pytest.mark.slow
def test_an_endpoint_that_streams_nothing_for_ever_does_not_hold_the_run(tmp_path):
    forever = [*stream_head(), *([0.01, chunk(b": wait\n\n")] * 100_000)]
    given = options(n=2, timeout_s=0.05)
    found, _ = loaded(tmp_path, answers(forever), given)
    assert found["outcomes"] == {"completed": 0, "timeout": 2}
