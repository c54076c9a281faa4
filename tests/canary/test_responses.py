"""Answers of ``/v1/responses`` are tasted: documented events, whole and streamed."""

import gzip
import json

import pytest
from canary_cases import a_gateway, ask, run
from fakes.openai_server import json_reply, stream_end, stream_head

from routeproof.canary.splitting.features import features_of, glance
from routeproof.canary.tasting.responses import as_chat, as_chat_request
from routeproof.canary.tasting.tee import Copy
from routeproof.engines.adapters import adapter
from routeproof.runs.capture import Capture

SCHEMA = {
    "type": "object",
    "properties": {"n": {"type": "integer"}},
    "required": ["n"],
    "additionalProperties": False,
}
USAGE = {
    "input_tokens": 12,
    "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
    "output_tokens": 5,
    "output_tokens_details": {"reasoning_tokens": 2},
    "total_tokens": 17,
}


def a_response(output=(), status="completed", **more):
    """A response object with the fields that every one has."""
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1_790_000_000,
        "status": status,
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "model": "m",
        "output": list(output),
        "parallel_tool_calls": True,
        "temperature": 0.0,
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "usage": USAGE,
        **more,
    }


def a_message(*content):
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": list(content),
    }


def text(said):
    return {"type": "output_text", "text": said, "annotations": [], "logprobs": []}


def a_call(arguments='{"n": 3}', name="count"):
    return {
        "id": "fc_1",
        "type": "function_call",
        "call_id": "call_1",
        "name": name,
        "arguments": arguments,
        "status": "completed",
    }


REASONING = {
    "id": "rs_1",
    "type": "reasoning",
    "summary": [],
    "content": [{"type": "reasoning_text", "text": "hm"}],
}
REFUSAL = {"type": "refusal", "refusal": "I cannot help with that."}


def numbered(*events):
    return [{**event, "sequence_number": i} for i, event in enumerate(events)]


def of_text(*deltas, end=None):
    """A streamed message as it is documented."""
    said = "".join(deltas)
    at = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
    opened = {**a_message(), "status": "in_progress"}
    final = end or a_response([a_message(text(said))])
    begun = a_response(status="in_progress", usage=None)
    return numbered(
        {"type": "response.created", "response": begun},
        {"type": "response.in_progress", "response": begun},
        {"type": "response.output_item.added", "output_index": 0, "item": opened},
        {"type": "response.content_part.added", "part": text(""), **at},
        *(
            {"type": "response.output_text.delta", "delta": d, "logprobs": [], **at}
            for d in deltas
        ),
        {"type": "response.output_text.done", "text": said, "logprobs": [], **at},
        {"type": "response.content_part.done", "part": text(said), **at},
        {
            "type": "response.output_item.done",
            "output_index": 0,
            "item": a_message(text(said)),
        },
        {"type": f"response.{final['status']}", "response": final},
    )


def of_call(*pieces, name="count"):
    """A streamed function call as it is documented."""
    at = {"item_id": "fc_1", "output_index": 0}
    whole = a_call("".join(pieces), name)
    opened = {**whole, "arguments": "", "status": "in_progress"}
    begun = a_response(status="in_progress", usage=None)
    return numbered(
        {"type": "response.created", "response": begun},
        {"type": "response.output_item.added", "output_index": 0, "item": opened},
        *(
            {"type": "response.function_call_arguments.delta", "delta": p, **at}
            for p in pieces
        ),
        {
            "type": "response.function_call_arguments.done",
            "arguments": whole["arguments"],
            "name": name,
            **at,
        },
        {"type": "response.output_item.done", "output_index": 0, "item": whole},
        {"type": "response.completed", "response": a_response([whole])},
    )


def sse(events):
    return [f"event: {e['type']}\ndata: {json.dumps(e)}\n\n".encode() for e in events]


def record_of(pieces, status=200, headers=()):
    """The record of one exchange of ``/v1/responses``."""
    copy = Copy("r", "canary", "whole", b"{}", None, print, path="/v1/responses")
    capture = copy.capture
    capture.status, capture.headers = status, list(headers)
    capture.pieces = list(pieces)
    capture.stamps = [capture.dispatched_ns + 1_000_000 * i for i in range(len(pieces))]
    capture.end_ns = capture.dispatched_ns + 1_000_000 * len(pieces)
    return copy.record(adapter("openai"), 0.0)


def whole(response):
    return record_of([json.dumps(response).encode()])


def test_the_events_used_here_are_those_of_the_official_client():
    pytest.importorskip("openai")
    from openai.types.responses import Response, ResponseStreamEvent
    from pydantic import TypeAdapter

    known = TypeAdapter(ResponseStreamEvent)
    for each in [*of_text("a", "b"), *of_call("{", "}")]:
        assert known.validate_python(each, strict=False).type == each["type"]
    Response.model_validate(a_response([a_message(text("x")), a_call(), REASONING]))


def test_text_usage_and_finish_reason_of_a_stream():
    record = record_of(sse(of_text("Hel", "lö ", "🙂")))
    assert record.answer.outcome == "completed"
    assert (record.answer.text, record.answer.finish_reason) == ("Hellö 🙂", "stop")
    assert record.usage.prompt_tokens == 12 and record.usage.output_tokens == 5
    assert record.usage.reasoning_tokens == 2 and record.usage.cached_tokens == 0


def test_every_chunk_keeps_the_time_of_its_own_read():
    record = record_of(sse(of_text("a", "b", "c")))
    assert [round(s * 1_000) for s in record.stream.chunk_s] == [4, 5, 6]


@pytest.mark.parametrize("size", [1, 7, 1_000_000])
def test_any_split_of_the_stream_reads_the_same(size):
    body = b"".join(sse(of_text("Hel", "lö")))
    pieces = [body[i : i + size] for i in range(0, len(body), size)]
    assert record_of(pieces).answer.text == "Hellö"


def test_a_packed_stream_is_unpacked_on_the_side():
    packed = gzip.compress(b"".join(sse(of_text("Hel", "lö"))))
    record = record_of(
        [packed[:20], packed[20:]], headers=[("content-encoding", "gzip")]
    )
    assert record.answer.text == "Hellö"


@pytest.mark.parametrize("is_streamed", [False, True])
def test_a_function_call_has_its_name_and_arguments(is_streamed):
    streamed = sse(of_call('{"n":', " 3}"))
    one = record_of(streamed) if is_streamed else whole(a_response([a_call()]))
    assert one.answer.finish_reason == "tool_calls"
    assert json.loads(one.answer.tool_calls) == [
        {"name": "count", "arguments": '{"n": 3}'}
    ]


def test_text_that_comes_only_at_the_end_is_read_once():
    sparse = [e for e in of_text("whole") if "delta" not in e["type"]]
    assert record_of(sse(sparse)).answer.text == "whole"
    only_end = [e for e in of_text("whole") if e["type"].endswith("completed")]
    assert record_of(sse(only_end)).answer.text == "whole"
    call = [e for e in of_call('{"n": 3}') if "arguments" not in e["type"]]
    assert '{\\"n\\": 3}' in record_of(sse(call)).answer.tool_calls


@pytest.mark.parametrize(
    ("reason", "outcome"),
    [("max_output_tokens", "truncated"), ("content_filter", "refused")],
)
@pytest.mark.parametrize("is_streamed", [False, True])
def test_an_incomplete_response_is_no_whole_answer(reason, outcome, is_streamed):
    end = a_response(
        [a_message(text("ab"))],
        "incomplete",
        incomplete_details={"reason": reason},
    )
    one = record_of(sse(of_text("a", "b", end=end))) if is_streamed else whole(end)
    assert one.answer.outcome == outcome


@pytest.mark.parametrize("is_streamed", [False, True])
def test_a_failed_response_is_an_error_in_its_own_words(is_streamed):
    error = {"code": "server_error", "message": "out of memory"}
    end = a_response([], "failed", error=error, usage=None)
    one = record_of(sse(of_text("a", end=end))) if is_streamed else whole(end)
    assert (one.answer.outcome, one.answer.error) == ("stream_error", "out of memory")


def test_an_error_event_and_a_stream_without_an_end_are_no_answers():
    begun = of_text("a")[:5]
    said = {"type": "error", "code": "x", "message": "boom", "param": None}
    record = record_of(sse([*begun, said]))
    assert (record.answer.outcome, record.answer.error) == ("stream_error", "boom")
    assert record_of(sse(begun)).answer.outcome == "cut_short"
    assert record_of(sse(begun[:1])).answer.outcome == "cut_short"
    ours = b'event: error\ndata: {"error": {"message": "broke off"}}\n\n'
    assert record_of([*sse(begun), ours]).answer.error == "broke off"


def test_a_refusal_and_reasoning_are_told_from_text():
    one = whole(a_response([REASONING, a_message(REFUSAL)]))
    assert one.answer.reasoning == "hm"
    assert one.answer.text == "I cannot help with that."


def test_a_tool_the_engine_runs_itself_is_no_empty_answer():
    search = {"id": "ws_1", "type": "web_search_call", "status": "completed"}
    assert whole(a_response([search])).answer.outcome == "completed"
    assert whole(a_response([])).answer.outcome == "empty"


@pytest.mark.parametrize(
    "body",
    [b"not json", b"[]", b'{"output": 3}', b"data: {\n\n", b"data: []\n\n", b""],
)
def test_rubbish_is_no_answer_and_breaks_nothing(body):
    assert record_of([body]).answer.outcome in ("invalid_response", "empty")


def test_an_error_status_keeps_its_words():
    record = record_of([b'{"error": {"message": "no"}}'], status=400)
    assert record.answer.outcome == "http_error" and "no" in record.answer.error
    capture = Capture(0, status=404)
    assert as_chat(capture) is capture


REQUEST = {
    "model": "m",
    "instructions": "Be short.",
    "input": [
        {"role": "user", "content": [{"type": "input_text", "text": "Count."}]},
        {"type": "function_call_output", "call_id": "c", "output": "3"},
        {"type": "reasoning", "summary": []},
    ],
    "text": {
        "format": {"type": "json_schema", "name": "n", "strict": True, "schema": SCHEMA}
    },
    "tools": [
        {"type": "web_search"},
        {"type": "function", "name": "count", "parameters": SCHEMA},
    ],
    "tool_choice": {"type": "function", "name": "count"},
    "max_output_tokens": 64,
}


def test_a_request_becomes_one_for_chat():
    found = as_chat_request(REQUEST)
    assert [m["role"] for m in found["messages"]] == ["system", "user", "tool"]
    assert found["response_format"]["json_schema"]["schema"] == SCHEMA
    assert [t["function"]["name"] for t in found["tools"]] == ["count"]
    assert found["tool_choice"]["function"] == {"name": "count"}
    assert found["max_tokens"] == 64
    assert as_chat_request({"input": "Hi"})["messages"][0]["content"] == "Hi"
    assert as_chat_request({"input": 3, "tools": "x", "text": []})["messages"] == []


def test_the_router_sees_structure_and_stored_state_in_a_request():
    asked = glance(json.dumps(REQUEST).encode())
    assert {"structured_output", "tools"} <= features_of(asked)
    plain = glance(b'{"input": "x", "text": {"format": {"type": "text"}}}')
    assert features_of(plain) == frozenset()
    kept = glance(b'{"input": "x", "previous_response_id": "resp_1"}')
    assert features_of(kept) == {"stored_state"}


@pytest.mark.slow
def test_answers_of_both_kinds_are_tasted_and_a_broken_candidate_is_seen(tmp_path):
    more = "  steps: [0.5]\n"
    good, bad = '{"n": 1}', '{"n": "one"}'

    def serve(said):
        def script(seen):
            if seen.json.get("stream"):
                return [
                    *stream_head(),
                    *(
                        f"{len(e):x}\r\n".encode() + e + b"\r\n"
                        for e in sse(of_text(said))
                    ),
                    *stream_end()[-1:],
                ]
            return json_reply(a_response([a_message(text(said))]))

        return script

    async def go():
        async with a_gateway(
            tmp_path, trusted=serve(good), fast=serve(bad), more=more
        ) as stand:
            stand.gateway.command("start", actor="test")
            for i in range(24):
                body = {**REQUEST, "tools": [], "user": f"u{i}", "stream": i % 2 == 0}
                if i >= 20:
                    body["previous_response_id"] = "resp_0"
                await ask(stand.url, json.dumps(body).encode(), path="/v1/responses")
            stand.gateway.taster.stop()
            return stand.gateway.taster.spool.latest()

    samples = run(go())
    assert len(samples) == 20, "what leans on stored state is not tasted"
    assert {s.stratum for s in samples} == {"stream", "whole"}
    for sample in samples:
        assert sample.record.answer.outcome == "completed"
        assert sample.signals["invalid_structure"] is (sample.arm == "canary")
        assert sample.prompt is None and "Count." not in str(sample)
        assert sample.record.usage.output_tokens == 5
