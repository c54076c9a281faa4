"""The veto gate: questions, guard, lengths, equality."""

import pytest
from builders import a_speculative_diff, with_
from gate_cases import (
    a_quality_row,
    a_ratio,
    an_answer,
    changed,
    check_of,
    evidence,
)

from routeproof.gates.correctness import judge_correctness
from routeproof.gates.evidence import Quality
from routeproof.gates.facts import EqualityRow
from routeproof.gates.result import Status


def judged(*rows, **changes):
    return judge_correctness(with_(evidence(), quality=Quality(rows=rows, **changes)))


def test_every_required_question_certified_passes():
    assert judged(a_quality_row(), a_quality_row("numeric")).status is Status.PASSED


def test_one_open_question_leaves_the_gate_open():
    found = judged(a_quality_row(), a_quality_row("numeric", "undecided"))
    assert found.status is Status.INCONCLUSIVE
    assert found.reason.startswith("numeric:")


def test_one_harmed_question_fails_whatever_the_others_say():
    found = judged(a_quality_row(), a_quality_row("numeric", "harmed"))
    assert found.status is Status.FAILED
    assert "numeric" in found.reason


def test_harm_inside_the_tolerance_passes_and_says_worse():
    answer = an_answer("certified", estimate=-0.01, harm_p_value=0.01)
    check = check_of(judged(a_quality_row(answer=answer)), "contains")
    assert check.status is Status.PASSED
    assert "worse" in check.notes


def test_a_required_class_with_too_few_pairs_is_open_however_good():
    row = a_quality_row(
        "headline[class=tool_call]",
        answer=an_answer(n=30),
        origin="required_class",
        slice={"class": "tool_call"},
        pairs_required=50,
    )
    check = check_of(judged(row), "headline")
    assert check.status is Status.INCONCLUSIVE
    assert check.n_needed == 50
    assert "50 are required" in check.reason


def test_missing_pairs_that_could_hide_a_loss_are_named():
    answer = an_answer("undecided", estimate=0.0, missing=9)
    check = check_of(judged(a_quality_row(answer=answer)), "contains")
    assert check.status is Status.INCONCLUSIVE
    assert "9 missing pairs" in check.reason


def test_too_small_a_question_is_not_powered_and_says_how_many_decide():
    answer = an_answer("undecided", estimate=0.0, n=40)
    check = check_of(judged(a_quality_row(answer=answer)), "contains")
    assert "not powered" in check.reason
    assert check.n_needed == 99


def test_a_question_without_any_pair_is_never_a_pass():
    row = a_quality_row(answer=None, units=0)
    row = with_(row, answer=None, units=0)
    assert judged(row).status is Status.INCONCLUSIVE
    assert judged().status is Status.NOT_MEASURED


def a_screened(decision, **changes):
    return a_quality_row(
        "headline[language=es]",
        answer=an_answer(decision, **changes.pop("answer", {})),
        origin="screening",
        is_required=False,
        slice={"language": "es"},
        **changes,
    )


def test_an_undeclared_slice_fails_only_after_correction():
    harmed = judged(a_quality_row(), a_screened("harmed", adjusted_harm_p=0.02))
    assert harmed.status is Status.FAILED
    by_chance = judged(a_quality_row(), a_screened("harmed", adjusted_harm_p=0.4))
    assert by_chance.status is Status.PASSED


def test_a_slice_that_shows_a_loss_caps_the_verdict():
    odd = a_screened("undecided", answer={"estimate": -0.1, "n": 20})
    assert "screening_inconclusive" in judged(a_quality_row(), odd).flags


def test_a_slice_large_enough_to_decide_and_open_caps_the_verdict():
    wide = a_screened("undecided", answer={"estimate": -0.01, "n": 300})
    assert "screening_inconclusive" in judged(a_quality_row(), wide).flags


def test_a_slice_too_small_that_shows_nothing_is_listed_and_caps_nothing():
    small = a_screened("undecided", answer={"estimate": 0.0, "n": 20})
    found = judged(a_quality_row(), small)
    assert check_of(found, "headline").status is Status.INCONCLUSIVE
    assert found.flags == ()
    assert found.status is Status.PASSED


@pytest.mark.parametrize(
    ("low", "high", "status"),
    [
        (0.95, 1.05, Status.PASSED),
        (0.80, 0.95, Status.INCONCLUSIVE),
        (0.60, 0.85, Status.FAILED),
        (1.20, 1.50, Status.FAILED),
    ],
)
def test_the_length_guard_is_two_sided(low, high, status):
    ratio = a_ratio("output_length", 1 / ((low + high) / 2), 1 / high, 1 / low)
    found = judge_correctness(changed(evidence(), "speed", length_ratio=ratio))
    assert check_of(found, "guard[output_length]").status is status
    assert ("guard_tripped" in found.flags) == (status is Status.FAILED)


def equality(pair, equal, pairs=100, near=None, real=None):
    return EqualityRow(pair=pair, pairs=pairs, equal=equal, near_ties=near, real=real)


def lossless(*rows):
    found = with_(
        evidence(),
        routes=a_speculative_diff(),
        quality=Quality(rows=(a_quality_row(),), equality=rows),
    )
    return judge_correctness(found)


def test_equal_greedy_texts_of_a_lossless_change_pass():
    check = check_of(lossless(equality("candidate", 100)), "greedy_equality")
    assert check.status is Status.PASSED


def paired(control_only, candidate_only, cases=1000, **changes):
    """A candidate that differs in 300 of 1,000 texts, held against its control."""
    return with_(
        equality("candidate", cases - 300, cases),
        cases=cases,
        control_only=control_only,
        candidate_only=candidate_only,
        **changes,
    )


def test_divergences_no_more_frequent_than_on_the_control_pass():
    found = check_of(lossless(paired(20, 20)), "greedy_equality")
    assert found.status is Status.PASSED
    assert "a loss of more than 3% of matches is excluded" in found.reason


def test_noise_that_is_only_not_refuted_is_no_pass():
    """The same rates in a tenth of the cases exclude nothing, and say how many do."""
    row = with_(paired(8, 4, 100), pairs=100, equal=70)
    found = check_of(lossless(row, equality("control", 74)), "greedy_equality")
    assert found.status is Status.INCONCLUSIVE
    assert found.n_needed > 100


def test_more_divergences_than_the_control_shows_are_no_pass():
    found = check_of(lossless(paired(90, 20)), "greedy_equality")
    assert found.status is Status.INCONCLUSIVE


def test_equal_texts_say_what_they_would_have_shown():
    found = check_of(lossless(equality("candidate", 59, 59)), "greedy_equality")
    assert "a fault in 5.0% of the answers would have been seen" in found.reason


def test_greedy_texts_under_load_are_a_check_of_their_own():
    at = {"phase": "sweep", "level": "c8"}
    rows = (
        with_(equality("candidate", 40, 100, near=0, real=60), **at),
        with_(equality("control", 100, 100, near=0, real=0), **at),
    )
    whole = (equality("candidate", 100), equality("control", 100))
    quality = Quality(rows=(a_quality_row(),), equality=whole, equality_under_load=rows)
    found = judge_correctness(
        with_(evidence(), routes=a_speculative_diff(), quality=quality)
    )
    assert found.status is Status.FAILED
    check = check_of(found, "greedy_equality[level=c8")
    assert check.status is Status.FAILED and check.slice == {
        "level": "c8",
        "phase": "sweep",
    }
    assert any("lossy" in hint for hint in found.hints)


def test_divergences_that_are_all_near_ties_pass():
    rows = (
        equality("candidate", 70, near=30, real=0),
        equality("control", 100, near=0, real=0),
    )
    assert check_of(lossless(*rows), "greedy_equality").status is Status.PASSED


def test_real_divergences_of_a_lossless_change_fail():
    rows = (
        equality("candidate", 70, near=10, real=20),
        equality("control", 100, near=0, real=0),
    )
    found = lossless(*rows)
    assert found.status is Status.FAILED
    assert check_of(found, "greedy_equality").status is Status.FAILED


def test_divergences_nobody_can_explain_cap_a_lossless_change():
    rows = (equality("candidate", 70), equality("control", 100))
    found = lossless(*rows)
    assert check_of(found, "greedy_equality").status is Status.INCONCLUSIVE
    assert "screening_inconclusive" in found.flags


def test_a_lossy_change_need_not_match_text_by_text():
    rows = (equality("candidate", 0, near=0, real=100),)
    found = judged(a_quality_row(), equality=rows)
    assert found.status is Status.PASSED


def test_one_harmed_class_says_where_to_look():
    row = a_quality_row(
        "headline[class=tool_call]",
        "harmed",
        origin="required_class",
        slice={"class": "tool_call"},
    )
    assert "tool_call" in judged(a_quality_row(), row).hints[0]


def sampled(p, floor, change_class="lossless"):
    row = {
        "test": "distribution",
        "p_value": p,
        "control_p_value": floor,
        "prompts": 40,
        "answers": 320,
    }
    found = with_(
        evidence(),
        routes=a_speculative_diff(change_class),
        quality=Quality(rows=(a_quality_row(),), sampled=(row,)),
    )
    return check_of(judge_correctness(found), "sampled[distribution]")


def test_a_sharper_test_accuses_at_a_fifth_of_the_error_rate():
    def siblings(p):
        row = {
            "test": "siblings", "p_value": p, "control_p_value": 0.5, "prompts": 4,
            "answers": 32, "power": "sees much",
        }  # fmt: skip
        found = with_(
            evidence(),
            routes=a_speculative_diff(),
            quality=Quality(rows=(a_quality_row(),), sampled=(row,)),
        )
        return check_of(judge_correctness(found), "sampled[siblings]")

    assert siblings(0.005).status is Status.FAILED
    assert siblings(0.03).status is Status.INCONCLUSIVE
    assert siblings(0.3).status is Status.PASSED
    assert siblings(0.3).reason.endswith("sees much")


def test_sampled_answers_of_another_distribution_fail_a_lossless_change():
    assert sampled(0.001, 0.6).status is Status.FAILED


def test_a_stack_that_differs_from_itself_accuses_nobody():
    assert sampled(0.001, 0.01).status is Status.INCONCLUSIVE


def test_a_lossy_change_may_have_another_distribution():
    assert sampled(0.001, 0.6, "lossy").status is Status.PASSED


def test_finding_no_difference_is_not_called_a_proof():
    assert "proves none" in sampled(0.4, 0.6).reason


def test_pairs_that_neither_arm_answered_leave_a_question_open():
    found = judged(a_quality_row(unanswered=150))
    assert found.status is Status.INCONCLUSIVE
    assert "150 pairs more were answered by neither arm" in found.reason
    assert judged(a_quality_row(unanswered=3)).status is Status.PASSED
