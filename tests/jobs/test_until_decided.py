"""A run that stops as soon as it is decided, over real sockets."""

import shutil

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from qualify_cases import Answering, cases_sent, crates, two_routes, write_proof

from routeproof.errors import ConfigError, StoredRunError
from routeproof.gates.result import Status
from routeproof.jobs.judge import judge
from routeproof.jobs.qualify import Listener, Options, qualify
from routeproof.jobs.qualifying.until_decided import _rounds
from routeproof.proof.workload import LoadSpec, WorkloadSpec
from routeproof.records.store import RunFolder
from routeproof.runs.plan import build_plan
from routeproof.workloads.drawn import drawn_order

EARLY = Options(until_decided=True, has_probes=False)


def row_of(judgement, question="headline"):
    rows = judgement.evidence.quality.rows
    return next(row for row in rows if row.question == question)


@pytest.mark.slow
def test_an_equal_route_is_certified_with_part_of_the_cases(tmp_path):
    with two_routes() as servers:
        proof = write_proof(tmp_path, servers, cases=crates(300))
        found = qualify(proof, tmp_path / "run", options=EARLY)
    row = row_of(found)
    assert (row.answer.decision, row.ceiling) == ("certified", 300)
    sent = cases_sent(RunFolder.open(tmp_path / "run"))
    assert row.settled_after <= len(sent) < 0.5 * 300
    assert found.gate("correctness").status is Status.PASSED
    assert any("cases were not needed" in note for note in found.evidence.notes)
    note = RunFolder.open(tmp_path / "run").read_manifest().notes["until_decided"]
    assert note["ended_because"] == "every required question is settled"
    assert note["questions"]["headline"]["settled_after"] == row.settled_after


@pytest.mark.slow
def test_the_order_is_random_and_the_same_for_the_same_seed(tmp_path):
    orders = []
    with two_routes() as servers:
        for name in ("a", "b"):
            (tmp_path / name).mkdir()
            proof = write_proof(tmp_path / name, servers, cases=crates(120))
            qualify(proof, tmp_path / name / "run", options=EARLY)
            orders.append(cases_sent(RunFolder.open(tmp_path / name / "run")))
    assert orders[0] == orders[1]
    assert orders[0] != [f"c{i}" for i in range(len(orders[0]))]


@pytest.mark.slow
def test_a_clear_loss_stops_early_and_is_avoided(tmp_path):
    lossy = Answering(wrong=frozenset(range(0, 300, 6)))
    with two_routes(candidate=lossy) as servers:
        proof = write_proof(tmp_path, servers, cases=crates(300))
        found = qualify(proof, tmp_path / "run", options=EARLY)
    assert found.gate("correctness").status is Status.FAILED
    assert found.verdict.stop_use == ("correctness_drift",)
    assert len(cases_sent(RunFolder.open(tmp_path / "run"))) < 150


@pytest.mark.slow
def test_the_folder_alone_gives_the_same_bytes(tmp_path):
    with two_routes() as servers:
        proof = write_proof(tmp_path, servers, cases=crates(200))
        qualify(proof, tmp_path / "run", options=EARLY)
    first = (tmp_path / "run" / "judgement.json").read_bytes()
    copy = tmp_path / "elsewhere"
    shutil.copytree(tmp_path / "run", copy)
    (copy / "judgement.json").unlink()
    (copy / "scores.parquet").unlink()
    judge(copy)
    assert (copy / "judgement.json").read_bytes() == first


class Unplugged(Exception):
    """Somebody pulled the plug."""


def unplugged_after(requests):
    """A listener in whose face the run breaks off."""

    def heard(progress):
        if progress.done > requests:
            raise Unplugged

    return Listener(requests=heard)


@pytest.mark.slow
def test_an_interrupted_run_goes_on_in_the_same_order(tmp_path):
    with two_routes() as servers:
        proof = write_proof(tmp_path, servers, cases=crates(200))
        run = tmp_path / "run"
        with pytest.raises(Unplugged):
            qualify(proof, run, options=EARLY, listener=unplugged_after(150))
        folder = RunFolder.open(run)
        before = cases_sent(folder)
        assert "have not been sent" in judge(folder.path).evidence.notes[1]
        with pytest.raises(StoredRunError, match="--soak"):
            qualify(proof, run, options=Options(resume=True, soak_s=90.0))
        found = qualify(proof, run, options=Options(resume=True))
    after = cases_sent(folder)
    assert after[: len(before)] == before
    assert len(before) < len(after) == len(set(after)) < 200
    assert row_of(found).answer.decision == "certified"


@pytest.mark.slow
def test_a_fixed_run_cannot_be_made_to_stop_early_afterwards(tmp_path):
    with two_routes() as servers:
        proof = write_proof(tmp_path, servers, cases=crates(60))
        with pytest.raises(Unplugged):
            qualify(proof, tmp_path / "run", listener=unplugged_after(100))
        with pytest.raises(StoredRunError, match="--until-decided"):
            options = Options(until_decided=True, resume=True)
            qualify(proof, tmp_path / "run", options=options)


@pytest.mark.slow
def test_failed_requests_count_as_lost_and_never_certify(tmp_path):
    dying = Answering(dies_after=90)
    with two_routes(candidate=dying) as servers:
        proof = write_proof(tmp_path, servers, cases=crates(150))
        found = qualify(proof, tmp_path / "run", options=EARLY)
    assert row_of(found).answer.decision != "certified"
    assert row_of(found).missing > 0


@pytest.mark.slow
def test_an_open_question_goes_on_with_its_own_cases_only(tmp_path):
    with two_routes() as servers:
        proof = write_proof(
            tmp_path,
            servers,
            cases=crates(240),
            tolerance=0.1,
            workload={"classes_required": {"odd": 100}},
        )
        found = qualify(proof, tmp_path / "run", options=EARLY)
    sent = cases_sent(RunFolder.open(tmp_path / "run"))
    odd = [name for name in sent if int(name[1:]) % 2]
    assert len(odd) >= 100 > len(sent) - len(odd)
    assert row_of(found, "headline[class=odd]").answer.decision == "certified"


@pytest.mark.slow
def test_trials_of_a_case_are_sent_together(tmp_path):
    with two_routes() as servers:
        proof = write_proof(
            tmp_path,
            servers,
            cases=crates(160),
            tolerance=0.15,
            workload={"trials": 3, "sampling": {"temperature": 0.8}},
        )
        found = qualify(proof, tmp_path / "run", options=EARLY)
    sent = cases_sent(RunFolder.open(tmp_path / "run"))
    counts = {name: sent.count(name) for name in sent}
    assert set(counts.values()) == {3}
    assert len(counts) < 160
    assert row_of(found).answer.decision == "certified"
    assert row_of(found, "headline collapse").settled_after is not None


@pytest.mark.slow
def test_a_loss_keeps_going_when_asked_to(tmp_path):
    lossy = Answering(wrong=frozenset(range(0, 160, 4)))
    with two_routes(candidate=lossy) as servers:
        proof = write_proof(
            tmp_path,
            servers,
            cases=crates(160),
            tolerance=0.1,
            quality=[
                {"metric": "headline", "tolerance": 0.1},
                {"metric": "numeric", "tolerance": 0.1, "slice": {"class": "odd"}},
            ],
        )
        options = Options(until_decided=True, keep_going=True)
        found = qualify(proof, tmp_path / "run", options=options)
    assert row_of(found, "headline").answer.decision == "harmed"
    assert row_of(found, "numeric[class=odd]").settled_after is not None


@pytest.mark.slow
def test_a_stage_that_cannot_stop_is_refused(tmp_path):
    with two_routes() as servers:
        load = {"quality": {"concurrency": [1, 4]}}
        proof = write_proof(tmp_path, servers, cases=crates(20), load=load)
        with pytest.raises(ConfigError, match="one level of concurrency"):
            qualify(proof, tmp_path / "run", options=EARLY)


def rounds(n, *, floor=50, trials=1, size=8):
    load = LoadSpec(latency=None, block_size=size, warmup_requests=0)
    workload = WorkloadSpec(load=load, trials=trials)
    plan = build_plan(crates(n), workload, trials_together=True)
    due = _rounds(plan, floor)
    sent, at = 0, []
    for block in plan.stages[0].blocks:
        is_last_trial = block.first_trial == trials - 1
        sent += block.count if block.arm == "candidate" and is_last_trial else 0
        if block.number in due:
            at.append(sent)
    return at


@pytest.mark.parametrize("trials", [1, 3])
def test_rounds_begin_at_the_floor_and_grow_with_the_cases(trials):
    at = rounds(1000, trials=trials)
    assert at[0] == 56
    assert at[-1] == 1000
    steps = [b - a for a, b in zip(at[1:], at[2:], strict=False)]
    assert all(
        8 <= step <= 0.05 * n + 8 for step, n in zip(steps, at[1:], strict=False)
    )
    assert len(at) < 60


def test_a_workload_below_the_floor_is_looked_at_once():
    assert rounds(30) == [30]


@given(n=st.integers(1, 60), seed=st.integers(0, 2**32))
def test_a_draw_is_an_order_of_all_cases_that_keeps_conversations(n, seed):
    cases = tuple(
        msgspec.structs.replace(case, cluster=f"talk-{i // 3}" if i % 2 else None)
        for i, case in enumerate(crates(n))
    )
    drawn = drawn_order(cases, seed)
    assert sorted(c.id for c in drawn) == sorted(c.id for c in cases)
    assert drawn == drawn_order(cases, seed)
    for name in {case.cluster for case in cases} - {None}:
        places = [i for i, case in enumerate(drawn) if case.cluster == name]
        assert places == list(range(places[0], places[0] + len(places)))
        before = [case.id for case in cases if case.cluster == name]
        assert [drawn[i].id for i in places] == before
