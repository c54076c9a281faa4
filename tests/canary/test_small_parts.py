import pytest
from hypothesis import given
from hypothesis import strategies as st

from routeproof.canary.relay.headers import (
    request_head,
    request_headers,
    response_headers,
)
from routeproof.canary.samples.redact import redact
from routeproof.canary.splitting.features import FEATURES, features_of, parse_body
from routeproof.canary.splitting.share import ShareMeter


def a_meter(now):
    return ShareMeter(window_s=10.0, clock=lambda: now[0])


def test_without_traffic_no_share_is_observed():
    assert a_meter([0.0]).share() is None


def test_a_request_still_running_counts_however_old_it_is():
    now = [0.0]
    meter = a_meter(now)
    meter.began("canary")
    meter.began("baseline")
    now[0] = 1_000.0
    assert meter.share() == 0.5
    meter.ended("canary")
    assert meter.share() == 0.0
    assert meter.canary_is_drained()


@pytest.mark.parametrize(
    ("body", "features"),
    [
        ({"messages": []}, set()),
        ({"response_format": {"type": "text"}}, set()),
        ({"response_format": {"type": "json_schema"}}, {"structured_output"}),
        ({"grammar": "root ::= [a]"}, {"structured_output"}),
        ({"tools": []}, set()),
        ({"tools": [{"type": "function"}]}, {"tools"}),
        ({"logprobs": False, "top_logprobs": 0}, set()),
        ({"logprobs": True}, {"logprobs"}),
        ({"min_p": 0.0}, set()),
        ({"min_p": 0.05, "seed": 0}, {"min_p", "seed"}),
        ({"n": 2, "stream": True}, {"several_choices", "streaming"}),
    ],
)
def test_features_are_what_the_request_really_uses(body, features):
    assert features_of(body) == features


@given(st.binary())
def test_any_body_is_parsed_or_is_none(body):
    parsed = parse_body(body)
    assert parsed is None or features_of(parsed) <= set(FEATURES)


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("my key is sk-abcDEF1234567890abcd ok", "my key is [key] ok"),
        ("Authorization: Bearer abcdef0123456789", "Authorization: [bearer]"),
        ("write to jane.doe@example.org now", "write to [email] now"),
        ("card 4111 1111 1111 1111.", "card [card]."),
        ("order 1234567890123", "order 1234567890123"),
        ("host 192.0.2.17 is up", "host [ipv4] is up"),
        ("call +49 30 901820 11", "call [phone]"),
        ("in 2024 we sold 1,500 units", "in 2024 we sold 1,500 units"),
    ],
)
def test_redaction_takes_secrets_and_leaves_ordinary_text(text, kept):
    assert redact(text) == kept


@given(st.text())
def test_redacting_twice_changes_nothing_more(text):
    once = redact(text)
    assert redact(once) == once


def test_upstream_gets_no_hop_by_hop_no_own_and_no_foreign_key():
    headers = [
        (b"host", b"public.example"),
        (b"connection", b"keep-alive, x-private"),
        (b"x-private", b"1"),
        (b"transfer-encoding", b"chunked"),
        (b"x-routeproof-arm", b"canary"),
        (b"x_routeproof_arm", b"canary"),
        (b"authorization", b"Bearer client"),
        (b"content-length", b"7"),
        (b"x-request-id", b"42"),
    ]
    sent = request_headers(
        headers, host=b"up", authorization=b"Bearer own", body_length=3
    )
    assert sent == [
        (b"host", b"up"),
        (b"x-request-id", b"42"),
        (b"authorization", b"Bearer own"),
        (b"content-length", b"3"),
    ]


def test_the_clients_own_key_passes_when_none_is_configured():
    sent = request_headers(
        [(b"authorization", b"Bearer c")], host=b"u", authorization=None, body_length=0
    )
    assert (b"authorization", b"Bearer c") in sent


def test_an_upstream_cannot_set_our_headers():
    passed = response_headers([(b"X-Routeproof-Arm", b"x"), (b"ETag", b"y")])
    assert passed == [(b"etag", b"y")]


@given(st.binary(max_size=20), st.binary(max_size=20))
def test_no_header_can_break_the_framing(name, value):
    try:
        head = request_head("POST", b"/v1", [(name, value)])
    except ValueError:
        return
    assert head.count(b"\r\n") == 3 and head.endswith(b"\r\n\r\n")
