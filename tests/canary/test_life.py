"""The whole decision, in any order of events: stores that fail, relays that restart.

A model of one canary with its store, its controller and two relays that hold a lease.
Whatever happens, no relay gives the candidate a share that its state does not allow,
and none at all once its last reading is older than the lease.
"""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from routeproof.canary.deciding.controller import Controller
from routeproof.canary.deciding.lease import Lease
from routeproof.canary.deciding.state import (
    RESTING,
    Seen,
    SignalOutcome,
    State,
    Steps,
    advance,
)
from routeproof.canary.deciding.store import AuditEntry
from routeproof.canary.deciding.store_memory import MemoryStore
from routeproof.errors import ConfigError, StoredRunError

LEASE_S = 10.0
STEPS = Steps(minimum_scored=10, step_deadline_s=300.0, hold_deadline_s=60.0)
COMMANDS = ["start", "promote", "rollback", "pause", "resume", "retry"]


class FragileStore(MemoryStore):
    """A store that can be down."""

    is_down = False

    def read(self, name):
        if self.is_down:
            raise StoredRunError("down")
        return super().read(name)

    def write(self, state, *, expected, entry):
        if self.is_down:
            raise StoredRunError("down")
        super().write(state, expected=expected, entry=entry)


class Life(RuleBasedStateMachine):
    """Two relays, one store; time goes by."""

    @initialize()
    def begin(self):
        self.now_s, self.outcome, self.scored, self.share = 0.0, "no_data", 0, 0.0
        self.store = FragileStore()
        entry = AuditEntry(
            name="c", actor="a", action="create", reason="", at_s=0.0, revision=1
        )
        fresh = State(name="c", candidate_digest="d", revision=1)
        self.store.write(fresh, expected=0, entry=entry)
        self.relays = [self.a_relay(), self.a_relay()]
        self.last_read_s = [None, None]

    def a_relay(self):
        lease = Lease(lease_s=LEASE_S, clock=lambda: self.now_s)
        return lease, Controller(self.store, "c", STEPS, self.look, lambda: self.now_s)

    def look(self):
        return Seen(
            now_s=self.now_s,
            signals={"error": SignalOutcome(self.outcome)},
            scored_canary=self.scored,
            scored_control=self.scored,
            observed_share=self.share,
        )

    @rule(which=st.integers(0, 1))
    def ticks(self, which):
        lease, controller = self.relays[which]
        before = MemoryStore.read(self.store, "c")
        state = controller.tick()
        if state is not None:
            lease.renew(state)
            self.last_read_s[which] = self.now_s
            if state.weight_ppm > before.weight_ppm:
                assert self.outcome == "pass" and self.scored >= STEPS.minimum_scored
            if self.outcome == "fail" and before.phase not in RESTING:
                assert state.weight_ppm == 0

    @rule(
        outcome=st.sampled_from([o.value for o in SignalOutcome]),
        scored=st.integers(0, 20),
        share=st.sampled_from([0.0, 0.1, None]),
    )
    def things_change(self, outcome, scored, share):
        self.outcome, self.scored, self.share = outcome, scored, share

    @rule(seconds=st.floats(0.5, 40.0))
    def time_goes_by(self, seconds):
        self.now_s += seconds

    @rule()
    def the_store_goes_down_or_comes_back(self):
        self.store.is_down = not self.store.is_down

    @rule(which=st.integers(0, 1))
    def a_relay_is_killed_and_begins_again(self, which):
        self.relays[which], self.last_read_s[which] = self.a_relay(), None

    @rule(which=st.integers(0, 1), command=st.sampled_from(COMMANDS))
    def a_person_commands(self, which, command):
        lease, controller = self.relays[which]
        try:
            state = controller.command(command, actor="ops")
        except (ConfigError, StoredRunError):
            return
        lease.renew(state)
        self.last_read_s[which] = self.now_s

    @precondition(lambda self: hasattr(self, "relays"))
    @invariant()
    def no_share_outlives_the_lease(self):
        for (lease, _), read_s in zip(self.relays, self.last_read_s, strict=True):
            if read_s is None or self.now_s - read_s > LEASE_S:
                assert lease.weight_ppm() == 0

    @precondition(lambda self: hasattr(self, "relays"))
    @invariant()
    def the_audit_tells_every_revision_once(self):
        revisions = [e.revision for e in self.store.since(0)]
        assert revisions == list(range(1, len(revisions) + 1))
        assert MemoryStore.read(self.store, "c").revision == revisions[-1]

    @precondition(lambda self: hasattr(self, "relays") and not self.store.is_down)
    @invariant()
    def left_alone_it_comes_to_rest(self):
        state = MemoryStore.read(self.store, "c")
        for look in range(1, 6):
            seen = Seen(
                now_s=self.now_s + 400.0 * look,
                signals={"error": SignalOutcome.NO_DATA},
                observed_share=0.0,
            )
            state = advance(state, seen, STEPS)
        assert state.phase in RESTING


Life.TestCase.settings = settings(
    max_examples=40, stateful_step_count=30, deadline=None
)
TestLife = pytest.mark.slow(Life.TestCase)
