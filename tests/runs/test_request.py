"""Bodies of requests: what wins over what, and what is left out."""

import json

from run_cases import PlainAdapter, a_target, some_cases

from routeproof.proof.workload import SamplingSpec
from routeproof.runs.request import body_of


class Detailed(PlainAdapter):
    def request_fields(self):
        return {"details": True, "temperature": 9}


def body(**target):
    (case,) = some_cases(1)
    to = a_target("http://h/v1", adapter=Detailed(), **target)
    return json.loads(body_of(case, to, SamplingSpec(max_tokens=5), stream=True))


def test_the_adapter_asks_for_its_details_unless_told_what_is_accepted():
    assert body()["details"] is True
    assert "details" not in body(adapter_fields={})
    assert body(adapter_fields={"other": 1})["other"] == 1


def test_fields_of_the_target_win_over_those_of_the_adapter():
    assert body(extra_fields={"details": False})["details"] is False


def test_usage_is_asked_for_unless_the_server_refuses():
    assert body()["stream_options"] == {"include_usage": True}
    assert "stream_options" not in body(ask_usage=False)
