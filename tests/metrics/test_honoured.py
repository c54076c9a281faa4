"""Whether an answer honours the parameters of its request."""

import pytest
from builders import a_case
from metric_cases import columns, value
from record_cases import a_record

from routeproof.metrics.honoured import asked_parameters, honoured_columns


def honoured(name, parameters, **answer):
    """1.0 kept, 0.0 not kept, None not asked."""
    case = a_case(0, parameters=parameters)
    part = columns(a_record(case_id=case.id, **answer))
    found = honoured_columns(part, asked_parameters((case,)))
    column = found.get(f"honoured:{name}")
    return None if column is None else value(column)


ALL_ZERO = '[["a", 0.0, []], ["b", 0.0, []]]'


@pytest.mark.parametrize(
    ("name", "parameters", "answer", "expected"),
    [
        ("stop", {"stop": ["END"]}, {"text": "the text"}, 1.0),
        ("stop", {"stop": "END"}, {"text": "the END of it"}, 0.0),
        ("stop", {"max_tokens": 5}, {"text": "END"}, None),
        ("max_tokens", {"max_tokens": 5}, {"output_tokens": 5}, 1.0),
        ("max_tokens", {"max_tokens": 5}, {"output_tokens": 6}, 0.0),
        ("max_tokens", {"max_tokens": 5, "n": 2}, {"output_tokens": 10}, 1.0),
        ("max_tokens", {"max_tokens": 5}, {"output_tokens": None}, None),
        ("choices", {"n": 2}, {"choices": '["a", "b"]'}, 1.0),
        ("choices", {"n": 2}, {"choices": None}, 0.0),
        ("choices", {"n": 1}, {"choices": None}, None),
        ("logprobs", {"logprobs": True}, {"logprobs": '[["a", -0.4, []]]'}, 1.0),
        ("logprobs", {"logprobs": True}, {"logprobs": ALL_ZERO}, 0.0),
        ("logprobs", {"logprobs": True}, {"logprobs": None}, 0.0),
        ("logprobs", {"logprobs": True}, {"logprobs": "broken"}, 0.0),
    ],
)
def test_a_parameter_is_kept_broken_or_not_asked(name, parameters, answer, expected):
    assert honoured(name, parameters, **answer) == expected


def test_a_failed_request_honours_and_breaks_nothing():
    assert honoured("stop", {"stop": "x"}, text=None, outcome="timeout") is None


def test_cases_that_ask_for_nothing_are_not_looked_at():
    assert asked_parameters((a_case(0), a_case(1, parameters={"top_p": 0.5}))) == {}
