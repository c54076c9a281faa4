"""How many streams a run will have, told before it begins."""

import resource

import numpy as np
import pytest
from fakes.openai_server import chat_stream, json_reply, serving_in_thread
from run_cases import a_target, a_workload, run, some_cases

from routeproof.engines.adapters import adapter
from routeproof.errors import ConfigError
from routeproof.runs.expected import (
    FEWEST_STREAMS,
    MOST_STREAMS,
    expected_streams,
    most_at_once,
)
from routeproof.runs.plan import build_plan
from routeproof.runs.sockets import allow_streams

NOBODY = "http://127.0.0.1:9/v1"


def a_plan(n=40, cases=3, **arrivals):
    given = {"requests": n, "arrivals": "constant", **arrivals}
    return build_plan(
        some_cases(cases),
        a_workload("sweep", load={"latency": None, "warmup_requests": 0}, **given),
        arms=("baseline",),
        phases=("sweep",),
    )


def expected(plan, url=NOBODY, **options):
    return run(
        expected_streams(plan, a_target(url, adapter=adapter("openai")), **options)
    )


@pytest.mark.parametrize(
    ("offsets_s", "latency_s", "most"),
    [
        ([], 1.0, 0),
        ([0.0], 1.0, 1),
        ([0.0, 1.0, 2.0], 1.0, 1),
        ([0.0, 1.0, 2.0], 1.5, 2),
        ([0.0, 0.1, 0.2, 5.0, 5.05, 5.06, 5.07], 0.5, 4),
    ],
)
def test_who_came_and_has_not_gone_is_counted(offsets_s, latency_s, most):
    assert most_at_once(np.array(offsets_s), latency_s) == most


def test_a_closed_level_says_it_and_nothing_is_sent():
    found = expected(a_plan(concurrency=(2, 40)))
    assert (found.streams, found.why) == (40, "the highest concurrency")


def test_no_more_streams_are_tried_than_there_are_requests():
    assert expected(a_plan(n=5, concurrency=(40,))).streams == 5


def test_without_leave_to_send_a_floor_is_taken_and_said():
    found = expected(a_plan(request_rate=(500.0,)), may_send=False)
    assert found.streams == FEWEST_STREAMS
    assert "not known" in found.why


def test_an_endpoint_that_does_not_answer_leaves_the_floor():
    assert expected(a_plan(request_rate=(500.0,))).streams == FEWEST_STREAMS


def answering(seen_all, status=200):
    def script(seen):
        seen_all.append(seen)
        if status != 200:
            return json_reply({"error": "no"}, status)
        return chat_stream(["a"] * 10, wait_s=0.01)

    return script


def test_arrivals_are_counted_over_the_time_that_a_request_takes():
    seen = []
    with serving_in_thread(answering(seen)) as server:
        # 200 requests within a fifth of a second, each of at least a tenth.
        found = expected(a_plan(n=200, request_rate=(1000.0,)), server.url)
    assert 90 <= found.streams <= 200
    assert f"{found.streams} arrivals" in found.why
    assert len(seen) == 3
    assert all(b"[pilot]" in one.body for one in seen)


def test_the_number_is_bounded_and_says_so():
    with serving_in_thread(answering([])) as server:
        found = expected(a_plan(n=4000, request_rate=(1e6,)), server.url)
    assert found.streams == MOST_STREAMS
    assert "no more than 1024" in found.why


def test_a_closed_level_that_is_higher_wins():
    with serving_in_thread(answering([])) as server:
        found = expected(
            a_plan(n=80, request_rate=(1.0,), concurrency=(64,)), server.url
        )
    assert found.streams == 64


def test_a_refusal_tells_no_latency():
    with serving_in_thread(answering([], status=503)) as server:
        found = expected(a_plan(n=200, request_rate=(1000.0,)), server.url)
    assert "not known" in found.why


def limits(monkeypatch, soft, hard):
    raised = []
    monkeypatch.setattr(resource, "getrlimit", lambda _: (soft, hard))
    monkeypatch.setattr(resource, "setrlimit", lambda _, both: raised.append(both))
    return raised


def test_the_soft_limit_of_sockets_is_raised_as_far_as_needed(monkeypatch):
    raised = limits(monkeypatch, 256, 4096)
    allow_streams(100)
    assert raised == []
    allow_streams(1000)
    assert raised == [(1064, 4096)]


def test_more_streams_than_sockets_are_refused(monkeypatch):
    limits(monkeypatch, 256, 4096)
    with pytest.raises(ConfigError, match="5000 streams"):
        allow_streams(5000)


def test_without_a_hard_limit_there_is_none(monkeypatch):
    raised = limits(monkeypatch, 1024, resource.RLIM_INFINITY)
    allow_streams(10**6)
    assert raised == [(10**6 + 64, resource.RLIM_INFINITY)]


def test_without_a_soft_limit_nothing_is_raised(monkeypatch):
    raised = limits(monkeypatch, resource.RLIM_INFINITY, resource.RLIM_INFINITY)
    allow_streams(10**6)
    assert raised == []
