"""Bodies of requests: what wins over what, and what is left out."""

import json

from msgspec.structs import replace
from run_cases import PlainAdapter, a_target, some_cases

from routeproof.proof.workload import SamplingSpec
from routeproof.runs.request import body_of


class Detailed(PlainAdapter):
    def request_fields(self):
        return {"details": True, "temperature": 9}


def body(**target):
    (case,) = some_cases(1)
    to = a_target("http://h/v1", adapter=Detailed(), **target)
    return json.loads(body_of(case, to, SamplingSpec(max_tokens=5), stream=True).data)


def test_the_adapter_asks_for_its_details_unless_told_what_is_accepted():
    assert body()["details"] is True
    assert "details" not in body(adapter_fields={})
    assert body(adapter_fields={"other": 1})["other"] == 1


def test_fields_of_the_target_win_over_those_of_the_adapter():
    assert body(extra_fields={"details": False})["details"] is False


def test_usage_is_asked_for_unless_the_server_refuses():
    assert body()["stream_options"] == {"include_usage": True}
    assert "stream_options" not in body(ask_usage=False)


def asked(temperature=0.0, trial=0, *, case=None, seed=None, sent=None, **target):
    given = {"adapter_fields": {}, **target}
    to = a_target("http://h/v1", adapter=Detailed(), **given)
    sampling = SamplingSpec(temperature=temperature, seed=seed)
    (some,) = some_cases(1)
    return body_of(
        case or some, to, sampling, stream=True, trial=trial, **(sent or {})
    ).asked


def test_the_digest_of_what_was_asked_sees_what_changes_an_answer():
    plain = asked()
    assert plain == asked(adapter_fields={"details": True}) == asked(ask_usage=False)
    assert plain == asked(trial=3, sent={"nonce": "x"})
    others = [
        asked(adapter_fields=None),  # its temperature wins
        asked(sent={"prefill_only": True}),
        asked(0.7),
        asked(seed=1),
        asked(seed=1, trial=1),
        asked(extra_fields={"min_p": 0.1}),
        asked(case=replace(some_cases(1)[0], parameters={"stop": ["x"]})),
    ]
    assert len({plain, *others}) == 8
