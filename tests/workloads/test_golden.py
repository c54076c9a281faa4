import json
from collections import Counter

import pytest

from routeproof.scorers.score import ScoredAnswer
from routeproof.scorers.table import SCORERS
from routeproof.workloads.cases import case_problem
from routeproof.workloads.golden import GOLDEN_CLASSES, golden_cases


def test_the_golden_set_has_twenty_cases_and_more_in_every_class():
    counts = Counter(case.class_ for case in golden_cases())
    assert list(counts) == list(GOLDEN_CLASSES)
    assert min(counts.values()) >= 20
    assert sum(counts.values()) >= 240


def test_every_golden_case_can_be_sent():
    cases = golden_cases()
    assert [case_problem(case) for case in cases if case_problem(case)] == []
    assert len({case.id for case in cases}) == len(cases)


def test_no_golden_case_can_run_on_for_long():
    for case in golden_cases():
        assert 0 < case.parameters["max_tokens"] <= 128, case.id


def test_a_prompt_occurs_once_only():
    texts = Counter(str(case.messages) for case in golden_cases())
    assert [text for text, times in texts.items() if times > 1] == []


def gold(case):
    """An answer that says just what the reference asks for."""
    scorer, reference = case.scorers[0], case.reference
    if scorer == "tool_call":
        calls = tuple(
            {"name": call["name"], "arguments": json.dumps(call["arguments"])}
            for call in reference
        )
        return ScoredAnswer(text="" if calls else "Hello.", tool_calls=calls)
    if scorer == "json_fields":
        return ScoredAnswer(text=json.dumps(reference))
    if scorer == "refusal":
        refuses = case.options["should_refuse"]
        return ScoredAnswer(text="I cannot help with that." if refuses else "Gladly.")
    if scorer == "contains" and case.options.get("mode") == "all":
        return ScoredAnswer(text=" and ".join(reference))
    if isinstance(reference, list):
        return ScoredAnswer(text=reference[0])
    return ScoredAnswer(text=str(reference))


@pytest.mark.parametrize("name", sorted(set(GOLDEN_CLASSES)))
def test_the_reference_itself_scores_one_and_nonsense_does_not(name):
    for case in golden_cases():
        if case.class_ != name or case.scorers[0] == "instruction":
            continue
        score = SCORERS[case.scorers[0]].of
        assert score(case, gold(case)).value == 1, case.id
        if case.scorers[0] not in ("refusal", "tool_call"):
            assert score(case, ScoredAnswer(text="zebra fog")).value == 0, case.id


def test_constraints_of_long_answers_can_be_kept_and_broken():
    checked = 0
    for case in golden_cases():
        if case.scorers[0] == "instruction":
            score = SCORERS["instruction"].of
            listed = "\n".join(f"{i}. Walk more." for i in range(1, 6))
            assert score(case, ScoredAnswer(text=listed)).value == 1, case.id
            assert score(case, ScoredAnswer(text="First, go.")).value == 0, case.id
            checked += 1
    assert checked > 10


def test_answers_that_repeat_the_prompt_are_long_enough_to_draft():
    copies = [c for c in golden_cases() if c.tags.get("kind") == "copy_long"]
    assert len(copies) >= 10
    for case in copies:
        assert case.reference in case.messages[-1]["content"]
        assert len(case.reference.split()) > 50
