"""What every state store owes, held against each driver there is."""

import threading

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from routeproof.canary.deciding.controller import Controller
from routeproof.canary.deciding.state import Seen, State, Steps, obey
from routeproof.canary.deciding.store import AuditEntry, StaleRevisionError
from routeproof.canary.deciding.stores import STORES, check_store, open_store
from routeproof.errors import ConfigError


@pytest.fixture(params=STORES)
def store(request, tmp_path):
    return open_store(request.param, tmp_path)


def an_entry(name="c", revision=1, **changes):
    fields = dict(actor="controller", action="start", reason="r", at_s=1.0)
    numbers = {"signal.error": "pass", "share": 0.25, "unknown": None}
    return AuditEntry(
        name=name, revision=revision, **{**fields, "numbers": numbers, **changes}
    )


def a_state(name="c", revision=1):
    return State(name=name, candidate_digest="d", revision=revision)


def test_what_is_written_is_read_and_nothing_else_is_there(store):
    assert store.read("c") is None and store.since(0) == []
    store.write(a_state(), expected=0, entry=an_entry())
    assert store.read("c") == a_state() and store.read("other") is None


def test_of_two_writers_one_is_refused_and_leaves_no_trace(store):
    store.write(a_state(), expected=0, entry=an_entry())
    for expected in (0, 2):
        with pytest.raises(StaleRevisionError):
            store.write(
                a_state(revision=9), expected=expected, entry=an_entry(action="x")
            )
    assert store.read("c").revision == 1
    assert [e.action for e in store.since(0)] == ["start"]


def test_canaries_do_not_stand_in_each_others_way_and_share_one_audit(store):
    for name in ("a", "b"):
        store.write(a_state(name), expected=0, entry=an_entry(name))
    store.write(a_state("a", 2), expected=1, entry=an_entry("a", 2))
    assert (store.read("a").revision, store.read("b").revision) == (2, 1)
    assert [(e.name, e.sequence) for e in store.since(0)] == [
        ("a", 1),
        ("b", 2),
        ("a", 3),
    ]


def test_the_watch_replays_from_any_place_and_gives_the_same_again(store):
    for n in range(5):
        store.write(a_state(revision=n + 1), expected=n, entry=an_entry(revision=n + 1))
    everything = store.since(0)
    assert [e.revision for e in everything] == [1, 2, 3, 4, 5]
    for place in range(6):
        assert store.since(place) == everything[place:]
    assert store.since(99) == []


def test_an_entry_keeps_its_numbers_and_what_is_unknown_stays_unknown(store):
    store.write(a_state(), expected=0, entry=an_entry())
    (found,) = store.since(0)
    assert found.numbers == {"signal.error": "pass", "share": 0.25, "unknown": None}


def test_many_writers_at_once_lose_no_write_and_make_no_gap(store):
    store.write(a_state(), expected=0, entry=an_entry())
    won = []

    def write(who):
        for _ in range(5):
            while True:
                found = store.read("c")
                fresh = a_state(revision=found.revision + 1)
                entry = an_entry(revision=fresh.revision, actor=who)
                try:
                    store.write(fresh, expected=found.revision, entry=entry)
                except StaleRevisionError:
                    continue
                won.append(who)
                break

    threads = [threading.Thread(target=write, args=(f"w{i}",)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 20 and store.read("c").revision == 21
    audit = store.since(0)
    assert [e.sequence for e in audit] == list(range(1, 22))
    assert [e.revision for e in audit] == list(range(1, 22))


@settings(
    max_examples=15,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    tries=st.lists(
        st.tuples(st.sampled_from("ab"), st.integers(0, 4)), min_size=1, max_size=20
    )
)
@pytest.mark.parametrize("kind", STORES)
def test_any_order_of_writes_agrees_with_a_plain_model(kind, tmp_path_factory, tries):
    store = open_store(kind, tmp_path_factory.mktemp("store"))
    model, audit = {}, []
    for name, expected in tries:
        fits = model.get(name, 0) == expected
        try:
            store.write(
                a_state(name, expected + 1),
                expected=expected,
                entry=an_entry(name, expected + 1),
            )
            assert fits
            model[name] = expected + 1
            audit.append((name, expected + 1))
        except StaleRevisionError:
            assert not fits
    assert {n: store.read(n).revision for n in model} == model
    assert [(e.name, e.revision) for e in store.since(0)] == audit


def test_the_controller_works_on_any_store(store):
    steps = Steps(minimum_scored=1)
    begun = obey(a_state(), "start", 0.0, steps)
    store.write(a_state(), expected=0, entry=an_entry())
    store.write(begun, expected=1, entry=an_entry(revision=begun.revision))
    controller = Controller(
        store, "c", steps, lambda: Seen(now_s=1.0, signals={}), lambda: 1.0
    )
    assert controller.command("rollback", actor="test").weight_ppm == 0
    assert store.since(0)[-1].actor == "test"


def test_a_store_nobody_knows_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="did you mean `sqlite`"):
        check_store("sqllite", tmp_path)
