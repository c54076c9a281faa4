"""Server-sent events by the specification."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from routeproof.runs.sse import events


def data_of(*pieces):
    return [e.data for e in events(list(pieces))]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"data: a\n\ndata: b\n\n", [b"a", b"b"]),
        (b"data:a\n\ndata:b\n\n", [b"a", b"b"]),
        (b"data:  a\n\n", [b" a"]),
        (b"data: a\r\n\r\ndata: b\r\n\r\n", [b"a", b"b"]),
        (b"data: a\r\rdata: b\r\r", [b"a", b"b"]),
        (b"data: a\r\n\ndata: b\n\r\n", [b"a", b"b"]),
        (b": ping\n\ndata: a\n\n: ping\n", [b"a"]),
        (b":\ndata: a\n\n", [b"a"]),
        (b"event: message\ndata: a\n\n", [b"a"]),
        (b"id: 1\nretry: 10\ndata: a\n\n", [b"a"]),
        (b"data: a\ndata: b\n\n", [b"a\nb"]),
        (b"data\ndata: b\n\n", [b"\nb"]),
        (b"\xef\xbb\xbfdata: a\n\n", [b"a"]),
        (b"\n\n\ndata: a\n\n\n\ndata: b\n\n", [b"a", b"b"]),
        (
            b"data: a\xe2\x80\xa8b\xc2\x85c\x0b\x0c\n\n",
            [b"a\xe2\x80\xa8b\xc2\x85c\x0b\x0c"],
        ),
        (b"data: a\n\ndata: last", [b"a", b"last"]),
        (b"data: last\n", [b"last"]),
        (b"data: last\r\n", [b"last"]),
        (b"data: a\n\nid: 7\n\n", [b"a"]),
        (b"database: a\n\ndata: b\n\n", [b"b"]),
        (b"", []),
    ],
)
def test_lines_and_fields(body, expected):
    assert data_of(body) == expected


def test_an_event_with_a_name_and_no_data_still_counts():
    (event,) = events([b"event: error\n\n"])
    assert (event.name, event.data) == (b"error", b"")


@given(
    payloads=st.lists(
        st.text(st.characters(codec="utf-8", exclude_characters="\r\n\0"))
    ),
    end=st.sampled_from(["\n", "\r\n", "\r"]),
    cuts=st.lists(st.integers(0, 400)),
)
def test_where_the_socket_cuts_does_not_matter(payloads, end, cuts):
    body = "".join(f"data: {p}{end}{end}" for p in payloads).encode()
    edges = sorted({0, len(body), *(c for c in cuts if c < len(body))})
    pieces = [body[a:b] for a, b in zip(edges, edges[1:], strict=False)]
    found = list(events(pieces))
    assert [e.data for e in found] == [p.encode() for p in payloads]
    ends = [sum(map(len, pieces[: e.read + 1])) for e in found]
    place = 0
    for payload, arrived in zip(payloads, ends, strict=True):
        place += len(f"data: {payload}{end}".encode())
        # The read that holds the first byte of the blank line completes the event.
        before = max((e for e in edges if e <= place), default=0)
        assert arrived == min(e for e in edges if e > place) and arrived > before
        place += len(end)


def test_an_event_belongs_to_the_read_that_completes_it():
    reads = [
        e.read for e in events([b"data: a", b"\n\ndata: b\n\nda", b"ta: c\n", b"\n"])
    ]
    assert reads == [1, 1, 3]
