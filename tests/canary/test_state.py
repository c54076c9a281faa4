from typing import get_args

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from routeproof.canary.deciding.state import (
    RESTING,
    Phase,
    Seen,
    SignalOutcome,
    State,
    Steps,
    advance,
    new_attempt,
    obey,
)

STEPS = Steps(minimum_scored=10, step_deadline_s=100.0, hold_deadline_s=20.0)
PASS = {"schema": SignalOutcome.PASS}


def started(now_s=0.0):
    fresh = State(name="c", candidate_digest="d")
    return obey(fresh, "start", now_s, STEPS)


def look(now_s, signals=PASS, scored=10, share=None):
    return Seen(
        now_s=now_s,
        signals=signals,
        scored_canary=scored,
        scored_control=scored,
        observed_share=share,
    )


def test_all_signals_passing_with_enough_answers_widen_step_by_step_to_promotion():
    state, weights = started(), []
    for second in range(1, 6):
        weights.append(state.weight_ppm)
        state = advance(state, look(float(second)), STEPS)
    assert weights == [10_000, 50_000, 250_000, 500_000, 1_000_000]
    assert state.phase == "promoted"


def test_one_failing_signal_takes_the_weight_to_zero_at_once():
    seen = look(1.0, {**PASS, "length": SignalOutcome.FAIL}, scored=0)
    state = advance(started(), seen, STEPS)
    assert (state.phase, state.weight_ppm) == ("rolling_back", 0)
    assert "length" in state.reason


@pytest.mark.parametrize(
    "outcome", [o for o in SignalOutcome if o not in ("pass", "fail")]
)
def test_an_outcome_without_a_verdict_never_widens_and_ends_at_its_deadline(outcome):
    state = started()
    for second in range(1, 40):
        state = advance(state, look(float(second), {"a": outcome}), STEPS)
        assert state.weight_ppm <= 10_000
    assert state.phase == "rolling_back"


def test_too_few_answers_are_no_hold_but_the_step_has_its_own_deadline():
    state = started()
    state = advance(state, look(50.0, scored=9), STEPS)
    assert state.phase == "stepping"
    assert advance(state, look(100.0, scored=9), STEPS).phase == "rolling_back"


def test_no_required_signal_at_all_is_no_evidence():
    assert advance(started(), look(1.0, {}), STEPS).phase == "held"


def test_a_policy_may_page_instead_of_rolling_back():
    page = Steps(hold_deadline_s=1.0, at_deadline="page", step_deadline_s=100.0)
    state = advance(started(), look(1.0, {}), page)
    state = advance(state, look(3.0, {}), page)
    assert state.paged and state.phase == "held" and state.weight_ppm == 10_000


def test_rollback_is_done_only_when_no_share_is_observed():
    rolling = obey(started(), "rollback", 1.0, STEPS)
    assert advance(rolling, look(2.0, share=0.01), STEPS).phase == "rolling_back"
    assert advance(rolling, look(2.0, share=None), STEPS).phase == "rolling_back"
    assert advance(rolling, look(2.0, share=0.0), STEPS).phase == "rolled_back"


def test_a_rolled_back_digest_needs_an_override():
    rolling = obey(started(), "rollback", 1.0, STEPS)
    done = advance(rolling, look(2.0, share=0.0), STEPS)
    with pytest.raises(ValueError, match="was rolled back"):
        new_attempt(done, "d", 3.0, override=False)
    assert new_attempt(done, "d", 3.0, override=True).phase == "ready"
    assert new_attempt(done, "other", 3.0, override=False).attempt == 2


def test_a_command_out_of_place_is_refused_with_the_reason():
    with pytest.raises(ValueError, match="cannot promote a canary that is ready"):
        obey(State(name="c", candidate_digest="d"), "promote", 0.0, STEPS)


def in_phase(phase):
    """A canary in each phase there is, as it gets there."""
    going = obey(started(), "rollback", 0.0, STEPS)
    return {
        "ready": State(name="c", candidate_digest="d"),
        "stepping": started(),
        "held": advance(started(), look(0.0, {}), STEPS),
        "paused": obey(started(), "pause", 0.0, STEPS),
        "rolling_back": going,
        "rolled_back": advance(going, look(0.0, share=0.0), STEPS),
        "promoted": obey(
            msgspec.structs.replace(started(), step=3), "promote", 0.0, STEPS
        ),
    }[phase]


@pytest.mark.parametrize("phase", get_args(Phase))
def test_every_phase_has_a_way_out_and_each_that_may_serve_unproven_has_a_deadline(
    phase,
):
    state = in_phase(phase)
    assert state.phase == phase
    exits = {"ready": "start", "promoted": "rollback", "rolled_back": "retry"}
    if phase in RESTING:
        assert obey(state, exits[phase], 1.0, STEPS).phase != phase
        return
    silence = look(1_000.0, {"a": SignalOutcome.NO_DATA}, 0, None)
    after = advance(state, silence, STEPS)
    assert after.weight_ppm == 0 and after.phase in ("rolling_back", "rolled_back")
    page = msgspec.structs.replace(STEPS, at_deadline="page")
    called = advance(state, silence, page)
    assert called.paged or called.phase == "rolled_back"
    assert obey(called, "rollback", 1_001.0, page).weight_ppm == 0


class CanaryLife(RuleBasedStateMachine):
    """Any order of looks, commands and waiting keeps the promises."""

    def __init__(self):
        super().__init__()
        self.now_s = 0.0
        self.state = started()
        self.last_change_s = 0.0

    def move(self, state):
        before = self.state
        assert state.revision >= before.revision
        if before.phase == "rolled_back" and state is not before:
            assert state.phase == "ready" and state.attempt == before.attempt + 1
        if state.phase != before.phase:
            self.last_change_s = self.now_s
        self.state = state

    @rule(
        wait_s=st.floats(0.0, 30.0),
        outcome=st.sampled_from(list(SignalOutcome)),
        scored=st.integers(0, 20),
        share=st.sampled_from([None, 0.0, 0.1]),
    )
    def looks(self, wait_s, outcome, scored, share):
        self.now_s += wait_s
        before = self.state
        after = advance(before, look(self.now_s, {"a": outcome}, scored, share), STEPS)
        if after.weight_ppm > before.weight_ppm or after.phase == "promoted":
            assert before.phase == "promoted" or outcome is SignalOutcome.PASS
        self.move(after)

    @rule(
        command=st.sampled_from(
            ["start", "promote", "rollback", "pause", "resume", "retry"]
        )
    )
    def commands(self, command):
        try:
            after = obey(self.state, command, self.now_s, STEPS)
        except ValueError:
            return
        self.move(after)

    @invariant()
    def going_back_means_weight_zero(self):
        if self.state.phase in ("rolling_back", "rolled_back", "ready"):
            assert self.state.weight_ppm == 0

    @invariant()
    def every_state_leaves_by_its_deadline(self):
        state, silence = self.state, {"a": SignalOutcome.NO_DATA}
        for look_number in range(1, 5):
            now_s = self.now_s + 1_000.0 * look_number
            state = advance(state, look(now_s, silence, 0, None), STEPS)
        assert state.phase in RESTING


CanaryLife.TestCase.settings = settings(max_examples=60, stateful_step_count=25)
TestCanaryLife = CanaryLife.TestCase


@given(st.sampled_from(list(SignalOutcome)), st.floats(0, 1e6))
def test_looking_is_pure(outcome, now_s):
    state = started()
    seen = look(now_s, {"a": outcome})
    assert advance(state, seen, STEPS) == advance(state, seen, STEPS)
