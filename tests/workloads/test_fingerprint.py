import msgspec
import pytest

from routeproof.proof.workload import (
    ArrivalSpec,
    LoadSpec,
    SamplingSpec,
    WorkloadSpec,
)
from routeproof.workloads.case import Case
from routeproof.workloads.fingerprint import canonical_json, fingerprint

CASES = (
    Case(id="a", class_="x", prompt="one", parameters={"temperature": 0, "n": 2}),
    Case(id="b", class_="x", messages=({"role": "user", "content": "é"},)),
)
SPEC = WorkloadSpec()


def changed(**fields):
    return msgspec.structs.replace(SPEC, **fields)


def test_a_fingerprint_is_stable_and_does_not_depend_on_key_order():
    turned = msgspec.structs.replace(CASES[0], parameters={"n": 2, "temperature": 0.0})
    assert fingerprint(CASES, SPEC) == fingerprint((turned, CASES[1]), SPEC)
    assert len(fingerprint(CASES, SPEC)) == 64


@pytest.mark.parametrize(
    "spec",
    [
        changed(trials=2),
        changed(seed=1),
        changed(stream=False),
        changed(sampling=SamplingSpec(temperature=0.7)),
        changed(sampling=SamplingSpec(top_p=0.9)),
        changed(load=LoadSpec(quality=ArrivalSpec(concurrency=(2,)))),
        changed(load=LoadSpec(sweep=ArrivalSpec(request_rate=(4.0,)))),
        changed(load=LoadSpec(cache="cold")),
    ],
)
def test_whatever_changes_what_is_sent_changes_the_fingerprint(spec):
    assert fingerprint(CASES, spec) != fingerprint(CASES, SPEC)


@pytest.mark.parametrize(
    "cases",
    [
        CASES[::-1],
        CASES[:1],
        (msgspec.structs.replace(CASES[0], reference="4"), CASES[1]),
        (msgspec.structs.replace(CASES[0], prompt="one "), CASES[1]),
    ],
)
def test_another_set_of_cases_has_another_fingerprint(cases):
    assert fingerprint(cases, SPEC) != fingerprint(CASES, SPEC)


def test_a_changed_trace_file_is_a_changed_workload():
    one = fingerprint(CASES, SPEC, trace_digests={"t.csv": "00"})
    two = fingerprint(CASES, SPEC, trace_digests={"t.csv": "01"})
    assert one != two


@pytest.mark.parametrize(
    "spec",
    [
        changed(cases=("other.jsonl",)),
        changed(max_cases=9),
        changed(classes_required={"x": 1}),
        changed(load=LoadSpec(request_timeout_s=5.0)),
        changed(load=LoadSpec(max_failure_share=0.1)),
    ],
)
def test_paths_and_deadlines_do_not_enter(spec):
    assert fingerprint(CASES, spec) == fingerprint(CASES, SPEC)


def test_canonical_json_keeps_what_utf8_cannot_and_refuses_nan():
    assert canonical_json({"b": 1.0, "a": [True, "\ud800"]}) == (
        b'{"a":[true,"\xed\xa0\x80"],"b":1}'
    )
    with pytest.raises(ValueError):
        canonical_json({"a": float("nan")})
