import pytest

from routeproof.canary.deciding.controller import Controller
from routeproof.canary.deciding.state import Seen, SignalOutcome, State, Steps
from routeproof.canary.deciding.store import AuditEntry, SqliteStore
from routeproof.errors import ConfigError


class World:
    """A canary with a hand on everything it sees."""

    def __init__(self, tmp_path):
        self.now_s = 0.0
        self.signals = {"schema": SignalOutcome.PASS}
        self.scored, self.share = 0, None
        self.store = SqliteStore(tmp_path / "state.db")
        entry = AuditEntry(
            name="c", actor="a", action="create", reason="", at_s=0.0, revision=0
        )
        self.store.write(State(name="c", candidate_digest="d"), expected=0, entry=entry)
        self.controller = Controller(
            store=self.store,
            name="c",
            steps=Steps(minimum_scored=10),
            look=self.look,
            wall=lambda: self.now_s,
        )

    def look(self):
        return Seen(
            now_s=self.now_s,
            signals=self.signals,
            scored_canary=self.scored,
            scored_control=self.scored,
            observed_share=self.share,
        )


def test_a_failing_signal_ends_in_a_rollback_whose_numbers_are_in_the_audit(tmp_path):
    world = World(tmp_path)
    world.controller.command("start", actor="ops")
    world.signals = {"schema": SignalOutcome.FAIL}
    assert world.controller.tick().phase == "rolling_back"
    world.share = 0.0
    assert world.controller.tick().phase == "rolled_back"
    actions = [e.action for e in world.store.since(0)]
    assert actions == ["create", "start", "rolling_back", "rolled_back"]
    assert world.store.since(2)[0].numbers["signal.schema"] == "fail"


def test_two_controllers_on_one_store_do_not_move_twice(tmp_path):
    world = World(tmp_path)
    world.controller.command("start", actor="ops")
    world.scored = 10
    twin = Controller(
        store=SqliteStore(tmp_path / "state.db"),
        name="c",
        steps=world.controller.steps,
        look=lambda: (world.controller.tick(), world.look())[1],
        wall=lambda: 0.0,
    )
    state = twin.tick()
    assert state.step == 1
    assert [e.action for e in world.store.since(0)].count("stepping") == 0


def test_a_dead_store_is_said_and_never_a_crash(tmp_path):
    world = World(tmp_path)
    for file in tmp_path.iterdir():
        file.unlink()
    (tmp_path / "state.db").write_bytes(b"rubbish" * 1000)
    assert world.controller.tick() is None
    assert "cannot use" in world.controller.last_error


def test_a_command_out_of_place_is_a_readable_error(tmp_path):
    world = World(tmp_path)
    with pytest.raises(ConfigError, match="cannot resume a canary that is ready"):
        world.controller.command("resume", actor="ops")


def test_rolling_back_twice_is_no_second_write(tmp_path):
    world = World(tmp_path)
    world.controller.command("start", actor="ops")
    world.controller.command("rollback", actor="ops", reason="off-topic answers")
    world.controller.command("rollback", actor="ops")
    assert [e.reason for e in world.store.since(2)] == ["off-topic answers"]
