import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scorer_cases import a_call, a_case, an_answer, data_rows

from routeproof.scorers.json_equal import json_equal
from routeproof.scorers.json_schema import SchemaProblem, schema_problem
from routeproof.scorers.json_text import parse_fenced_json, parse_json
from routeproof.scorers.table import SCORERS
from routeproof.scorers.tool_call import is_same_calls

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)
OBJECT = {"type": "object", "required": ["a"]}


def score(name, case, text="", *calls):
    return SCORERS[name].of(case, an_answer(text, tool_calls=calls))


@pytest.mark.slow
@given(json_values, json_values)
def test_json_equality_is_reflexive_and_symmetric(a, b):
    assert json_equal(a, a)
    assert json_equal(a, b) == json_equal(b, a)


@pytest.mark.parametrize(
    ("a", "b", "is_equal"),
    [
        (1, 1.0, True),
        (True, 1, False),
        (False, 0, False),
        (None, False, False),
        (2**53 + 1, float(2**53), False),
        ([1, 2], [2, 1], False),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
        ("1", 1, False),
        ([], {}, False),
    ],
)
def test_json_equality(a, b, is_equal):
    assert json_equal(a, b) is is_equal


@pytest.mark.parametrize("text", ["NaN", "[Infinity]", "{'a': 1}", "{", "", "1 2"])
def test_what_is_no_json(text):
    assert parse_json(text).problem


def test_a_raw_line_break_in_a_string_is_no_json_but_repairable():
    assert "repairable" in parse_json('{"a": "x\ny"}').problem
    assert "repairable" not in parse_json('{"a": ').problem


@pytest.mark.parametrize(
    "text",
    [
        '{"a":1}',
        '```json\n{"a":1}\n```',
        '```\n{"a":1}\n```',
        '```json\n{"a":1}',
        'First:\n```python\nx = 1\n```\nthen\n```json\n{"a":1}\n```\nbye',
    ],
)
def test_fences_are_taken_off(text):
    assert parse_fenced_json(text).value == {"a": 1}


def test_raw_and_fenced_are_separate_metrics():
    case = a_case(options={"schema": OBJECT})
    fenced = '```json\n{"a": 1}\n```'
    assert score("json_schema", case, fenced).class_ == "unparseable"
    assert score("json_schema_fenced", case, fenced).class_ == "correct"
    assert score("json_schema", case, '{"a": 1}').class_ == "correct"
    assert score("json_schema", case, '{"b": 1}').class_ == "wrong"


def test_the_schema_of_the_request_is_used():
    form = {"type": "json_schema", "json_schema": {"name": "x", "schema": OBJECT}}
    case = a_case(parameters={"response_format": form})
    assert score("json_schema", case, '{"b": 1}').class_ == "wrong"


def test_an_invalid_or_remote_schema_is_unscored():
    for schema in ({"type": "nothing"}, {"$ref": "http://127.0.0.1:9/x.json"}, "x", 3):
        case = a_case(options={"schema": schema})
        for text in ("{}", "no json"):
            assert score("json_schema", case, text).class_ == "unscored"


def test_the_json_schema_test_suite_is_read_right():
    needs_its_file_server = 0
    for row in data_rows("json_schema_test_suite/draft2020-12.jsonl"):
        try:
            found = schema_problem(row["schema"], row["data"]) is None
        except SchemaProblem as problem:
            assert "localhost:1234" in str(problem)
            needs_its_file_server += 1
        else:
            assert found == row["valid"], row["id"]
    assert needs_its_file_server == 18


@pytest.mark.slow
@pytest.mark.parametrize("part", ["a", "b"])
def test_jsonschemabench_instances_are_judged_as_labelled(part):
    wrong, n = [], 0
    for row in data_rows(f"jsonschemabench/cases_{part}.jsonl"):
        case = a_case(options={"schema": row["schema"]}, id=row["id"])
        for test in row["tests"]:
            found = score("json_schema", case, json.dumps(test["data"]))
            n += 1
            if found.value != float(test["valid"]):
                wrong.append((row["id"], found.class_, found.trace))
    assert n > 500
    assert wrong == []


def test_fields_are_counted():
    case = a_case({"a": 1, "b": "x"})
    assert score("json_fields", case, '{"a": 1.0, "b": "x", "c": 0}').value == 1
    assert score("json_fields", case, '{"a": true, "b": "x"}').value == 0.5
    assert score("json_fields", case, "[]").class_ == "unparseable"
    strict = a_case({"a": 1}, options={"exact": True})
    assert score("json_fields", strict, '{"a": 1, "c": 0}').value == 0


WEATHER = {"name": "weather", "arguments": {"city": "Oslo", "days": 2}}
TIME = {"name": "time", "arguments": {}}


@given(st.permutations([("weather", {"city": "Oslo", "days": 2.0}), ("time", {})]))
def test_parallel_calls_have_no_order(calls):
    made = [a_call(name, **arguments) for name, arguments in calls]
    assert score("tool_call", a_case([WEATHER, TIME]), "", *made).value == 1


@pytest.mark.parametrize(
    ("calls", "why"),
    [
        ([], "no call"),
        ([a_call("weather", city="Oslo", days=2)] * 2, "2 calls made, 1 expected"),
        ([a_call("weather", city="Oslo", days=True)], "days has another value"),
        ([a_call("weather", city="Oslo")], "days is missing"),
        ([a_call("weather", city="Oslo", days=2, unit="C")], "unit was not asked for"),
        ([a_call("wether", city="Oslo", days=2)], "unknown tool wether"),
        ([a_call("time")], "weather was not called"),
    ],
)
def test_wrong_calls_say_why(calls, why):
    tools = [
        {
            "type": "function",
            "function": {"name": name, "parameters": {"type": "object"}},
        }
        for name in ("weather", "time")
    ]
    found = score(
        "tool_call", a_case([WEATHER], parameters={"tools": tools}), "", *calls
    )
    assert (found.class_, found.value) == ("wrong", 0)
    assert why in found.trace


def test_a_call_against_the_tools_own_schema_is_wrong():
    parameters = {"type": "object", "properties": {"days": {"type": "integer"}}}
    tools = [{"function": {"name": "weather", "parameters": parameters}}]
    case = a_case(parameters={"tools": tools}, options={"expect": "some"})
    assert score("tool_call", case, "", a_call("weather", days=1)).value == 1
    assert score("tool_call", case, "", a_call("weather", days="1")).value == 0
    assert score("tool_call", case, "a text").value == 0


def test_no_call_expected():
    assert score("tool_call", a_case([]), "I cannot look that up.").value == 1
    assert score("tool_call", a_case([]), "", a_call("time")).value == 0
    forbidden = a_case(None, options={"expect": "none"})
    assert score("tool_call", forbidden, "text").value == 1


def test_order_counts_when_declared():
    case = a_case([WEATHER, TIME], options={"ordered": True})
    weather = a_call("weather", city="Oslo", days=2)
    assert score("tool_call", case, "", weather, a_call("time")).value == 1
    assert score("tool_call", case, "", a_call("time"), weather).value == 0


def test_overlapping_accepted_values_are_matched_as_a_whole():
    case = a_case([{"f": {"x": [1, 2]}}, {"f": {"x": [1]}}])
    assert score("tool_call", case, "", a_call("f", x=1), a_call("f", x=2)).value == 1
    assert score("tool_call", case, "", a_call("f", x=2), a_call("f", x=2)).value == 0


def test_truncated_arguments_are_unparseable():
    broken = {"name": "weather", "arguments": '{"city": "Os'}
    assert score("tool_call", a_case([WEATHER]), "", broken).class_ == "unparseable"


@pytest.mark.slow
@given(
    st.lists(
        st.sampled_from([a_call("f", x=1), a_call("g"), a_call("f", x="1")]), max_size=4
    ),
    st.randoms(use_true_random=False),
)
def test_sameness_of_calls_is_symmetric_and_order_free(calls, random):
    left = an_answer(tool_calls=tuple(calls))
    shuffled = list(calls)
    random.shuffle(shuffled)
    right = an_answer(tool_calls=tuple(shuffled))
    assert is_same_calls(left, right)
    more = an_answer(tool_calls=(*shuffled, a_call("h")))
    assert not is_same_calls(left, more) and not is_same_calls(more, left)


def _perfect_calls(truth):
    def pick(value):
        if isinstance(value, dict):
            return {
                k: pick(v[0] if isinstance(v, list) else v)
                for k, v in value.items()
                if not (isinstance(v, list) and v[0] == "")
            }
        return [pick(one) for one in value] if isinstance(value, list) else value

    for call in truth:
        name, arguments = next(iter(call.items()))
        said = {k: pick(v[0]) for k, v in arguments.items() if v[0] != ""}
        yield a_call(name, **said)


@pytest.mark.parametrize(
    "part",
    [
        "simple_python",
        "multiple",
        "parallel",
        "parallel_multiple",
        "live_parallel",
        "simple_javascript",
    ],
)
def test_bfcl_accepts_its_own_truth_and_no_mutant(part):
    for row in data_rows(f"bfcl_v4/{part}.jsonl"):
        case = a_case(row["ground_truth"])
        calls = list(_perfect_calls(row["ground_truth"]))
        assert score("tool_call", case, "", *calls).value == 1, row["id"]
        assert score("tool_call", case, "", *calls[1:]).value == 0, row["id"]
        assert score("tool_call", case, "", *calls, calls[0]).value == 0, row["id"]
        renamed = {**calls[0], "name": calls[0]["name"] + "x"}
        assert score("tool_call", case, "", renamed, *calls[1:]).value == 0
        extra = json.loads(calls[0]["arguments"]) | {"__made_up__": 1}
        assert (
            score(
                "tool_call", case, "", a_call(calls[0]["name"], **extra), *calls[1:]
            ).value
            == 0
        )


def test_a_schema_that_is_none_is_named():
    with pytest.raises(SchemaProblem):
        schema_problem({"type": 3}, {})
