"""What the router reads of a long body is what a decoder of all of it reads."""

import json
import time

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from routeproof.canary.splitting import features
from routeproof.canary.splitting.features import glance
from routeproof.canary.splitting.skeleton import EMPTIED, LONG_BYTES, skeleton


def all_of(body):
    """The fields by a decoder that sees every byte."""
    try:
        return msgspec.structs.asdict(features._glance(body))
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


# A few bytes too long or not, with everything that may stand beside a quote.
LONG = "x" * (LONG_BYTES - 6)
TEXT = st.lists(
    st.sampled_from([LONG, '"', "\\", "\n", "{", "}", ",", "é", "\x00", "a"]),
    max_size=10,
).map("".join)
BODY = st.dictionaries(
    st.one_of(st.sampled_from(["user", "stream", "messages", "metadata"]), TEXT),
    st.recursive(
        st.one_of(TEXT, st.booleans(), st.none(), st.integers()),
        lambda inner: st.one_of(
            st.lists(inner, max_size=4), st.dictionaries(TEXT, inner, max_size=4)
        ),
        max_leaves=8,
    ),
    max_size=6,
)


@given(BODY, st.booleans(), st.sampled_from([None, 2]))
@settings(max_examples=400, deadline=None)
def test_a_long_body_is_read_as_if_it_were_short(body, ascii_only, indent):
    text = json.dumps(body, ensure_ascii=ascii_only, indent=indent).encode()
    text += b" " * (features.LONG_BODY_BYTES + 1_000)
    assert glance(text) == all_of(text)


@given(BODY)
@settings(max_examples=200, deadline=None)
def test_the_skeleton_of_json_is_json_of_the_same_shape(body):
    text = json.dumps(body).encode()
    short = skeleton(text)

    def emptied(value):
        if isinstance(value, str):
            is_long = len(json.dumps(value).encode()) - 1 > LONG_BYTES
            return json.loads(b'"%b"' % EMPTIED) if is_long else value
        if isinstance(value, list):
            return [emptied(each) for each in value]
        if isinstance(value, dict):
            return {emptied(k): emptied(v) for k, v in value.items()}
        return value

    assert short is None or json.loads(short) == emptied(body)


def test_a_long_user_is_read_whole():
    user = "u" * 100_000
    body = json.dumps({"messages": [], "user": user}).encode()
    assert skeleton(body) is not None
    assert glance(body)["user"] == user


@pytest.mark.parametrize(
    "body",
    [
        b'"' * 50_000,
        b"\\" * 50_000 + b'"',
        b'{"a": ' + b'\\"' * 50_000,
        b"[" + b"1," * 50_000 + b"1]",
        b"\xff" * 50_000,
        b'{"user": "' + b"\xff" * 50_000,
        b'{"a": "' + b"x" * 50_000,
    ],
)
def test_what_is_no_json_object_is_none(body):
    assert glance(body) is None


def test_a_body_made_to_be_slow_is_not():
    """Of as many quotes and backslashes as there is room for."""
    for piece in (b'\\"', b'\\\\"', b'\\\\\\"', b'","'):
        body = b'{"a": "' + piece * (1_000_000 // len(piece)) + b'"}'
        began = time.thread_time()
        glance(body)
        took_s = time.thread_time() - began
        assert took_s < 0.25, (piece, took_s)
