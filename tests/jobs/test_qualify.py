"""How a proof is run: the veto, going on all the same, soaks, locks."""

import json
from pathlib import Path
from types import SimpleNamespace

import click
import msgspec
import pytest
from builders import a_proof, a_route_diff, a_run, a_speculative_diff, an_inventory
from click.testing import CliRunner
from qualify_cases import Answering, cases_sent, crates, two_routes, write_proof

from routeproof.cli.durations import duration
from routeproof.cli.judge import command as judge_command
from routeproof.errors import ConfigError, RouteproofError
from routeproof.jobs.judge import judge
from routeproof.jobs.qualify import Options, qualify
from routeproof.jobs.qualifying.pairing import lock_pairing, pairing_of
from routeproof.jobs.qualifying.run_options import with_options
from routeproof.proof.workload import ArrivalSpec, LoadSpec, WorkloadSpec
from routeproof.records.store import RunFolder
from routeproof.routes.lock import read_lock

SINGLE = {"latency": {"concurrency": 1, "requests": 16}}


def lossy_run(folder, options=None, **further):
    lossy = Answering(wrong=frozenset(range(0, 40, 2)))
    with two_routes(candidate=lossy) as servers:
        proof = write_proof(folder, servers, cases=crates(40), load=SINGLE, **further)
        found = qualify(proof, folder / "run", options=options)
    return found, RunFolder.open(folder / "run")


@pytest.mark.alone
@pytest.mark.slow
def test_a_failed_veto_ends_the_run_before_speed_is_measured(tmp_path):
    found, folder = lossy_run(tmp_path)
    assert cases_sent(folder, phase="latency") == []
    assert found.verdict.decision == "avoid"
    assert found.evidence.notes == ()


@pytest.mark.alone
@pytest.mark.slow
@pytest.mark.parametrize("by", ["the option", "the policy"])
def test_speed_is_measured_all_the_same_when_asked_to(tmp_path, by):
    options = Options(keep_going=True) if by == "the option" else None
    policy = {"policy": {"keep_going": True}} if by == "the policy" else {}
    found, folder = lossy_run(tmp_path, options, **policy)
    assert len(cases_sent(folder, phase="latency")) == 16
    assert found.verdict.decision == "avoid"


def a_workload(**load):
    return a_proof(workload=WorkloadSpec(load=LoadSpec(**load)))


def test_a_soak_stays_at_the_top_load():
    swept = a_workload(sweep=ArrivalSpec(concurrency=(1, 4, 16)))
    soak = with_options(swept, Options(soak_s=1800.0)).workload.load.soak
    assert (soak.concurrency, soak.duration_s) == ((16,), 1800.0)


def test_a_soak_of_the_proof_keeps_its_load_and_gets_the_time():
    given = ArrivalSpec(request_rate=(3.0,), requests=100)
    soak = with_options(a_workload(soak=given), Options(soak_s=90.0)).workload.load.soak
    assert (soak.request_rate, soak.requests) == ((3.0,), None)
    assert soak.duration_s == 90.0


def test_a_soak_too_short_for_a_trend_is_refused():
    with pytest.raises(ConfigError, match="shows no trend"):
        with_options(a_workload(), Options(soak_s=5.0))


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (Options(soak_s=3.0), "shows no trend"),
        (Options(reuse_baseline=Path("nowhere")), "not a run folder"),
    ],
)
def test_options_that_cannot_be_leave_no_folder_behind(tmp_path, options, why):
    nobody = (SimpleNamespace(url="http://127.0.0.1:9/v1"),) * 2
    proof = write_proof(tmp_path, nobody, cases=crates(4))
    with pytest.raises(RouteproofError, match=why):
        qualify(proof, tmp_path / "run", options=options)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("written", "seconds"), [("90", 90), ("90s", 90), ("30m", 1800), ("1.5h", 5400)]
)
def test_durations_as_people_write_them(written, seconds):
    assert duration(written) == seconds


@pytest.mark.parametrize("written", ["", "soon", "-5m", "0s", "3d"])
def test_what_is_no_duration_is_refused(written):
    with pytest.raises(click.BadParameter, match="no duration"):
        duration(written)


def a_drafted_run(path, **changes):
    values = {
        "speculation.method": "eagle3",
        "speculation.draft.model": "draft",
        "speculation.draft.revision": "d1",
    }
    diff = msgspec.structs.replace(
        a_speculative_diff(), candidate=an_inventory(**values)
    )
    return a_run(path, route_diff=diff, **changes)


@pytest.mark.slow
def test_a_pair_that_passed_is_locked_and_says_by_which_run(tmp_path):
    found = judge(a_drafted_run(tmp_path / "run"))
    lock = lock_pairing(found, tmp_path / "routeproof.lock")
    assert read_lock(tmp_path / "routeproof.lock") == lock
    assert lock.draft["speculation.draft.revision"] == "d1"
    assert lock.qualified.startswith(found.provenance.run_id)


@pytest.mark.slow
def test_what_did_not_pass_or_has_no_draft_is_not_locked(tmp_path):
    plain = judge(a_run(tmp_path / "plain", route_diff=a_route_diff()))
    assert pairing_of(plain) is None
    with pytest.raises(ConfigError, match="no draft model"):
        lock_pairing(plain, tmp_path / "x.lock")
    path = a_drafted_run(tmp_path / "lossy")
    manifest = RunFolder.open(path).read_manifest()
    unfinished = msgspec.structs.replace(manifest, health=None, route_diff=None)
    RunFolder.open(path).write_manifest(unfinished)
    assert pairing_of(judge(path)) is None


@pytest.mark.slow
def test_the_judge_command_writes_the_lock(tmp_path):
    path, lock = a_drafted_run(tmp_path / "run"), tmp_path / "routeproof.lock"
    told = CliRunner().invoke(
        judge_command, [str(path), "--lock", str(lock), "--require", "pilot"]
    )
    assert told.exit_code == 0, told.output
    assert json.loads(lock.read_text())["draft"]["speculation.draft.model"] == "draft"
