"""The short way to read a stream gives what the general way gives."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from run_cases import captured, record_of

names = st.sampled_from(
    ["content", "reasoning_content", "reasoning", "refusal", "role"]
)
deltas = st.dictionaries(names, st.one_of(st.none(), st.text(max_size=4)), max_size=3)
choices = st.fixed_dictionaries(
    {},
    optional={
        "index": st.one_of(st.none(), st.integers(0, 2)),
        "delta": st.one_of(st.none(), deltas),
        "finish_reason": st.sampled_from([None, "stop", "length", "abort"]),
        "token_ids": st.one_of(st.none(), st.lists(st.integers(0, 9), max_size=2)),
        "logprobs": st.none(),
        "text": st.text(max_size=3),
    },
)
usages = st.one_of(
    st.none(), st.fixed_dictionaries({"completion_tokens": st.integers(0, 9)})
)
payloads = st.one_of(
    st.fixed_dictionaries(
        {"choices": st.lists(choices, max_size=2)}, optional={"usage": usages}
    ).map(json.dumps),
    st.fixed_dictionaries({"choices": st.lists(choices, min_size=1, max_size=1)}).map(
        lambda body: json.dumps(body, ensure_ascii=False)
    ),
    st.sampled_from(
        [
            "[DONE]",
            "{",
            "}",
            "1,2",
            '{"choices": [',
            "]}",
            '{"error": {"message": "no"}}',
            '{"choices": "x"}',
            "",
        ]
    ),
)
plain = st.text(min_size=1, max_size=5).map(
    lambda text: json.dumps({"choices": [{"index": 0, "delta": {"content": text}}]})
)
around = st.sampled_from(["", '"', "\\", "\t", "content", '"content":"x"'])


def _like_an_engine(text, odd, stamp, spaced):
    """Chunks that differ in their text, and now and then in more."""
    body = {
        "id": "c",
        "created": stamp,
        "note": {"content": odd},
        "choices": [{"index": 0, "delta": {"content": text}, "finish_reason": None}],
    }
    separators = (", ", ": ") if spaced else (",", ":")
    return json.dumps(body, ensure_ascii=False, separators=separators)


alike = st.builds(
    _like_an_engine,
    st.one_of(st.sampled_from(["a", " b", "é", "東"]), st.text(max_size=3)),
    around,
    st.sampled_from([5, 5, 5, 6]),
    st.sampled_from([False, False, True]),
)


@pytest.mark.slow
@given(
    events=st.lists(st.one_of(plain, plain, alike, alike, payloads), max_size=12),
    cuts=st.lists(st.integers(1, 900), max_size=6),
    lost=st.sampled_from([0, 0, 0, 1, 2, 3, 9, 40]),
    end=st.sampled_from([None, ("cut_short", "reset")]),
)
@settings(max_examples=400, deadline=None)
def test_both_ways_read_the_same(events, cuts, lost, end):
    body = "".join(f"data: {e}\n\n" for e in events).encode()
    body = body[: len(body) - lost]
    edges = sorted({0, len(body), *(c for c in cuts if c < len(body))})
    reads = [
        (10 * i, body[a:b])
        for i, (a, b) in enumerate(zip(edges, edges[1:], strict=False), start=1)
    ]
    # An unknown field in front is nothing to the specification and not the usual way.
    general = [(1, b"x: 1\n"), *reads] if reads else [(1, b"x: 1\n")]
    short = record_of(captured(reads, end_ms=999, failure=end))
    long = record_of(captured(general, end_ms=999, failure=end))
    assert short.answer == long.answer
    assert short.stream == long.stream
    assert short.usage == long.usage


def test_text_after_a_broken_event_shows_that_it_was_broken_inside():
    good = json.dumps({"choices": [{"index": 0, "delta": {"content": "a"}}]})
    events = [good, good, good, "{", good, good, good, good]
    reads = [(i, f"data: {e}\n\n".encode()) for i, e in enumerate(events, start=1)]
    for extra in ([], [(0, b"x: 1\n")]):
        record = record_of(captured([*extra, *reads], failure=("cut_short", "reset")))
        assert record.answer.outcome == "invalid_response"
        assert record.answer.text == "a" * 7
