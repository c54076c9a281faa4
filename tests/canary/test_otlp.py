"""OTLP to a collector that answers as it likes: names, shapes, losses, no text."""

import json

import pytest
from canary_cases import a_gateway, ask, run
from fakes.openai_server import head, json_reply, serving_in_thread
from tasting_cases import a_copy, a_taster, streamed, taste_all

from routeproof.canary.otlp.exporter import MODELS_MAX, WAITING_MAX, Exporter
from routeproof.canary.otlp.names import VARIABLE, convention_of
from routeproof.canary.otlp.wire import Histogram, destination_of
from routeproof.errors import ConfigError

GIVEN = {
    arm: {
        "routeproof.route": "fast",
        "routeproof.arm": arm,
        "gen_ai.provider.name": "vllm",
        "server.address": "127.0.0.1",
        "server.port": 8000,
    }
    for arm in ("canary", "control")
}
TAKEN = json_reply({})


def an_exporter(url, convention="current", **environ):
    destination = destination_of({"OTEL_EXPORTER_OTLP_ENDPOINT": url, **environ})
    return Exporter(destination, convention, GIVEN)


def exported(tmp_path, *copies, reply=TAKEN, convention="current", **environ):
    """Bodies by path of what a collector got, and the exporter."""
    with serving_in_thread(reply) as server:
        exporter = an_exporter(server.url.removesuffix("/v1"), convention, **environ)
        taster = a_taster(tmp_path, on_tasted=[exporter.take])
        taste_all(taster, *copies)
        exporter.export()
    return {s.path: s.json for s in server.seen}, exporter, server


def plain(found):
    """Attributes on the wire as a mapping."""
    values = {}
    for each in found:
        ((kind, value),) = each["value"].items()
        if kind == "arrayValue":
            value = [next(iter(v.values())) for v in value["values"]]
        values[each["key"]] = int(value) if kind == "intValue" else value
    return values


def spans(bodies):
    return bodies["/v1/traces"]["resourceSpans"][0]["scopeSpans"][0]["spans"]


def metrics(bodies):
    scope = bodies["/v1/metrics"]["resourceMetrics"][0]["scopeMetrics"][0]
    return {m["name"]: m for m in scope["metrics"]}


def logs(bodies):
    return bodies["/v1/logs"]["resourceLogs"][0]["scopeLogs"][0]["logRecords"]


def test_a_tasted_answer_is_a_span_with_the_current_names(tmp_path):
    copy = a_copy(request={"temperature": 0.5, "seed": 7, "max_tokens": 9})
    bodies, exporter, _ = exported(tmp_path, copy)
    (span,) = spans(bodies)
    found = plain(span["attributes"])
    assert (span["name"], span["kind"], span["status"]) == ("chat m", 3, {})
    assert len(span["traceId"]) == 32 and len(span["spanId"]) == 16
    assert int(span["endTimeUnixNano"]) >= int(span["startTimeUnixNano"]) > 10**18
    assert found["gen_ai.operation.name"] == "chat"
    assert found["gen_ai.provider.name"] == "vllm"
    assert found["gen_ai.response.id"] == "chatcmpl-r1"
    assert found["gen_ai.response.finish_reasons"] == ["stop"]
    assert found["gen_ai.request.temperature"] == 0.5
    assert (found["gen_ai.request.seed"], found["gen_ai.request.max_tokens"]) == (7, 9)
    assert found["gen_ai.usage.input_tokens"] == 7
    assert found["routeproof.arm"] == "canary"
    assert "gen_ai.system" not in found and "error.type" not in found
    assert exporter.sent["traces"] == 1


def test_an_answer_that_failed_says_so_and_has_no_token_counts(tmp_path):
    copy = a_copy(status=500)
    bodies, _, _ = exported(tmp_path, copy)
    (span,) = spans(bodies)
    found = plain(span["attributes"])
    assert span["status"] == {"code": 2}
    assert found["error.type"] == "500"
    assert found["gen_ai.response.finish_reasons"] == ["error"]
    named = metrics(bodies)
    assert "gen_ai.client.inference.operation.input_tokens" not in named
    point = named["gen_ai.client.inference.duration"]["histogram"]["dataPoints"][0]
    assert plain(point["attributes"])["error.type"] == "500"


def test_a_stream_cut_short_ends_in_error(tmp_path):
    whole = streamed(["Par", "is"])
    copy = a_copy(raw_answer=whole[: len(whole) // 3], stratum="stream",
                  outcome="cut_short")  # fmt: skip
    copy.capture.headers[:] = [("content-type", "text/event-stream")]
    bodies, _, _ = exported(tmp_path, copy)
    found = plain(spans(bodies)[0]["attributes"])
    assert found["gen_ai.response.finish_reasons"] == ["error"]
    assert found["error.type"] == "cut_short"


CURRENT = {
    "gen_ai.client.inference.duration",
    "gen_ai.client.inference.operation.input_tokens",
    "gen_ai.client.inference.operation.output_tokens",
    "gen_ai.client.inference.usage.input_tokens",
    "gen_ai.client.inference.usage.output_tokens",
    "gen_ai.server.request.duration",
}
LEGACY = {
    "gen_ai.client.operation.duration",
    "gen_ai.client.token.usage",
    "gen_ai.server.request.duration",
}


@pytest.mark.parametrize(
    ("convention", "names", "provider"),
    [
        ("current", CURRENT, {"gen_ai.provider.name"}),
        ("legacy", LEGACY, {"gen_ai.system"}),
        ("both", CURRENT | LEGACY, {"gen_ai.provider.name", "gen_ai.system"}),
    ],
)
def test_a_switch_chooses_the_names(tmp_path, convention, names, provider):
    bodies, _, _ = exported(tmp_path, a_copy(), convention=convention)
    assert set(metrics(bodies)) == names
    found = plain(spans(bodies)[0]["attributes"])
    assert {n for n in found if n in ("gen_ai.system", "gen_ai.provider.name")} == (
        provider
    )


def test_legacy_token_usage_tells_the_kinds_apart_by_an_attribute(tmp_path):
    bodies, _, _ = exported(tmp_path, a_copy(), convention="legacy")
    rows = [
        m
        for m in bodies["/v1/metrics"]["resourceMetrics"][0]["scopeMetrics"][0][
            "metrics"
        ]
        if m["name"] == "gen_ai.client.token.usage"
    ]
    kinds = {
        plain(point["attributes"])["gen_ai.token.type"]: point["sum"]
        for row in rows
        for point in row["histogram"]["dataPoints"]
    }
    assert kinds == {"input": 7.0, "output": 3.0}


@pytest.mark.parametrize(
    ("given", "convention"),
    [
        ("", "current"),
        ("gen_ai_latest_experimental", "current"),
        ("http/dup, gen_ai/legacy", "legacy"),
        ("gen_ai/dup", "both"),
        ("database", "current"),
    ],
)
def test_the_switch_is_the_usual_variable(given, convention):
    assert convention_of({VARIABLE: given}) == convention


@pytest.mark.parametrize("given", ["gen_ai/new", "gen_ai/dup,gen_ai/legacy"])
def test_a_switch_nobody_knows_is_refused(given):
    with pytest.raises(ConfigError):
        convention_of({VARIABLE: given})


def test_each_signal_is_an_evaluation_of_the_span_it_belongs_to(tmp_path):
    bodies, _, _ = exported(tmp_path, a_copy(""))
    (span,) = spans(bodies)
    found = {plain(r["attributes"])["gen_ai.evaluation.name"]: r for r in logs(bodies)}
    assert {r["eventName"] for r in found.values()} == {"gen_ai.evaluation.result"}
    assert {r["spanId"] for r in found.values()} == {span["spanId"]}
    empty = plain(found["empty"]["attributes"])
    assert empty["gen_ai.evaluation.score.label"] == "bad"
    assert empty["gen_ai.evaluation.score.value"] == 0.0
    assert "refusal" not in found  # nothing was said, so nothing was judged


TRACE = "00-" + "ab" * 16 + "-" + "cd" * 8


def test_a_callers_trace_is_gone_on_with_and_its_wish_for_none_is_kept(tmp_path):
    wanted = a_copy(request_id="wanted-one", trace=f"{TRACE}-01")
    spared = a_copy(request_id="spared-one", trace=f"{TRACE}-00")
    odd = a_copy(request_id="odd-one", trace="00-zz")
    bodies, _, _ = exported(tmp_path, wanted, spared, odd)
    one, other = spans(bodies)
    assert (one["traceId"], one["parentSpanId"]) == ("ab" * 16, "cd" * 8)
    assert "parentSpanId" not in other


def test_no_text_of_prompt_or_answer_leaves(tmp_path):
    request = {
        "messages": [{"role": "user", "content": "the plum tree"}],
        "tools": [{"type": "function", "function": {"name": "plum_tool"}}],
    }
    _, _, server = exported(tmp_path, a_copy("a quiet mill", request=request))
    everything = b"".join(s.body for s in server.seen)
    assert b"plum" not in everything and b"mill" not in everything


def test_callers_cannot_make_up_series_without_end(tmp_path):
    copies = [
        a_copy(request_id=f"request-{i}", request={"model": f"model-{i}" + "x" * 500})
        for i in range(3 * MODELS_MAX)
    ]
    bodies, _, _ = exported(tmp_path, *copies)
    duration = metrics(bodies)["gen_ai.client.inference.duration"]["histogram"]
    models = [
        plain(p["attributes"])["gen_ai.request.model"] for p in duration["dataPoints"]
    ]
    assert len(models) == MODELS_MAX + 1 and "_OTHER" in models
    assert max(map(len, models)) == 128


def test_buckets_hold_every_value_once_and_bounds_belong_below():
    histogram = Histogram((1.0, 2.0), "s")
    for value in (0.5, 1.0, 1.5, 9.0):
        histogram.add(value, {"a": 1})
    point = histogram.data("n", 0, 1)["histogram"]["dataPoints"][0]
    assert point["bucketCounts"] == ["2", "1", "1"]
    assert (point["count"], point["sum"]) == ("4", 12.0)
    assert (point["min"], point["max"]) == (0.5, 9.0)


@pytest.mark.parametrize("status", [429, 503])
def test_what_a_busy_collector_did_not_take_is_sent_again(tmp_path, status):
    answers = iter([head(status, content_length=0)] * 2)

    def reply(seen):
        first = next(answers, None)
        return TAKEN if first is None else [first]

    with serving_in_thread(reply) as server:
        exporter = an_exporter(server.url.removesuffix("/v1"))
        taste_all(a_taster(tmp_path, on_tasted=[exporter.take]), a_copy())
        exporter.export(with_metrics=False)
        assert exporter.sent.total() == 0 and exporter.lost.total() == 0
        assert str(status) in exporter.last_error
        exporter.export(with_metrics=False)
    assert exporter.sent["traces"] == 1 and exporter.last_error is None


def test_what_a_collector_refuses_is_lost_and_counted(tmp_path):
    refused = [head(400, content_length=0)]
    _, exporter, _ = exported(tmp_path, a_copy(), reply=refused)
    assert exporter.lost["traces"] == 1 and exporter.sent.total() == 0
    partial = json_reply({"partialSuccess": {"rejectedSpans": "1"}})
    _, exporter, _ = exported(tmp_path, a_copy(request_id="r2"), reply=partial)
    assert exporter.lost["traces"] == 1


def test_a_collector_that_is_gone_costs_only_rows(tmp_path):
    exporter = an_exporter("http://127.0.0.1:9")
    taster = a_taster(tmp_path, on_tasted=[exporter.take])
    taste_all(taster, a_copy())
    copy, sample = a_copy(), taster.spool.latest()[0]
    for _ in range(WAITING_MAX + 10):
        exporter.take(sample, copy)
    exporter.export()
    exporter.export()
    assert taster.last_error is None
    assert exporter.lost["traces"] == 11 and exporter.sent.total() == 0


@pytest.mark.parametrize(
    ("environ", "paths"),
    [
        ({}, {}),
        ({"OTEL_SDK_DISABLED": "true", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://c"}, {}),
        (
            {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318/"},
            {k: f"http://c:4318/v1/{k}" for k in ("traces", "metrics", "logs")},
        ),
        (
            {
                "OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318",
                "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://t/x",
                "OTEL_LOGS_EXPORTER": "none",
            },
            {"traces": "http://t/x", "metrics": "http://c:4318/v1/metrics"},
        ),
    ],
)
def test_the_usual_variables_say_where(environ, paths):
    found = destination_of(environ)
    urls = {} if found is None else {k: e.url for k, e in found.endpoints.items()}
    assert urls == paths


def test_headers_and_resource_come_from_the_usual_variables():
    found = destination_of(
        {
            "OTEL_EXPORTER_OTLP_ENDPOINT": "http://c",
            "OTEL_EXPORTER_OTLP_HEADERS": "api-key=a%20b, x=1",
            "OTEL_RESOURCE_ATTRIBUTES": "service.name=old,team=llm",
            "OTEL_SERVICE_NAME": "gateway",
            "OTEL_METRIC_EXPORT_INTERVAL": "2500",
        }
    )
    assert found.endpoints["traces"].headers == {"api-key": "a b", "x": "1"}
    assert found.resource == {"service.name": "gateway", "team": "llm"}
    assert found.metrics_every_s == 2.5


@pytest.mark.parametrize(
    "environ",
    [
        {"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"},
        {"OTEL_EXPORTER_OTLP_TIMEOUT": "soon"},
        {"OTEL_EXPORTER_OTLP_ENDPOINT": "collector:4317"},
    ],
)
def test_variables_that_make_no_sense_are_refused(environ):
    with pytest.raises(ConfigError):
        destination_of({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c", **environ})


@pytest.mark.slow
def test_a_serving_gateway_sends_its_own_metrics_too(tmp_path):
    answer = json_reply({"id": "c", "choices": [{"message": {"content": "x"}}]})

    async def go(url):
        async with a_gateway(
            tmp_path,
            trusted=answer,
            fast=answer,
            more="  steps: [0.5]\n",
            environ={
                "OTEL_EXPORTER_OTLP_ENDPOINT": url,
                "OTEL_METRIC_EXPORT_INTERVAL": "100",
                "OTEL_BSP_SCHEDULE_DELAY": "100",
            },
        ) as stand:
            stand.gateway.command("start", actor="test")
            for i in range(8):
                body = json.dumps({"messages": [], "user": f"secret-user-{i}"})
                await ask(stand.url, body.encode())

    with serving_in_thread(TAKEN) as server:
        run(go(server.url.removesuffix("/v1")))
    last = [s.json for s in server.seen if s.path == "/v1/metrics"][-1]
    named = metrics({"/v1/metrics": last})
    counted = named["routeproof.requests"]["sum"]
    assert sum(p["asDouble"] for p in counted["dataPoints"]) == 8
    assert counted["isMonotonic"] and counted["aggregationTemporality"] == 2
    weight = named["routeproof.canary_weight"]["gauge"]["dataPoints"][0]
    assert weight["asDouble"] == 0.5
    assert b"secret-user" not in b"".join(s.body for s in server.seen)
