"""Which questions are asked, of which slices, with which tolerance."""

import pytest
from builders import a_case
from gate_cases import agreed

from routeproof.gates.questions import (
    DEFAULT_TOLERANCE,
    HEADLINE,
    finest_tolerance,
    questions,
)
from routeproof.gates.slices import case_facts
from routeproof.proof.policy import QualityGateSpec
from routeproof.stats.mean_bounds import betting_minimum
from routeproof.stats.planner import zero_flip_minimum


def facts(cases=None, prompts=None, outputs=None):
    return case_facts(
        cases or [a_case(i) for i in range(120)], prompts or {}, outputs or {}
    )


def asked(cases=None, **changes):
    return {q.name: q for q in questions(agreed(**changes), facts(cases))}


def test_a_declared_question_is_asked_as_declared():
    spec = QualityGateSpec(metric="numeric", tolerance=0.01, slice={"class": "maths"})
    question = asked(quality=(spec,))["numeric[class=maths]"]
    assert (question.tolerance, question.origin) == (0.01, "declared")


def test_nothing_declared_asks_for_the_headline():
    question = asked(quality=())[HEADLINE]
    assert (question.tolerance, question.origin) == (DEFAULT_TOLERANCE, "default")
    assert question.is_required


def test_every_slice_nobody_asked_for_is_screened():
    found = asked()
    screened = {name for name, q in found.items() if q.origin == "screening"}
    assert "headline[class=arithmetic]" in screened
    assert not any(found[name].is_required for name in screened)


def test_a_required_class_is_asked_once_and_not_screened_as_well():
    found = asked(classes_required={"arithmetic": 40})
    question = found["headline[class=arithmetic]"]
    assert question.origin == "required_class"
    assert question.pairs_required == 40


def test_a_class_declared_with_a_tolerance_keeps_it_and_its_count():
    spec = QualityGateSpec(
        metric="contains", tolerance=0.02, slice={"class": "arithmetic"}
    )
    found = asked(quality=(spec,), classes_required={"arithmetic": 40})
    assert found["contains[class=arithmetic]"].pairs_required == 40
    assert "headline[class=arithmetic]" not in found


@pytest.mark.parametrize("count", [10, 30, 50, 59, 99, 299])
def test_a_required_class_gets_a_tolerance_its_count_can_decide(count):
    tolerance = finest_tolerance(count, 0.05)
    finer = tolerance - 0.001
    assert zero_flip_minimum(tolerance, 0.05) <= count
    assert betting_minimum(tolerance, 0.05) <= count
    assert zero_flip_minimum(finer, 0.05) >= count or (
        betting_minimum(finer, 0.05) > count
    )


def test_names_people_write_for_a_scorer_are_understood():
    spec = QualityGateSpec(metric="schema_valid", tolerance=0.02)
    assert "json_schema" in asked(quality=(spec,))


def test_slices_come_from_class_tags_form_and_length():
    cases = [
        a_case(
            i,
            tags={"language": "fr" if i % 2 else "en", "serial": str(i)},
            parameters={"tools": []} if i < 30 else {},
        )
        for i in range(120)
    ]
    lengths = {case.id: 10.0 * (1 + i) for i, case in enumerate(cases)}
    found = facts(cases, prompts=lengths).slices()
    keys = {key for each in found for key in each}
    assert keys == {"class", "language", "structured", "prompt_length"}
    assert {"language": "fr"} in found
    assert sum("prompt_length" in each for each in found) == 3


def test_lengths_that_hardly_differ_are_no_slice():
    alike = {f"case-{i:05d}": 20.0 + i % 3 for i in range(120)}
    assert not any("prompt_length" in each for each in facts(prompts=alike).slices())


def test_small_slices_are_not_screened():
    cases = [a_case(i, tags={"rare": "yes" if i < 5 else "no"}) for i in range(60)]
    assert {"rare": "yes"} not in facts(cases).slices()


def test_cases_of_a_slice_carry_all_its_tags():
    cases = [a_case(0, tags={"language": "fr"}), a_case(1), a_case(3)]
    wanted = {"class": "factual_qa", "language": "fr"}
    assert facts(cases).ids(wanted) == {"case-00000"}
    assert len(facts(cases).ids({})) == 3


def test_language_and_tools_of_a_prompt_are_slices_of_their_own():
    spanish = "¿Cuál es la capital de Francia y por qué es una ciudad tan visitada?"
    cases = [
        a_case(0, messages=({"role": "user", "content": spanish},)),
        a_case(1, tags={"language": "fr"}),
        a_case(2, parameters={"tools": [{"type": "function"}]}),
        a_case(
            3,
            messages=(
                {
                    "role": "user",
                    "content": "请用中文解释什么是日食，为什么会发生，以及怎样观看",
                },
            ),
        ),
    ]
    tags = facts(cases).tags
    found = [tags[case.id].get("language") for case in cases]
    assert found == ["es", "fr", None, "zh"]
    assert [tags[case.id]["tools"] for case in cases] == ["no", "no", "yes", "no"]


def test_several_user_turns_are_multi_turn():
    turns = ({"role": "user", "content": "a"}, {"role": "user", "content": "b"})
    found = facts([a_case(0, messages=turns), a_case(1)])
    assert found.tags["case-00000"]["turns"] == "multi"
    assert found.tags["case-00001"]["turns"] == "single"
