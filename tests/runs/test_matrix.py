"""The streams on which load generators disagree, down to the metrics they print.

One truth: role at 50 ms, first token at 200 ms, 32 tokens 20 ms apart, the last at
820 ms. ``test_conformance`` looks at what is read of each; here is what a person would
see of it. Each row has the numbers in milliseconds, or the name of a failure.
"""

import json

import pytest
from fakes.openai_server import delta, usage
from metric_cases import requests
from run_cases import captured, record_of

from routeproof.metrics.table import METRICS

TOKEN_MS = [200 + 20 * i for i in range(32)]


def event(body, end="\n\n", field="data: "):
    text = body if isinstance(body, str) else json.dumps(body, ensure_ascii=False)
    return (field + text + end).encode()


def tokens(body_of=delta, **written):
    """(ms, bytes) of the 32 tokens."""
    return [(ms, event(body_of(f"w{i} "), **written)) for i, ms in enumerate(TOKEN_MS)]


def closing(at_ms=820, *, counts=True, done=True, **written):
    """Finish reason, usage, DONE."""
    reads = [(at_ms, event(delta(finish="stop"), **written))]
    reads += [(at_ms, event(usage(output=32), **written))] if counts else []
    return [*reads, *([(at_ms, event("[DONE]", **written))] if done else [])]


ROLE = [(50, event(delta("", role="assistant")))]
PLAIN = {"first": 200.0, "visible": 200.0, "per_token": 20.0, "gap": 20.0, "whole": 820}


def with_ids(text):
    """A chunk of four tokens that says so."""
    body = delta(text)
    body["choices"][0]["token_ids"] = [1, 2, 3, 4]
    return body


def bundles(body_of):
    return [(ms, event(body_of("a b c d "))) for ms in TOKEN_MS[:8]]


def half_reasoning():
    reads = []
    for i, ms in enumerate(TOKEN_MS):
        body = delta(reasoning_content="hm ") if i < 16 else delta("a ")
        reads.append((ms, event(body)))
    return reads


def tool_deltas():
    function = {"name": "find", "arguments": "1"}
    call = [{"index": 0, "function": function}]
    return [(ms, event(delta(tool_calls=call))) for ms in TOKEN_MS]


def pairs():
    reads = tokens()
    return [(b[0], a[1] + b[1]) for a, b in zip(reads[::2], reads[1::2], strict=True)]


def in_bytes(reads):
    """Each read in pieces of one byte, all at its time."""
    return [(ms, raw[i : i + 1]) for ms, raw in reads for i in range(len(raw))]


ROWS = {
    "plain": (ROLE + tokens() + closing(), PLAIN),
    "no role chunk": (tokens() + closing(), PLAIN),
    "CRLF": (tokens(end="\r\n\r\n") + closing(end="\r\n\r\n"), PLAIN),
    "CR": (tokens(end="\r\r") + closing(end="\r\r"), PLAIN),
    "no space": (tokens(field="data:") + closing(field="data:"), PLAIN),
    "event line": (tokens(field="event: message\ndata: ") + closing(), PLAIN),
    "comments": (
        [(9, b": ping\n\n"), *tokens(field=": ping\n\ndata: ")] + closing(),
        PLAIN,
    ),
    "U+2028 and U+0085": (
        tokens(lambda t: delta(f"{t}\u2028\u0085")) + closing(),
        PLAIN,
    ),
    "split characters": (
        in_bytes(tokens(lambda t: delta(f"東{t}"))) + closing(),
        PLAIN,
    ),
    "no DONE": (tokens() + closing(done=False), PLAIN),
    "no usage": (tokens() + closing(counts=False), {**PLAIN, "per_token": None}),
    "late usage and DONE": (
        tokens()
        + closing()[:1]
        + [(1320, event(usage(output=32))), (1820, event("[DONE]"))],
        PLAIN,
    ),
    "4 tokens per chunk": (
        bundles(delta) + closing(at_ms=340),
        {**PLAIN, "per_token": 140 / 31, "whole": 340, "per_chunk": 4.0},
    ),
    "4 tokens per chunk, told": (
        bundles(with_ids) + closing(at_ms=340),
        {**PLAIN, "per_token": 140 / 28, "whole": 340, "per_chunk": 4.0},
    ),
    "reasoning, then text": (half_reasoning() + closing(), {**PLAIN, "visible": 520.0}),
    "reasoning only": (
        tokens(lambda t: delta(reasoning=t)) + closing(),
        {**PLAIN, "visible": None},
    ),
    "tool calls": (tool_deltas() + closing(), PLAIN),
    "two events in one write": (
        pairs() + closing(),
        {
            **PLAIN,
            "first": 220.0,
            "visible": 220.0,
            "per_token": 600 / 31,
            "gap": 600 / 31,
        },
    ),
}


def seen(reads, **options):
    record = record_of(captured(reads, **options))
    return requests(record), record.answer.outcome


@pytest.mark.parametrize(("reads", "truth"), ROWS.values(), ids=ROWS)
def test_the_numbers_a_person_sees_are_true(reads, truth):
    found, outcome = seen(reads)
    assert outcome == "completed"

    def told(metric, factor=1e3):
        column = found.number(metric)
        return factor * column.values[0] if column.known[0] else None

    numbers = {
        "first": told("time_to_first_token"),
        "visible": told("time_to_first_visible_token"),
        "per_token": told("time_per_output_token"),
        "gap": told("chunk_gap"),
        "whole": told("request_latency"),
    }
    if "per_chunk" in truth:
        numbers["per_chunk"] = told("tokens_per_chunk", 1)
    assert numbers == pytest.approx(truth, abs=0.01)


ERROR = event({"error": {"message": "out of memory"}})
FAILURES = {
    "TCP abort": (tokens()[:16], "cut_short", {"failure": ("cut_short", "reset")}),
    "quiet end": (tokens()[:16], "cut_short", {}),
    "error at the start": ([(50, ERROR)], "stream_error", {}),
    "error in the middle": (tokens()[:16] + [(520, ERROR)], "stream_error", {}),
    "error, then a good end": (
        tokens()[:16] + [(520, ERROR)] + tokens()[16:] + closing(),
        "stream_error",
        {},
    ),
    "empty stream": ([(50, event("[DONE]"))], "empty", {}),
    "nothing": ([], "empty", {}),
    "HTTP 500": ([(50, b"no")], "http_error", {"status": 500}),
}


@pytest.mark.parametrize(("reads", "name", "options"), FAILURES.values(), ids=FAILURES)
def test_a_broken_stream_has_a_name_and_no_times(reads, name, options):
    found, outcome = seen(reads, **options)
    assert outcome == name
    assert not found.served()[0]
    fast = [m for m in METRICS if m != "dispatch_delay" and found.number(m).known[0]]
    assert fast == []
