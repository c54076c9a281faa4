"""The short way to read a stream gives what the general way gives."""

import json
from itertools import accumulate
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from run_cases import captured, record_of

from routeproof.runs import parse

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


WRITTEN = {
    "chat": lambda text: {"delta": {"content": text}},
    "completions": lambda text: {"text": text, "logprobs": None},
    "reasoning": lambda text: {"delta": {"reasoning_content": text, "content": None}},
    "reasoning, short name": lambda text: {"delta": {"content": "", "reasoning": text}},
    "both": lambda text: {"delta": {"content": text, "reasoning": "hm"}},
    "twice": lambda text: {"delta": {"content": text}, "text": text},
}
"""What engines put into a choice for a piece of text, and what none should."""


def _like_an_engine(text, odd, stamp, written, *, spaced):
    """Chunks that differ in their text, and now and then in more."""
    choice = {"index": 0, **WRITTEN[written](text), "finish_reason": None}
    body = {"id": "c", "created": stamp, "note": {"content": odd}, "choices": [choice]}
    separators = (", ", ": ") if spaced else (",", ":")
    return json.dumps(body, ensure_ascii=False, separators=separators)


alike = st.builds(
    _like_an_engine,
    st.one_of(st.sampled_from(["a", " b", "é", "東"]), st.text(max_size=3)),
    around,
    st.sampled_from([5, 5, 5, 6]),
    st.sampled_from(["chat", "chat", *WRITTEN]),
    spaced=st.sampled_from([False, False, True]),
)
texts = st.one_of(st.text(min_size=1, max_size=3), st.sampled_from(["\n", '"', "\\"]))
streams = st.sampled_from(sorted(WRITTEN)).flatmap(
    lambda written: st.lists(
        texts.map(lambda t: _like_an_engine(t, "", 5, written, spaced=False)),
        min_size=4,
        max_size=9,
    )
)
"""Whole streams of one kind, as they really come."""

few = st.lists(payloads, max_size=3)


def one_by_one(payloads, reads, said, other):
    """The plain way to read events, which the others are held to."""
    return any(map(other, payloads, reads))


@pytest.mark.slow
@given(
    events=st.one_of(
        st.lists(st.one_of(plain, plain, alike, alike, payloads), max_size=12),
        st.builds(lambda a, b, c: a + b + c, streams, st.lists(payloads), streams),
        st.builds(lambda a, b, c: a + b + c, few, streams, few),
    ),
    cuts=st.one_of(st.none(), st.lists(st.integers(1, 900), max_size=6)),
    lost=st.sampled_from([0, 0, 0, 1, 2, 3, 9, 40]),
    end=st.sampled_from([None, ("cut_short", "reset")]),
)
@settings(max_examples=400, deadline=None)
def test_all_ways_read_the_same(events, cuts, lost, end):
    body = "".join(f"data: {e}\n\n" for e in events).encode()
    body = body[: len(body) - lost]
    if cuts is None:
        cuts = accumulate(len(f"data: {e}\n\n".encode()) for e in events)
    edges = sorted({0, len(body), *(c for c in cuts if c < len(body))})
    reads = [
        (10 * i, body[a:b])
        for i, (a, b) in enumerate(zip(edges, edges[1:], strict=False), start=1)
    ]
    # An unknown field in front is nothing to the specification and not the usual way.
    general = [(1, b"x: 1\n"), *reads] if reads else [(1, b"x: 1\n")]
    with mock.patch.object(parse, "read_events", one_by_one):
        true = record_of(captured(general, end_ms=999, failure=end))
    for way in (reads, general):
        found = record_of(captured(way, end_ms=999, failure=end))
        assert found.answer == true.answer
        assert found.stream == true.stream
        assert found.usage == true.usage


def test_text_after_a_broken_event_shows_that_it_was_broken_inside():
    good = json.dumps({"choices": [{"index": 0, "delta": {"content": "a"}}]})
    events = [good, good, good, "{", good, good, good, good]
    reads = [(i, f"data: {e}\n\n".encode()) for i, e in enumerate(events, start=1)]
    for extra in ([], [(0, b"x: 1\n")]):
        record = record_of(captured([*extra, *reads], failure=("cut_short", "reset")))
        assert record.answer.outcome == "invalid_response"
        assert record.answer.text == "a" * 7


@pytest.mark.parametrize("written", ["chat", "completions", "reasoning"])
def test_engines_chunks_are_cut_and_not_decoded_one_by_one(written, monkeypatch):
    decoded = []
    general = parse._decode
    monkeypatch.setattr(
        parse, "_decode", lambda data: decoded.append(data) or general(data)
    )
    words = [f'"w{i}"\n' if i % 9 == 8 else f"w{i} " for i in range(64)]
    events = [_like_an_engine(word, "", 5, written, spaced=False) for word in words]
    end = '{"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}'
    events += [end, "[DONE]"]
    reads = [(i, f"data: {e}\n\n".encode()) for i, e in enumerate(events, start=1)]
    record = record_of(captured(reads))
    assert decoded == [end.encode()]
    told = record.answer.reasoning if written == "reasoning" else record.answer.text
    assert told == "".join(words)
    assert len(record.stream.chunk_s) == 64
