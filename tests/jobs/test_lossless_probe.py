"""Small questions to both routes: sound ones keep everything, each fault is named."""

import asyncio
from pathlib import Path

import pytest
from builders import Plan, a_case, a_run, a_speculative_diff
from page_server import serving
from toy_engine import Toy

from routeproof.errors import StoredRunError
from routeproof.gates.probed import CHECKS, probe_rows, sibling_row
from routeproof.gates.result import Status
from routeproof.jobs.gathering.stored_probes import stored_probes
from routeproof.jobs.judge import judge
from routeproof.jobs.qualifying.lossless_probe import probe_routes
from routeproof.jobs.qualifying.stand_up import stand_up
from routeproof.proof.proof import Proof
from routeproof.proof.route import RouteSpec
from routeproof.records.store import RunFolder

pytestmark = pytest.mark.slow


def probed(path, candidate, baseline=None):
    """Probe two toys into a run folder; what was said."""
    baseline = baseline or Toy()
    folder = RunFolder.create(path) if not path.exists() else RunFolder.open(path)

    async def run():
        async with serving(baseline.pages()) as a, serving(candidate.pages()) as b:
            proof = Proof(
                baseline=RouteSpec(endpoint=f"{a.url}/v1", model="org/M"),
                candidate=RouteSpec(endpoint=f"{b.url}/v1", model="org/M"),
            )
            async with stand_up(proof, logs=Path()) as routes:
                await probe_routes(routes, folder)

    asyncio.run(run())
    return stored_probes(folder)


def answers_of(found):
    rows = probe_rows(found, alpha=0.05, is_lossless=True)
    return {row.question[6:-1]: row.answer.decision for row in rows}


def test_two_sound_routes_keep_everything_and_every_check_is_made(tmp_path):
    found = probed(tmp_path / "r", Toy())
    decisions = answers_of(found)
    every = {name for name, *_ in CHECKS} | {"same_logprobs"}
    # A penalty that hardly changes the baseline's texts asks nothing.
    assert every - {"repetition_penalty"} <= set(decisions) <= every
    assert set(decisions.values()) == {"certified"}
    row = sibling_row(found, seed=1)
    assert row["p_value"] > 0.01 and row["control_p_value"] > 0.01
    assert row["power"] == "sees repeated choices in 100% of simulated runs"


@pytest.mark.parametrize(
    "fault",
    [
        "stream", "cache_warm", "top_k", "top_p", "min_p", "seed", "stop",
        "max_tokens", "min_tokens", "logit_bias", "frequency_penalty",
        "presence_penalty", "repetition_penalty",
    ],
)  # fmt: skip
def test_each_fault_is_named(tmp_path, fault):
    decisions = answers_of(probed(tmp_path / "r", Toy(fault)))
    assert decisions[fault] == "harmed"
    # What leans on the same answers may fall with it; nothing else does.
    with_it = {"cache_warm": {"stream", "together", "top_k", "top_p", "min_p"}}
    harmed = {name for name, decision in decisions.items() if decision == "harmed"}
    assert harmed - {fault} <= with_it.get(fault, set())


@pytest.mark.parametrize("fault", ["zero_logprobs", "loud_logprobs"])
def test_log_probabilities_of_no_distribution_are_dishonest(tmp_path, fault):
    assert answers_of(probed(tmp_path / "r", Toy(fault)))["logprobs"] == "harmed"


def test_other_log_probabilities_than_the_baselines_are_seen(tmp_path):
    decisions = answers_of(probed(tmp_path / "r", Toy("shifted_logprobs")))
    assert decisions["same_logprobs"] == "harmed"
    assert decisions["logprobs"] == "certified"


def test_what_is_routed_around_the_candidate_is_not_asked_of_it(tmp_path):
    found = probed(tmp_path / "r", Toy("zero_logprobs", "seed", "frequency_penalty"))
    rows = probe_rows(
        found,
        alpha=0.05,
        is_lossless=True,
        around=("logprobs", "seed", "penalties"),
    )
    assert {row.answer.decision for row in rows} == {"certified"}


def test_choices_that_share_their_random_numbers_are_seen(tmp_path):
    row = sibling_row(probed(tmp_path / "r", Toy("siblings")), seed=1)
    assert row["p_value"] < 0.01 < row["control_p_value"]


def test_what_the_baseline_looks_away_from_is_not_asked_of_the_candidate(tmp_path):
    both = Toy("frequency_penalty", "seed"), Toy("frequency_penalty", "seed")
    decisions = answers_of(probed(tmp_path / "r", *both))
    assert "frequency_penalty" not in decisions and "seed" not in decisions


def test_a_run_is_probed_once_and_a_damaged_file_is_named(tmp_path):
    first = Toy()
    probed(tmp_path / "r", first)
    again = Toy()
    probed(tmp_path / "r", again)
    assert first.requests > 100 and again.requests == 0
    path = tmp_path / "r" / "probe" / "probes.json"
    path.write_text("{")
    with pytest.raises(StoredRunError, match=r"probes\.json"):
        stored_probes(RunFolder.open(tmp_path / "r"))


def test_a_fault_the_probes_found_fails_the_veto_and_reclasses_the_change(tmp_path):
    probed(tmp_path / "p", Toy("seed", "siblings"))
    cases = tuple(a_case(i) for i in range(110))
    path = a_run(
        tmp_path / "r",
        plan=Plan(cases=cases, stages=(("quality", "c1", 1),)),
        route_diff=a_speculative_diff(),
    )
    (path / "probe").mkdir(exist_ok=True)
    (tmp_path / "p" / "probe" / "probes.json").rename(path / "probe" / "probes.json")
    gate = judge(path).gate("correctness")
    failed = {check.name for check in gate.checks if check.status is Status.FAILED}
    assert failed == {"probe[seed]", "sampled[siblings]"}
    assert gate.status is Status.FAILED
    assert any("this change is lossy" in hint for hint in gate.hints)
