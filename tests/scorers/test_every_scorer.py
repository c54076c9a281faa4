import pytest
from hypothesis import given, settings
from scorer_cases import a_call, a_case, an_answer, any_text

from routeproof.scorers.table import SCORERS

CASES = {
    "exact_match": a_case("Paris"),
    "contains": a_case(["Paris", "Lyon"]),
    "regex": a_case(r"\d+\s*km"),
    "numeric": a_case("1,000"),
    "choice": a_case("B", options={"choices": ["one", "two", "three"]}),
    "json_schema": a_case(options={"schema": {"type": "object"}}),
    "json_schema_fenced": a_case(options={"schema": {"type": ["object", "array"]}}),
    "json_fields": a_case({"a": 1}),
    "tool_call": a_case([{"name": "f", "arguments": {"x": 1}}]),
    "refusal": a_case(options={"should_refuse": False}),
    "over_refusal": a_case(options={"should_refuse": False}),
    "under_refusal": a_case(options={"should_refuse": True}),
    "instruction": a_case([{"id": "no_comma"}, {"id": "two_responses"}]),
    "instruction_share": a_case([{"id": "title"}, {"id": "json_format"}]),
    "degeneration": a_case(),
    "ndcg": a_case({"a": 2, "p": 1}),
    "recall_at_k": a_case(["a", "7"]),
    "reciprocal_rank": a_case(["a", "7"]),
    "average_precision": a_case(["a", "7"]),
    "grounded": a_case("The answer is 7, in Paris."),
    "reference_likelihood": a_case("Paris"),
}
every_scorer = pytest.mark.parametrize("name", sorted(SCORERS))


def test_every_scorer_has_a_case_here():
    assert set(CASES) == set(SCORERS)


@pytest.mark.slow
@every_scorer
@settings(max_examples=60, deadline=None)
@given(text=any_text)
def test_any_text_gets_a_bounded_storable_and_repeatable_score(name, text):
    score = SCORERS[name].of(CASES[name], an_answer(text))
    assert score == SCORERS[name].of(CASES[name], an_answer(text))
    assert score.value is None or 0 <= score.value <= 1
    assert not SCORERS[name].binary or score.value in (0, 1, None)
    f"{score.extracted}{score.trace}".encode()
    assert (score.value is None) == (score.class_ in ("failed", "unscored"))


@pytest.mark.slow
@every_scorer
@settings(max_examples=20, deadline=None)
@given(text=any_text)
def test_reasoning_never_changes_the_score(name, text):
    if "<" in text or "[" in text or not text.strip():
        return
    scorer = SCORERS[name]
    hidden = an_answer(f"<think>Paris, 1000 (B) I cannot {{</think>\n{text}")
    plain = scorer.of(CASES[name], an_answer("\n" + text))
    seen = scorer.of(CASES[name], hidden)
    assert (seen.class_, seen.value) == (plain.class_, plain.value)


@every_scorer
@pytest.mark.parametrize(
    "outcome",
    [
        "http_error",
        "timeout",
        "connection_error",
        "cut_short",
        "not_started",
        "cancelled",
    ],
)
def test_a_failed_request_is_failed_and_never_a_zero(name, outcome):
    score = SCORERS[name].of(CASES[name], an_answer("Paris", outcome=outcome))
    assert (score.class_, score.value) == ("failed", None)


@every_scorer
def test_cut_inside_its_reasoning_is_truncated_and_not_an_answer(name):
    cut = an_answer(
        "<think>Paris 1000 (B)", outcome="truncated", finish_reason="length"
    )
    score = SCORERS[name].of(CASES[name], cut)
    assert (score.class_, score.value) == ("truncated", 0.0)


@every_scorer
@pytest.mark.slow
@pytest.mark.parametrize("unit", ["a ", "[", "1,", "((( ", "*", '{"a":'])
def test_ten_megabytes_are_scored(name, unit):
    text = unit * (10_000_000 // len(unit))
    score = SCORERS[name].of(CASES[name], an_answer(text))
    assert len(score.trace) <= 200


@every_scorer
@pytest.mark.parametrize("reference", [None, "", [], {}, 3.5, [None], {"a": []}, "("])
def test_a_reference_that_makes_no_sense_is_never_silently_wrong(name, reference):
    score = SCORERS[name].of(a_case(reference), an_answer("Paris 7"))
    reads_no_reference = {"over_refusal", "under_refusal", "degeneration"}
    if score.class_ == "wrong" and name not in reads_no_reference:
        assert (name, reference) in {
            ("exact_match", "("),
            ("contains", "("),
            ("exact_match", 3.5),
            ("contains", 3.5),
            ("numeric", 3.5),
            ("json_schema", "x"),
        }, score


def test_tool_calls_of_any_shape_are_scored():
    scorer, case = SCORERS["tool_call"], CASES["tool_call"]
    for calls in (
        {},
        {"name": 3},
        {"name": "f"},
        {"name": "f", "arguments": "[1"},
        {"name": "f", "arguments": []},
        a_call("f", x=1),
    ):
        assert scorer.of(case, an_answer(tool_calls=(calls,))).value in (0, 1)
