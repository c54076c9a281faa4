import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from routeproof.errors import ConfigError, FormatError
from routeproof.proof.workload import WorkloadSpec
from routeproof.workloads.case import Case
from routeproof.workloads.cases import (
    case_line,
    decode_case,
    load_cases,
    read_cases,
    write_cases,
)

GOOD = {"id": "a1", "class": "factual_qa", "prompt": "2 + 2 =", "reference": "4"}


def write(path, *rows):
    text = "\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows)
    path.write_text(text + "\n", encoding="utf-8")
    return path


def test_cases_keep_the_order_of_files_and_lines(tmp_path):
    write(tmp_path / "b.jsonl", GOOD | {"id": "b1"}, GOOD | {"id": "b0"})
    write(tmp_path / "a.jsonl", GOOD | {"id": "a9"}, "", GOOD | {"id": "a0"})
    spec = WorkloadSpec(cases=("b.jsonl", "*.jsonl"))
    assert [c.id for c in load_cases(spec, tmp_path)] == ["b1", "b0", "a9", "a0"]


def test_a_byte_order_mark_and_crlf_line_ends_are_no_obstacle(tmp_path):
    rows = [GOOD, GOOD | {"id": "a2"}]
    text = "\r\n".join(json.dumps(row) for row in rows)
    (tmp_path / "c.jsonl").write_bytes(b"\xef\xbb\xbf" + text.encode())
    assert [c.id for c in read_cases(tmp_path / "c.jsonl")] == ["a1", "a2"]


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ('{"id": "x"', "line 2: not JSON"),
        (GOOD | {"referense": "4"}, "did you mean `reference`?"),
        (GOOD | {"id": 7}, "`$.id`"),
        ({"id": "x", "class": "c"}, "neither `messages` nor `prompt`"),
        (GOOD | {"messages": [{"role": "user", "content": "hi"}]}, "has both"),
        (GOOD | {"prompt": None, "messages": []}, "`messages` is empty"),
        (GOOD | {"prompt": None, "messages": [{"content": "x"}]}, "has no `role`"),
        (GOOD | {"prompt": None, "messages": [{"role": "user"}]}, "neither `content`"),
        (GOOD | {"id": ""}, "`id` is empty"),
        ("[1, 2]", "line 2: not a case"),
        ("NaN", "line 2: not JSON"),
    ],
)
def test_a_line_that_is_no_case_is_named_with_file_and_line(tmp_path, row, said):
    path = write(tmp_path / "c.jsonl", GOOD, row)
    with pytest.raises(FormatError) as caught:
        read_cases(path)
    assert said in str(caught.value)
    assert f"{path}: line 2" in str(caught.value)
    assert caught.value.line == 2


def test_bytes_that_are_no_utf8_are_named_with_their_line(tmp_path):
    (tmp_path / "c.jsonl").write_bytes(b'{"id": "a\xff", "class": "c", "prompt": ""}')
    with pytest.raises(FormatError, match="line 1: not"):
        read_cases(tmp_path / "c.jsonl")


@pytest.mark.parametrize("content", ["", "\n\n  \n"])
def test_an_empty_file_is_an_error(tmp_path, content):
    (tmp_path / "c.jsonl").write_text(content)
    with pytest.raises(FormatError, match="holds no case"):
        read_cases(tmp_path / "c.jsonl")


def test_an_id_that_occurs_twice_is_named_with_both_places(tmp_path):
    write(tmp_path / "a.jsonl", GOOD)
    write(tmp_path / "b.jsonl", GOOD | {"id": "z"}, GOOD)
    with pytest.raises(ConfigError) as caught:
        load_cases(WorkloadSpec(cases=("a.jsonl", "b.jsonl")), tmp_path)
    assert "a.jsonl: line 1" in str(caught.value)
    assert "b.jsonl: line 2" in str(caught.value)


@pytest.mark.parametrize("entry", ["missing.jsonl", "cases/*.jsonl", "."])
def test_files_that_are_not_there_are_named(tmp_path, entry):
    with pytest.raises(ConfigError, match="cannot read the cases") as caught:
        load_cases(WorkloadSpec(cases=(entry,)), tmp_path)
    assert entry.strip(".") in str(caught.value)


def test_no_cases_at_all_is_an_error(tmp_path):
    with pytest.raises(ConfigError, match="has no case"):
        load_cases(WorkloadSpec(cases=()), tmp_path)


def test_a_required_class_that_is_too_small_is_an_error(tmp_path):
    write(tmp_path / "a.jsonl", GOOD)
    spec = WorkloadSpec(cases=("a.jsonl",), classes_required={"tool_call": 1})
    with pytest.raises(ConfigError, match="class `tool_call` are required.*has 0"):
        load_cases(spec, tmp_path)


def test_max_cases_draws_a_part(tmp_path):
    write(tmp_path / "a.jsonl", *(GOOD | {"id": str(i)} for i in range(20)))
    spec = WorkloadSpec(cases=("a.jsonl",), max_cases=5)
    assert len(load_cases(spec, tmp_path)) == 5


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)


@pytest.mark.slow
@given(
    reference=json_values,
    parameters=st.dictionaries(st.text(max_size=3), json_values, max_size=3),
    tags=st.dictionaries(st.text(max_size=3), st.text(max_size=3), max_size=2),
    text=st.text(max_size=20),
    scorers=st.lists(st.text(max_size=3), max_size=2),
)
def test_a_case_written_down_reads_back_equal(
    reference, parameters, tags, text, scorers
):
    case = Case(
        id="a",
        class_="c",
        prompt=text,
        reference=reference,
        parameters=parameters,
        tags=tags,
        scorers=tuple(scorers),
    )
    assert decode_case(case_line(case)) == case


def test_a_file_of_cases_reads_back_equal(tmp_path):
    cases = tuple(
        Case(id=str(i), class_="c", messages=({"role": "user", "content": "é\u2028"},))
        for i in range(3)
    )
    write_cases(cases, tmp_path / "out.jsonl")
    assert read_cases(tmp_path / "out.jsonl") == cases
