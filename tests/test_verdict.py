"""The fold: every row of the table, the veto, and what adopt takes."""

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from routeproof.gates.result import Check, Flag, GateName, GateResult, Status
from routeproof.verdict import Decision, decide

NAMES = get_args(GateName)
PERFORMANCE = ("latency", "acceptance")
COMPARABILITY = {
    "synthetic_acceptance",
    "parity_broken",
    "workload_differs",
    "client_saturated",
}
PERFORMANCE_FLAGS = ("below_floor", "gain_proven", "slower", "slo_missed")


def a_gate(name, status=Status.PASSED, *flags, checks=()):
    return GateResult(
        gate=name, status=status, reason=f"{name} said so", flags=flags, checks=checks
    )


def gates(**changes):
    """All seven passed, but for the changes: a status, or a status and flags."""
    given = {name: (Status.PASSED,) for name in NAMES}
    for name, value in changes.items():
        given[name] = value if isinstance(value, tuple) else (value,)
    return [a_gate(name, *value) for name, value in given.items()]


def decided(**changes):
    return decide(gates(**changes)).decision


def test_all_seven_passed_is_adopt():
    assert decided() is Decision.ADOPT


def test_a_route_without_speculation_needs_no_acceptance():
    assert (
        decided(acceptance=(Status.NOT_MEASURED, "not_speculative")) is Decision.ADOPT
    )


@pytest.mark.parametrize(
    ("gate", "flag"),
    [
        ("inventory", "synthetic_acceptance"),
        ("parity", "parity_broken"),
        ("parity", "workload_differs"),
        ("latency", "client_saturated"),
    ],
)
def test_what_cannot_be_compared_gets_no_verdict_whatever_else_failed(gate, flag):
    changes = {gate: (Status.FAILED, flag), "correctness": Status.FAILED}
    assert decided(**changes) is Decision.NONE


def test_failed_correctness_is_avoid_with_correctness_drift():
    verdict = decide(gates(correctness=Status.FAILED))
    assert verdict.decision is Decision.AVOID
    assert verdict.stop_use == ("correctness_drift",)
    assert verdict.reasons[0] == "correctness: correctness said so"


def test_a_tripped_guard_is_avoid_even_where_the_scores_passed():
    assert decided(correctness=(Status.PASSED, "guard_tripped")) is Decision.AVOID


@pytest.mark.parametrize(
    ("flag", "condition"),
    [("memory_over", "memory_pressure"), ("unstable", "unstable_runtime")],
)
def test_failed_memory_or_stability_is_avoid(flag, condition):
    verdict = decide(gates(memory_stability=(Status.FAILED, flag)))
    assert verdict.decision is Decision.AVOID
    assert verdict.stop_use == (condition,)


def test_low_acceptance_without_a_gain_is_avoid():
    verdict = decide(gates(acceptance=(Status.FAILED, "below_floor")))
    assert verdict.decision is Decision.AVOID
    assert "low_acceptance" in verdict.stop_use


def test_low_acceptance_with_a_proven_gain_waits():
    changes = {
        "acceptance": (Status.FAILED, "below_floor"),
        "latency": (Status.PASSED, "gain_proven"),
    }
    assert decided(**changes) is Decision.WAIT


def test_slower_is_avoid_and_an_slo_missed_waits():
    assert decided(latency=(Status.FAILED, "slower")) is Decision.AVOID
    assert decided(latency=(Status.FAILED, "slo_missed")) is Decision.WAIT


@pytest.mark.parametrize("status", [Status.INCONCLUSIVE, Status.NOT_MEASURED])
def test_open_correctness_waits_even_when_the_candidate_is_slower(status):
    assert decided(correctness=status) is Decision.WAIT
    slower = decided(correctness=status, latency=(Status.FAILED, "slower"))
    assert slower is Decision.WAIT


def test_a_runtime_below_merged_waits():
    assert decided(inventory=(Status.INCONCLUSIVE, "maturity_low")) is Decision.WAIT


def test_a_failed_drill_waits_and_a_missing_one_is_a_pilot():
    assert decided(rollback=Status.FAILED) is Decision.WAIT
    undrilled = decided(rollback=(Status.NOT_MEASURED, "not_drilled"))
    assert undrilled is Decision.PILOT


def test_latency_that_is_not_measured_waits():
    assert decided(latency=Status.NOT_MEASURED) is Decision.WAIT
    assert decided(latency=Status.INCONCLUSIVE) is Decision.WAIT


def test_a_workload_that_hides_a_decode_gain_is_a_pilot():
    hidden = (Status.INCONCLUSIVE, "decode_gain_hidden")
    assert decided(latency=hidden) is Decision.PILOT


@pytest.mark.parametrize(
    ("gate", "flag"),
    [
        ("inventory", "maturity_merged"),
        ("inventory", "unverified_fields"),
        ("correctness", "screening_inconclusive"),
    ],
)
def test_caps_make_a_pilot_of_what_would_be_adopted(gate, flag):
    assert decided(**{gate: (Status.PASSED, flag)}) is Decision.PILOT


def test_memory_that_was_not_measured_caps_at_pilot():
    assert decided(memory_stability=Status.NOT_MEASURED) is Decision.PILOT


def test_a_gate_that_is_missing_counts_as_not_measured():
    assert decide([]).decision is Decision.WAIT
    without = [gate for gate in gates() if gate.gate != "memory_stability"]
    assert decide(without).decision is Decision.PILOT


def test_reasons_come_in_the_order_of_the_table():
    found = decide(
        gates(
            rollback=(Status.NOT_MEASURED, "not_drilled"),
            latency=(Status.FAILED, "slower"),
            correctness=Status.FAILED,
        )
    )
    assert [reason.split(":")[0] for reason in found.reasons] == [
        "correctness",
        "latency",
        "rollback",
    ]


def test_what_would_change_names_the_checks_and_how_many_more():
    check = Check(
        name="exact_match",
        status=Status.INCONCLUSIVE,
        reason="too few pairs",
        n=40,
        n_needed=99,
    )
    other = [gate for gate in gates() if gate.gate != "correctness"]
    found = decide(
        [*other, a_gate("correctness", Status.INCONCLUSIVE, checks=(check,))]
    )
    assert found.would_change == ("exact_match: too few pairs (59 more needed)",)


def test_an_adopted_route_says_when_to_look_again():
    assert decide(gates()).retest


statuses = st.sampled_from(list(Status))
flags = st.lists(st.sampled_from(get_args(Flag)), unique=True, max_size=4)
any_gates = st.fixed_dictionaries(
    {name: st.tuples(statuses, flags) for name in NAMES}
).map(lambda d: [a_gate(name, status, *raised) for name, (status, raised) in d.items()])
performance = st.tuples(
    statuses,
    st.lists(st.sampled_from(PERFORMANCE_FLAGS), unique=True),
)


@given(
    others=any_gates,
    correctness=st.sampled_from([s for s in Status if s is not Status.PASSED]),
    first=st.tuples(performance, performance),
    second=st.tuples(performance, performance),
)
def test_no_performance_result_changes_the_verdict_while_correctness_has_not_passed(
    others, correctness, first, second
):
    kept = [gate for gate in others if gate.gate not in (*PERFORMANCE, "correctness")]
    kept = [
        a_gate(g.gate, g.status, *(f for f in g.flags if f not in PERFORMANCE_FLAGS))
        for g in kept
    ]
    kept.append(a_gate("correctness", correctness))

    def with_performance(results):
        speed = [
            a_gate(name, status, *raised)
            for name, (status, raised) in zip(PERFORMANCE, results, strict=True)
        ]
        return decide([*kept, *speed])

    one, other = with_performance(first), with_performance(second)
    assert one.decision is other.decision


@given(any_gates)
def test_only_passed_everywhere_gives_adopt(results):
    found = decide(results)
    passed = all(
        gate.status is Status.PASSED
        or (gate.gate == "acceptance" and "not_speculative" in gate.flags)
        for gate in results
    )
    if found.decision is Decision.ADOPT:
        assert passed
    if not passed:
        assert found.decision is not Decision.ADOPT


@given(any_gates)
def test_every_verdict_has_a_reason_and_a_way_on(results):
    found = decide(results)
    assert found.reasons
    assert found.retest


@given(any_gates)
def test_the_order_in_which_gates_are_given_does_not_matter(results):
    assert decide(results) == decide(results[::-1])


@given(any_gates, st.sampled_from(sorted(COMPARABILITY)))
def test_incomparable_routes_never_get_a_verdict(results, flag):
    spoiled = [
        a_gate(g.gate, g.status, *g.flags, flag) if g.gate == "parity" else g
        for g in results
    ]
    assert decide(spoiled).decision is Decision.NONE
