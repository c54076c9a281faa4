"""Whatever breaks while tasting is counted and believed by nobody; the thread lives."""

import random
import sqlite3

import pytest
from canary_cases import SHORT
from tasting_cases import a_copy, a_taster, standing, taste_all

from routeproof.canary.config import load_canary
from routeproof.canary.deciding.state import SignalOutcome
from routeproof.canary.gateway import Gateway
from routeproof.canary.samples.cleaning import Cleaner
from routeproof.canary.samples.signals import SIGNALS, Signal
from routeproof.canary.weighing.health import OPINION, SCORER, Budget, Ledger


def breaks_on_canary(seen):
    if seen.sample.arm == "canary":
        raise RecursionError("an answer nobody thought of")
    return False


FRAGILE = {**SIGNALS, "fragile": Signal("breaks", breaks_on_canary)}


def copies(n, **given):
    return [
        a_copy(request_id=f"request-{arm}-{i}", arm=arm, **given)
        for i in range(n)
        for arm in ("control", "canary")
    ]


def test_a_scorer_that_breaks_leaves_the_others_and_the_thread_alive(tmp_path):
    taster = a_taster(tmp_path, "error", "fragile", signals=FRAGILE)
    taste_all(taster, *copies(20))
    assert taster.last_error is None
    assert standing(taster, "error").canary_seen == 20
    assert standing(taster, "fragile").canary_seen == 0
    assert taster.ledger.failed["fragile", "canary"] == 20
    assert taster.ledger.failed["fragile", "control"] == 0


def test_a_scorer_that_breaks_is_an_error_and_neither_passes_nor_fails(tmp_path):
    taster = a_taster(tmp_path, "error", "fragile", signals=FRAGILE)
    taste_all(taster, *copies(20))
    found = standing(taster, "fragile")
    assert found.outcome is SignalOutcome.ERROR
    assert "RecursionError" in found.reason
    assert standing(taster, "error").outcome is not SignalOutcome.ERROR


def test_a_hook_that_breaks_keeps_nothing_and_counts_the_drop(tmp_path):
    def hook(text):
        raise KeyError("no rule for this")

    taster = a_taster(tmp_path, cleaner=Cleaner((hook,)))
    taste_all(taster, *copies(4))
    assert taster.spool.latest() == []
    assert (taster.dropped["canary"], taster.dropped["control"]) == (4, 4)


def test_a_hook_that_breaks_on_one_arm_alone_makes_everything_stale(tmp_path):
    def hook(text):
        if "canary says" in text:
            raise ValueError
        return text

    taster = a_taster(tmp_path, cleaner=Cleaner((hook,)))
    mixed = [
        a_copy(f"{arm} says", request_id=f"request-{arm}-{i}", arm=arm)
        for i in range(10)
        for arm in ("control", "canary")
    ]
    taste_all(taster, *mixed)
    assert "unequally" in taster.staleness()
    assert standing(taster, "error").outcome is SignalOutcome.STALE


def test_a_spool_that_fails_is_said_its_samples_count_as_dropped_and_it_recovers(
    tmp_path,
):
    taster = a_taster(tmp_path)
    db = sqlite3.connect(tmp_path / "samples.db")
    db.execute("ALTER TABLE sample RENAME TO elsewhere")
    db.commit()
    taste_all(taster, *copies(3))
    assert "cannot use the sample spool" in taster.last_error
    assert taster.dropped["canary"] == 3
    assert standing(taster, "error").outcome is SignalOutcome.STALE
    db.execute("ALTER TABLE elsewhere RENAME TO sample")
    db.commit()
    db.close()
    taste_all(taster, a_copy(request_id="later-request"))
    assert taster.last_error is None
    assert [s.request_id for s in taster.spool.latest()] == ["later-request"]


def test_scores_that_lag_make_the_evidence_stale(tmp_path):
    now_ns = [0]
    taster = a_taster(tmp_path, now_ns=lambda: now_ns[0], lag_max_s=60.0)
    copy = a_copy()
    taster.put(copy)
    now_ns[0] = copy.capture.end_ns + 59 * 10**9
    assert taster.staleness() is None and taster.lag_s() == pytest.approx(59.0)
    now_ns[0] = copy.capture.end_ns + 61 * 10**9
    assert "lag 61 s behind" in taster.staleness()
    assert standing(taster, "error").outcome is SignalOutcome.STALE
    taster.start()
    taster.stop()
    assert taster.lag_s() == 0.0 and taster.staleness() is None


def test_a_disk_that_is_full_is_said_and_its_samples_count_as_dropped(tmp_path):
    taster = a_taster(tmp_path)
    taste_all(taster, *copies(1))
    with taster.spool._open() as db:
        (pages,) = db.execute("PRAGMA page_count").fetchone()
        db.execute(f"PRAGMA max_page_count = {pages}")
    taste_all(taster, *big(40))
    assert "full" in taster.last_error
    assert taster.dropped["canary"] > 0
    assert standing(taster, "error").outcome is SignalOutcome.STALE


def big(n):
    """Answers that fill pages."""
    return [a_copy(f"{i} " * 2_000, request_id=f"big-request-{i}") for i in range(n)]


def a_gateway_at(folder, now):
    file = folder / "canary.yaml"
    routes = {"fast": "http://127.0.0.1:1", "trusted": "http://127.0.0.1:2"}
    more = "  deadlines: {hold: 600}\n  minimum_scored: 1\n"
    file.write_text(SHORT.format(sample="100%", more=more, **routes))
    return Gateway(load_canary(file), wall=lambda: now[0], clock=lambda: now[0])


def test_a_scorer_that_hangs_ends_in_a_rollback_at_the_deadline_of_the_hold(tmp_path):
    now = [1_000.0]
    gateway = a_gateway_at(tmp_path, now)
    gateway.command("start", actor="ops")
    copy = a_copy()
    gateway.taster.put(copy)
    gateway.taster.now_ns = lambda: copy.capture.end_ns + int((now[0] - 1_000) * 1e9)
    phases = []
    for _ in range(8):
        now[0] += 200.0
        phases.append(gateway.tick().phase)
    assert phases[0] == "stepping" and "held" in phases
    assert phases[-1] == "rolled_back"
    assert gateway.lease.weight_ppm() == 0
    assert "is stale" in gateway.store.read("fast").reason


def test_evidence_that_cannot_be_kept_is_stale_until_it_can(tmp_path):
    now = [1_000.0]
    gateway = a_gateway_at(tmp_path, now)
    (tmp_path / "canary-fast" / "evidence.tmp").mkdir()
    gateway.tick()
    assert "cannot keep the evidence" in gateway.taster.staleness()
    (tmp_path / "canary-fast" / "evidence.tmp").rmdir()
    gateway.tick()
    assert gateway.taster.staleness() is None


def test_a_full_queue_drops_and_counts_by_arm(tmp_path):
    taster = a_taster(tmp_path, queue_size=2)
    for copy in copies(2):
        taster.put(copy)
    assert taster.taken.total() == 4 and taster.dropped.total() == 2
    assert taster.staleness() == "the scorer does not keep up"


def test_nonsense_bytes_are_an_error_of_the_answer_not_of_the_thread(tmp_path):
    taster = a_taster(tmp_path)
    rubbish = [
        a_copy(request_id=f"rubbish-{i}", raw_answer=random.Random(i).randbytes(200))
        for i in range(5)
    ]
    taste_all(taster, *rubbish)
    assert taster.last_error is None
    said = [s.signals for s in taster.spool.latest()]
    assert len(said) == 5 and all(s["error"] or s["empty"] for s in said)


def test_few_failures_are_no_trouble_and_many_are():
    ledger = Ledger(lambda _: SCORER)
    for i in range(200):
        ledger.note("schema", "canary", "broke" if i in (3, 70) else None)
    assert ledger.troubles() == {}
    for _ in range(10):
        ledger.note("schema", "canary", "broke")
    outcome, why = ledger.troubles()["schema"]
    assert outcome is SignalOutcome.ERROR and "broke" in why


def test_an_opinion_missing_on_one_arm_more_often_is_stale():
    ledger = Ledger(lambda _: OPINION)
    for i in range(100):
        ledger.note("off_topic", "control", None)
        ledger.note("off_topic", "canary", "silent" if i % 4 == 0 else None)
    outcome, why = ledger.troubles()["off_topic"]
    assert outcome is SignalOutcome.STALE and "25.0% of the canary" in why


def test_a_budget_is_spent_refilled_and_not_saved_up_for_ever():
    now_s = [0.0]
    budget = Budget(6.0, lambda: now_s[0])
    assert [budget.take() for _ in range(3)] == [True, False, False]
    now_s[0] = 10.0
    assert [budget.take() for _ in range(2)] == [True, False]
    now_s[0] = 10_000.0
    assert sum(budget.take() for _ in range(50)) == 6
