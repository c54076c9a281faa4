import xml.etree.ElementTree as ElementTree

import msgspec
import pytest
from report_cases import a_judgement

from routeproof.gates.result import Check, GateResult, Status
from routeproof.reports import junit
from routeproof.verdict import Decision


def parsed(judgement, **options):
    return ElementTree.fromstring(junit.render(judgement, **options))


def case(root, name):
    return root.find(f".//testcase[@name='{name}']")


def test_there_is_a_suite_for_the_verdict_and_one_for_every_gate():
    names = [suite.get("name") for suite in parsed(a_judgement())]
    assert names[0] == "routeproof.verdict"
    assert len(names) == 8


def test_counts_are_those_of_the_cases():
    root = parsed(a_judgement())
    assert int(root.get("tests")) == len(root.findall(".//testcase"))
    assert int(root.get("failures")) == len(root.findall(".//failure"))
    assert int(root.get("skipped")) == len(root.findall(".//skipped"))


@pytest.mark.parametrize("how", ["failure", "skipped"])
def test_an_inconclusive_question_is_shown_as_chosen(how):
    root = parsed(a_judgement(), inconclusive=how)
    found = case(root, "exact_match[class=factual_qa]")
    assert [child.tag for child in found] == [how]


def test_a_failed_question_is_a_failure_whatever_is_chosen():
    root = parsed(a_judgement(), inconclusive="skipped")
    found = case(root, "schema_valid[class=structured]")
    assert found.find("failure").get("message").startswith("failed: ")


def test_a_question_nobody_requires_never_fails_a_build():
    found = case(parsed(a_judgement()), "exact_match[prompt_length=over 4k]")
    assert [child.tag for child in found] == ["skipped"]


@pytest.mark.parametrize(
    ("decision", "require", "fails"),
    [
        (Decision.ADOPT, Decision.ADOPT, False),
        (Decision.PILOT, Decision.ADOPT, True),
        (Decision.PILOT, Decision.PILOT, False),
        (Decision.AVOID, Decision.WAIT, True),
        (Decision.NONE, Decision.WAIT, True),
    ],
)
def test_the_verdict_is_a_test_of_its_own(decision, require, fails):
    root = parsed(a_judgement(decision=decision), require=require)
    found = case(root, f"at least {require.value}")
    assert (found.find("failure") is not None) == fails


def test_control_characters_do_not_break_the_file():
    check = Check(name="a\x00b", status=Status.FAILED, reason="\x1b[31m\ud800 <&>")
    gate = GateResult(gate="latency", status=Status.FAILED, reason="r", checks=(check,))
    judgement = msgspec.structs.replace(a_judgement(), gates=(gate,))
    [question] = parsed(judgement)[1]
    assert question.find("failure").get("message").endswith("<&>")
