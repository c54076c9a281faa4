"""Answers of an unchanged baseline, taken over into the next run."""

import msgspec
import pytest
from qualify_cases import Answering, cases_sent, crates, two_routes, write_proof

from routeproof.errors import ConfigError
from routeproof.gates.result import Status
from routeproof.jobs.gathering.reuse import ASKED_AGAIN
from routeproof.jobs.judge import judge
from routeproof.jobs.qualify import Options, qualify
from routeproof.records.store import RunFolder

pytestmark = pytest.mark.slow

KNOWN = {"engine": {"name": "toy", "version": "1.0"}}


def a_proof(folder, servers, *, cases=None, **further):
    folder.mkdir(exist_ok=True)
    path = write_proof(folder, servers, cases=cases or crates(64), **further)
    plain = msgspec.json.decode(path.read_bytes())
    plain["baseline"] |= KNOWN
    path.write_bytes(msgspec.json.encode(plain))
    return path


@pytest.fixture(scope="module")
def stage(tmp_path_factory):
    """Two servers, a finished run, and a folder for more; the baseline's can change."""
    home = tmp_path_factory.mktemp("reuse")
    answering = Answering()
    with two_routes(baseline=answering) as servers:
        qualify(a_proof(home / "first", servers), home / "run")
        answering.asked_by_the_first = answering.asked
        yield home, servers, answering


def reusing(stage, name, **further):
    home, servers, _ = stage
    proof = a_proof(home / name, servers, **further)
    options = Options(reuse_baseline=home / "run")
    return qualify(proof, home / name / "run", options=options)


def check_of(judgement, name, gate="parity"):
    return next(c for c in judgement.gate(gate).checks if c.name == name)


def test_only_the_candidate_and_a_few_controls_are_asked(stage):
    home, _, answering = stage
    before = answering.asked
    taken = 2 * 64 - ASKED_AGAIN
    found = reusing(stage, "plain")
    folder = RunFolder.open(home / "plain" / "run")
    assert len(cases_sent(folder)) == 64
    assert len(cases_sent(folder, arm="baseline")) == 64
    assert len(cases_sent(folder, arm="control")) == 64
    assert answering.asked - before == answering.asked_by_the_first - taken
    check = check_of(found, "same_baseline")
    assert (check.status, check.n) == (Status.PASSED, ASKED_AGAIN)
    assert f"{taken} baseline answers are those of run" in check.reason
    assert found.gate("correctness").status is Status.PASSED


def test_no_time_of_theirs_is_judged(stage):
    found = reusing(stage, "speed")
    assert found.evidence.speed.latencies == ()
    assert found.gate("latency").status is not Status.PASSED
    assert all(b.start_s >= 0 for b in found.evidence.stability.timeline)
    assert check_of(found, "interleaved").status is Status.INCONCLUSIVE


def test_the_folder_needs_the_earlier_run_no_more(stage):
    home, *_ = stage
    reusing(stage, "again")
    path = home / "again" / "run"
    first = (path / "judgement.json").read_bytes()
    judge(path)
    assert (path / "judgement.json").read_bytes() == first


def test_a_run_that_stops_early_reuses_them_in_its_own_order(stage):
    home, servers, _ = stage
    proof = a_proof(home / "early", servers, tolerance=0.1)
    options = Options(reuse_baseline=home / "run", until_decided=True)
    found = qualify(proof, home / "early" / "run", options=options)
    folder = RunFolder.open(home / "early" / "run")
    sent = cases_sent(folder)
    assert 50 <= len(sent) < 64
    assert sent != sorted(sent, key=lambda name: int(name[1:]))
    row = next(r for r in found.evidence.quality.rows if r.question == "headline")
    assert (row.answer.decision, row.units) == ("certified", len(sent))
    assert check_of(found, "same_baseline").status is Status.PASSED


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"workload": {"sampling": {"max_tokens": 9}}}, "workload.sampling was"),
        ({"workload": {"seed": 7}}, "workload.seed was 20261130 and is 7"),
        ({"cases": crates(65)}, "1 cases are new, such as c64"),
        ({"cases": crates(64, options={"a": 1})}, "64 cases were changed"),
        ({"cases": crates(60)}, "4 cases are gone"),
    ],
)
def test_another_workload_is_refused_with_what_differs(stage, changed, why):
    name = f"refused-{abs(hash(why))}"
    with pytest.raises(ConfigError, match=why):
        reusing(stage, name, **changed)


def test_another_baseline_is_refused_with_what_differs(stage):
    home, servers, _ = stage
    proof = a_proof(home / "other", servers)
    plain = msgspec.json.decode(proof.read_bytes())
    plain["baseline"]["weights"] = "bf16"
    proof.write_bytes(msgspec.json.encode(plain))
    with pytest.raises(ConfigError, match="weights was not known and is bf16"):
        qualify(
            proof,
            home / "other" / "run",
            options=Options(reuse_baseline=home / "run"),
        )


def test_a_baseline_that_answers_otherwise_now_breaks_parity(stage):
    _, _, answering = stage
    answering.wrong = frozenset(range(64))
    try:
        found = reusing(stage, "drifted")
    finally:
        answering.wrong = frozenset()
    check = check_of(found, "same_baseline")
    assert check.status is Status.FAILED
    assert found.verdict.decision == "no_verdict"
