"""Every kind of stream that engines, proxies and networks really send.

One truth for all: the role at 50 ms, the first token at 200 ms, 32 tokens 20 ms
apart, the last at 820 ms. Each row must give these numbers or a named failure. The
rows are those in which the usual load generators differ from each other.
"""

import gzip
import json
import zlib

import pytest
from fakes.openai_server import delta, usage
from run_cases import captured, record_of

TOKENS = [f"w{i} " for i in range(32)]
TOKEN_MS = [200 + 20 * i for i in range(32)]
TEXT = "".join(TOKENS)


def event(body, end=b"\n\n", field=b"data: "):
    text = body if isinstance(body, str) else json.dumps(body, ensure_ascii=False)
    return field + text.encode() + end


def usual(*, field=b"data: ", end=b"\n\n", before=b"", role=True, counts=True):
    """(ms, bytes) of the plain stream, with another way to write its events."""
    reads = (
        [(50, before + event(delta("", role="assistant"), end, field))] if role else []
    )
    for ms, token in zip(TOKEN_MS, TOKENS, strict=True):
        reads.append((ms, before + event(delta(token), end, field)))
    reads.append((820, before + event(delta(finish="stop"), end, field)))
    if counts:
        reads.append((820, before + event(usage(output=32), end, field)))
    return [*reads, (820, event("[DONE]", end, field))]


def assert_true_numbers(record, *, text=TEXT):
    assert record.answer.outcome == "completed"
    assert record.answer.text == text
    assert len(record.stream.chunk_s) == 32
    assert record.stream.chunk_s[0] == pytest.approx(0.200)
    assert record.stream.chunk_s[-1] == pytest.approx(0.820)
    assert record.stream.first_visible_s == pytest.approx(0.200)


@pytest.mark.parametrize(
    "reads",
    [
        usual(),
        usual(role=False),
        usual(field=b"data:"),
        usual(end=b"\r\n\r\n"),
        usual(end=b"\r\r"),
        usual(before=b"event: message\n"),
        usual(before=b"id: 5\nretry: 100\n"),
        usual(before=b": ping\n\n"),
        [(10, b": ping\n\n"), *usual()],
        [(10, b"\xef\xbb\xbf"), *usual()],
        usual()[:-1],
        [*usual()[:-1], (820, b"data: [DONE]")],
    ],
    ids=[
        "plain",
        "no role chunk",
        "data without space",
        "CRLF",
        "CR",
        "event line",
        "id and retry",
        "comments",
        "comment first",
        "byte order mark",
        "no DONE",
        "no blank line at the end",
    ],
)
def test_the_same_numbers_however_the_stream_is_written(reads):
    record = record_of(captured(reads))
    assert_true_numbers(record)
    assert record.usage.output_tokens == 32
    assert record.usage.prompt_tokens == 5
    assert record.stream.coalesced_reads == 0


def test_four_tokens_per_chunk_are_told_from_four_chunks():
    reads = [
        (
            200 + 20 * i,
            event({**delta("a b c d "), "usage": {"completion_tokens": 4 * i + 4}}),
        )
        for i in range(8)
    ]
    record = record_of(captured([*reads, (340, event(delta(finish="stop")))]))
    assert record.stream.chunk_tokens == (4,) * 8
    assert len(record.stream.chunk_s) == 8


def test_tokens_per_chunk_are_unknown_when_the_server_does_not_tell():
    record = record_of(captured(usual()))
    assert record.stream.chunk_tokens is None


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning"])
def test_reasoning_counts_as_tokens_and_is_not_visible(name):
    reads = []
    for number, (ms, token) in enumerate(zip(TOKEN_MS, TOKENS, strict=True)):
        body = delta(**{name: token}) if number < 16 else delta(token)
        reads.append((ms, event(body)))
    record = record_of(captured([*reads, (820, event(delta(finish="stop")))]))
    assert len(record.stream.chunk_s) == 32
    assert record.stream.chunk_s[0] == pytest.approx(0.200)
    assert record.stream.first_visible_s == pytest.approx(0.520)
    assert record.answer.reasoning == "".join(TOKENS[:16])
    assert record.answer.text == "".join(TOKENS[16:])


def test_an_answer_of_reasoning_only_is_an_answer():
    reads = [(ms, event(delta(reasoning_content="hm "))) for ms in TOKEN_MS]
    record = record_of(captured([*reads, (820, event(delta(finish="stop")))]))
    assert record.answer.outcome == "completed"
    assert (record.answer.text, record.answer.reasoning) == (None, "hm " * 32)
    assert record.stream.chunk_s[0] == pytest.approx(0.200)
    assert record.stream.first_visible_s is None


def test_tool_calls_are_put_together_and_time_the_first_token():
    def call(index, **function):
        return delta(tool_calls=[{"index": index, "function": function}])

    reads = [
        (200, event(call(0, name="find", arguments=""))),
        (220, event(call(0, arguments='{"city": '))),
        (240, event(call(0, arguments='"Zürich"}'))),
        (260, event(call(1, name="wait", arguments="{}"))),
        (280, event(delta(finish="tool_calls"))),
    ]
    record = record_of(captured(reads))
    assert record.answer.outcome == "completed"
    assert json.loads(record.answer.tool_calls) == [
        {"name": "find", "arguments": '{"city": "Zürich"}'},
        {"name": "wait", "arguments": "{}"},
    ]
    assert record.stream.first_visible_s == pytest.approx(0.200)
    assert len(record.stream.chunk_s) == 4


def test_the_legacy_function_call_is_a_tool_call():
    reads = [
        (200, event(delta(function_call={"name": "find", "arguments": ""}))),
        (220, event(delta(function_call={"arguments": "{}"}))),
        (240, event(delta(finish="function_call"))),
    ]
    record = record_of(captured(reads))
    assert json.loads(record.answer.tool_calls) == [{"name": "find", "arguments": "{}"}]


@pytest.mark.parametrize("odd", ["\u2028", "\u0085", "\u2029", "\x0b", "\x0c", "\x1c"])
def test_only_cr_and_lf_end_a_line(odd):
    body = json.dumps(delta(f"a{odd}b"), ensure_ascii=False)
    raw = f"data: {body}\n\n".encode()
    reads = [(200, raw), (220, event(delta(finish="stop")))]
    record = record_of(captured(reads))
    assert record.answer.outcome == "completed"
    assert record.answer.text == f"a{odd}b"


def test_characters_may_be_split_anywhere():
    whole = b"".join(event(delta(t)) for t in ("東京", "🙂", "é")) + event(
        delta(finish="stop")
    )
    reads = [(200 + i, whole[i : i + 1]) for i in range(len(whole))]
    record = record_of(captured(reads))
    assert record.answer.text == "東京🙂é"
    assert len(set(record.stream.chunk_s)) == 3


def test_a_character_sent_as_two_half_escapes_is_one_character():
    raw = r'data: {"choices":[{"index":0,"delta":{"content":"%s"}}]}'
    halves = [(raw % half + "\n\n").encode() for half in (r"\ud83d", r"\ude42")]
    reads = [(200, halves[0]), (220, halves[1]), (240, event(delta(finish="stop")))]
    assert record_of(captured(reads)).answer.text == "🙂"
    alone = [(200, halves[0]), (240, event(delta(finish="stop")))]
    assert record_of(captured(alone)).answer.text == "\ufffd"


def test_two_events_in_one_read_share_its_stamp_and_are_counted():
    pairs = [
        (TOKEN_MS[i], event(delta(TOKENS[i])) + event(delta(TOKENS[i + 1])))
        for i in range(0, 32, 2)
    ]
    record = record_of(captured([*pairs, (820, event(delta(finish="stop")))]))
    assert record.stream.coalesced_reads == 16
    assert len(record.stream.chunk_s) == 32


def test_usage_may_be_absent():
    record = record_of(captured(usual(counts=False)))
    assert_true_numbers(record)
    assert record.usage.output_tokens is None


@pytest.mark.parametrize("where", [0, 5, 33])
def test_usage_may_be_on_any_chunk(where):
    reads = usual(counts=False)
    ms, _ = reads[where]
    body = json.loads(reads[where][1][6:])
    body["usage"] = {
        "prompt_tokens": 9,
        "completion_tokens": 32,
        "prompt_tokens_details": {"cached_tokens": 4},
        "completion_tokens_details": {"reasoning_tokens": 3},
    }
    reads[where] = (ms, event(body))
    record = record_of(captured(reads))
    assert_true_numbers(record)
    assert record.usage.output_tokens == 32
    assert (record.usage.cached_tokens, record.usage.reasoning_tokens) == (4, 3)


@pytest.mark.parametrize(
    "counts", [{"completion_tokens": "many"}, {"completion_tokens": -1}, []]
)
def test_nonsense_in_usage_is_unknown_and_never_zero(counts):
    reads = [
        (200, event(delta("a"))),
        (220, event({**delta(finish="stop"), "usage": counts})),
    ]
    record = record_of(captured(reads))
    assert record.answer.outcome == "completed"
    assert record.usage.output_tokens is None


def test_late_usage_and_late_done_do_not_move_the_last_token():
    reads = usual()[:-2]
    reads += [(1320, event(usage(output=32))), (1820, event("[DONE]"))]
    record = record_of(captured(reads))
    assert_true_numbers(record)
    assert record.clock.end_s == pytest.approx(1.820)


def test_empty_chunks_before_the_first_token_are_no_tokens():
    reads = [(60, event(delta(""))), (70, event(delta())), (80, event(usage(output=0)))]
    record = record_of(captured([*reads, *usual(role=False)]))
    assert_true_numbers(record)


def test_a_token_without_text_counts_when_its_id_is_told():
    def with_ids(text, ids):
        body = delta(text)
        body["choices"][0]["token_ids"] = ids
        return body

    reads = [
        (200, event(with_ids("", [11]))),
        (220, event(with_ids("é", [12, 13]))),
        (240, event(delta(finish="stop"))),
    ]
    record = record_of(captured(reads))
    assert record.stream.chunk_s == pytest.approx((0.200, 0.220))
    assert record.stream.chunk_tokens == (1, 2)
    assert record.answer.token_ids == (11, 12, 13)
    assert record.stream.first_visible_s == pytest.approx(0.220)


def test_log_probabilities_are_kept_and_count_tokens():
    body = delta("ab")
    top = [{"token": "a", "logprob": -0.1}, {"token": "x", "logprob": -2.5}]
    rows = [{"token": "a", "logprob": -0.1, "top_logprobs": top}]
    body["choices"][0]["logprobs"] = {"content": rows * 2}
    reads = [(200, event(body)), (220, event(delta(finish="stop")))]
    record = record_of(captured(reads))
    assert record.stream.chunk_tokens == (2,)
    assert json.loads(record.answer.logprobs)[0] == [
        "a",
        -0.1,
        [["a", -0.1], ["x", -2.5]],
    ]


def test_several_choices_are_kept_apart():
    reads = [
        (200, event(delta("a", index=0))),
        (205, event(delta("b", index=1))),
        (220, event(delta("A", index=0, finish="stop"))),
        (230, event(delta("B", index=1, finish="stop"))),
    ]
    record = record_of(captured(reads))
    assert record.answer.outcome == "completed"
    assert record.answer.text == "aA"
    assert json.loads(record.answer.choices) == ["aA", "bB"]


def test_a_choice_that_never_finishes_is_cut_short():
    reads = [
        (200, event(delta("a", index=0, finish="stop"))),
        (205, event(delta("b", index=1))),
        (220, event("[DONE]")),
    ]
    assert record_of(captured(reads)).answer.outcome == "cut_short"


def test_the_completions_endpoint_streams_text():
    def piece(text, finish=None):
        return {"choices": [{"index": 0, "text": text, "finish_reason": finish}]}

    reads = [(ms, event(piece(t))) for ms, t in zip(TOKEN_MS, TOKENS, strict=True)]
    record = record_of(captured([*reads, (820, event(piece("", "stop")))]))
    assert_true_numbers(record)


def whole(message, finish="stop"):
    choice = {"index": 0, "message": message, "finish_reason": finish}
    counts = {"prompt_tokens": 3, "completion_tokens": 2}
    return json.dumps({"choices": [choice], "usage": counts}).encode()


def test_a_response_that_is_not_streamed_has_no_first_token_time():
    record = record_of(captured([(900, whole({"content": "yes"}))]))
    assert (record.answer.outcome, record.answer.text) == ("completed", "yes")
    assert record.stream.chunk_s == ()
    assert record.stream.first_visible_s is None
    assert record.usage.output_tokens == 2


# -- failures: each has a name, none is a fast success ---------------------------------


def ended(reads, **options):
    record = record_of(captured(reads, **options))
    return record.answer.outcome, record.answer.error or ""


def test_a_reset_in_the_middle_is_cut_short():
    failure = ("cut_short", "Connection reset by peer")
    assert ended(usual()[:17], failure=failure) == failure
    half_an_event = [*usual()[:17], (600, b'data: {"choices": [{"ind')]
    assert ended(half_an_event, failure=failure) == failure


def test_a_quiet_end_without_finish_reason_is_cut_short():
    outcome, words = ended(usual()[:17])
    assert outcome == "cut_short"
    assert "without a finish reason" in words
    assert ended([*usual()[:17], (600, event("[DONE]"))])[0] == "cut_short"


def test_a_finished_answer_stays_whole_when_the_socket_dies_afterwards():
    record = record_of(captured(usual()[:-2], failure=("cut_short", "reset")))
    assert_true_numbers(record)
    assert record.answer.error == "reset"


@pytest.mark.parametrize("at", [0, 1, 17, 34])
@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (
            event({"error": {"message": "CUDA out of memory", "code": 500}}),
            "CUDA out of memory",
        ),
        (event({"error": "engine died"}), "engine died"),
        (event({"object": "error", "message": "engine died"}), "engine died"),
        (b"event: error\n" + event({"detail": "engine died"}), "engine died"),
        (b"event: error\n" + event("engine died"), "engine died"),
    ],
    ids=["object", "string", "old object", "named event", "named text"],
)
def test_an_error_event_is_a_failure_wherever_it_comes(at, raw, words):
    reads = usual()
    reads.insert(at, (reads[at][0], raw))
    assert ended(reads) == ("stream_error", words)


def test_status_200_with_an_error_body_is_a_failure():
    body = json.dumps({"error": {"message": "model not loaded"}}).encode()
    assert ended([(50, body)]) == ("stream_error", "model not loaded")


@pytest.mark.parametrize("reason", ["abort", "error"])
def test_an_engine_that_aborts_has_not_answered(reason):
    reads = [(200, event(delta("a"))), (220, event(delta(finish=reason)))]
    assert ended(reads)[0] == "stream_error"


@pytest.mark.parametrize(
    "reads",
    [
        [],
        [(50, event("[DONE]"))],
        [(50, b": ping\n\n")],
        [(50, event(usage(output=0)))],
    ],
    ids=["nothing", "only DONE", "only a comment", "only usage"],
)
def test_a_stream_without_a_chunk_is_empty(reads):
    assert ended(reads)[0] == "empty"


def test_a_finish_reason_without_any_token_is_empty():
    reads = [
        (50, event(delta("", role="assistant"))),
        (60, event(delta(finish="stop"))),
    ]
    assert ended(reads)[0] == "empty"


def test_max_tokens_is_truncated_and_the_content_filter_a_refusal():
    for reason, outcome in (("length", "truncated"), ("content_filter", "refused")):
        reads = [(200, event(delta("a"))), (220, event(delta(finish=reason)))]
        assert ended(reads)[0] == outcome


def test_an_error_status_brings_the_servers_words():
    body = json.dumps({"error": {"message": "key expired", "type": "auth"}}).encode()
    outcome, words = ended([(50, body)], status=401)
    assert outcome == "http_error"
    assert "401" in words and "key expired" in words


def test_too_many_requests_says_when_to_come_back():
    outcome, words = ended(
        [(9, b"slow down")], status=429, headers=[("retry-after", "7")]
    )
    assert outcome == "http_error"
    assert "Retry-After: 7" in words and "slow down" in words


def test_a_page_of_html_is_not_an_answer():
    page = b"<html><head><style>x{}</style></head><body><h1>502 Bad Gateway</h1></body>"
    outcome, words = ended([(50, page)])
    assert outcome == "invalid_response"
    assert "502 Bad Gateway" in words and "<h1>" not in words
    outcome, words = ended([(50, page)], status=502)
    assert outcome == "http_error"
    assert "502 Bad Gateway" in words


def test_a_redirect_is_named_and_not_followed():
    outcome, words = ended([], status=307, headers=[("location", "https://other/v1")])
    assert outcome == "invalid_response"
    assert "https://other/v1" in words


@pytest.mark.parametrize(
    "raw",
    [
        b"data: {broken\n\n",
        b"data: [1, 2]\n\n",
        b'data: {"choices": [5]}\n\n',
        b'data: {"choices": 5}\n\n',
        b'data: {"choices": [{"delta": [1]}]}\n\n',
        b"data: " + b"[" * 100_000 + b"\n\n",
    ],
    ids=["broken", "list", "number", "no list", "delta list", "deep"],
)
@pytest.mark.parametrize("at", [0, 17, 34])
def test_an_event_that_cannot_be_read_is_an_invalid_response(at, raw):
    reads = usual()
    reads.insert(at, (reads[at][0], raw))
    assert ended(reads)[0] == "invalid_response"


@pytest.mark.parametrize(
    "raw", [b'{"choices": [', b"[]", b"{}", b'"text"', b"\x00\xff"]
)
def test_a_body_of_the_wrong_shape_is_an_invalid_response(raw):
    assert ended([(50, raw)])[0] in ("invalid_response", "empty")
    assert ended([(50, raw)])[0] != "completed"


def test_a_deadline_is_a_timeout_even_after_many_tokens():
    failure = ("timeout", "not finished within 120 s")
    assert ended(usual()[:17], failure=failure) == failure


@pytest.mark.parametrize("literal", ["NaN", "Infinity", "-Infinity"])
def test_numbers_that_json_lacks_do_not_spoil_an_answer(literal):
    raw = f'data: {{"x": {literal}, "choices": [{{"delta": {{"content": "a"}}}}]}}\n\n'
    reads = [(200, raw.encode()), (220, event(delta(finish="stop")))]
    assert ended(reads)[0] == "completed"


def test_bytes_that_are_not_utf8_are_shown_and_kept_countable():
    raw = b'data: {"choices": [{"delta": {"content": "a\xff"}}]}\n\n'
    record = record_of(captured([(200, raw), (220, event(delta(finish="stop")))]))
    assert record.answer.text == "a\ufffd"


# -- compression -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("coding", "window_bits"), [("gzip", 31), ("deflate", 15), ("x-gzip", 31)]
)
def test_a_packed_stream_keeps_its_times(coding, window_bits):
    pack = zlib.compressobj(wbits=window_bits)
    reads = [
        (ms, pack.compress(data) + pack.flush(zlib.Z_SYNC_FLUSH))
        for ms, data in usual()
    ]
    reads.append((830, pack.flush()))
    record = record_of(captured(reads, headers=[("content-encoding", coding)]))
    assert_true_numbers(record)


@pytest.mark.parametrize(
    ("coding", "body", "words"),
    [
        ("br", b"\x0b\x02", "packed with `br`"),
        ("gzip", b"not gzip at all", "damaged"),
        ("gzip", gzip.compress(bytes(80 << 20)), "unpacks to over"),
    ],
    ids=["unknown coding", "not gzip", "bomb"],
)
def test_a_body_that_cannot_be_unpacked_is_an_invalid_response(coding, body, words):
    outcome, error = ended([(50, body)], headers=[("content-encoding", coding)])
    assert outcome == "invalid_response"
    assert words in error
