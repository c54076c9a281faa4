import sqlite3

import pytest

from routeproof.canary.deciding.lease import Lease
from routeproof.canary.deciding.state import State, Steps, obey
from routeproof.canary.deciding.store import AuditEntry, SqliteStore, StaleRevisionError
from routeproof.errors import StoredRunError


def an_entry(revision=1, **changes):
    fields = dict(name="c", actor="controller", action="start", reason="r", at_s=1.0)
    return AuditEntry(**{**fields, "revision": revision, **changes})


def a_state():
    return obey(State(name="c", candidate_digest="d"), "start", 0.0, Steps())


def test_a_state_survives_reopening(tmp_path):
    SqliteStore(tmp_path / "s.db").write(a_state(), expected=0, entry=an_entry())
    assert SqliteStore(tmp_path / "s.db").read("c") == a_state()
    assert SqliteStore(tmp_path / "s.db").read("other") is None


def test_the_second_of_two_writers_is_refused_and_leaves_no_audit(tmp_path):
    one, two = SqliteStore(tmp_path / "s.db"), SqliteStore(tmp_path / "s.db")
    one.write(a_state(), expected=0, entry=an_entry())
    with pytest.raises(StaleRevisionError, match="revision 1, expected 0"):
        two.write(a_state(), expected=0, entry=an_entry())
    assert len(one.since(0)) == 1


def test_the_watch_replays_after_a_gap_in_order(tmp_path):
    store, state = SqliteStore(tmp_path / "s.db"), a_state()
    store.write(state, expected=0, entry=an_entry())
    back = obey(state, "rollback", 1.0, Steps())
    store.write(back, expected=1, entry=an_entry(2, action="rollback"))
    assert [e.action for e in store.since(0)] == ["start", "rollback"]
    assert [e.action for e in store.since(1)] == ["rollback"]


def test_the_audit_cannot_be_rewritten(tmp_path):
    store = SqliteStore(tmp_path / "s.db")
    store.write(a_state(), expected=0, entry=an_entry())
    db = sqlite3.connect(tmp_path / "s.db")
    with pytest.raises(sqlite3.IntegrityError, match="append-only"):
        db.execute("DELETE FROM audit")
    with pytest.raises(sqlite3.IntegrityError, match="append-only"):
        db.execute("UPDATE audit SET body = ''")
    db.close()


def test_a_file_that_is_no_database_is_a_clear_error(tmp_path):
    (tmp_path / "s.db").write_text("not a database, but long enough to be read as one")
    with pytest.raises(StoredRunError, match="cannot use the canary state"):
        SqliteStore(tmp_path / "s.db")


def test_the_weight_falls_to_zero_when_the_reading_is_older_than_the_lease():
    now = [100.0]
    lease = Lease(lease_s=10.0, clock=lambda: now[0])
    assert lease.weight_ppm() == 0
    lease.renew(a_state())
    assert lease.weight_ppm() == 10_000
    now[0] = 110.0
    assert lease.weight_ppm() == 10_000
    now[0] = 110.5
    assert lease.weight_ppm() == 0


def test_a_clock_that_goes_backwards_is_not_fresh():
    now = [100.0]
    lease = Lease(lease_s=10.0, clock=lambda: now[0])
    lease.renew(a_state())
    now[0] = 99.0
    assert lease.weight_ppm() == 0
