from collections import Counter

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
