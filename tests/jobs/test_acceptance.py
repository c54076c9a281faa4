"""The acceptance of a run: shown, kept, and held against an earlier one."""

import json

import builders
import msgspec
import pytest
from click.testing import CliRunner
from stored_runs import a_run

from routeproof.cli.app import app
from routeproof.errors import ConfigError, FormatError
from routeproof.jobs.acceptance import acceptance
from routeproof.jobs.comparing.accepted import acceptance_drift
from routeproof.jobs.gathering.acceptance_past import KEPT_NAME, keep_reference, past_of
from routeproof.jobs.gathering.gathered import gather_run
from routeproof.jobs.judge import judge
from routeproof.metrics.acceptance_drift import read_reference
from routeproof.proof.policy import AcceptanceSpec, PerformanceSpec
from routeproof.proof.proof import Proof
from routeproof.proof.route import RouteSpec


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    place = tmp_path_factory.mktemp("runs")
    a_run(place / "then", accepted=3)
    a_run(place / "now", accepted=2)
    a_run(place / "other", accepted=3, fingerprint="e" * 64)
    return place


def test_a_run_is_kept_as_a_reference_and_is_no_drift_against_itself(runs, tmp_path):
    path = tmp_path / "acceptance.json"
    found = acceptance(runs / "then", save=path)
    assert read_reference(path) == found.reference
    assert found.reference.overall.accepted > 0
    assert set(found.reference.slices) == {"class=even", "class=odd"}
    again = acceptance(runs / "then", against=path).moved
    assert again and not any(each.fell for each in again)
    assert all(each.change == 0 for each in again)


@pytest.mark.parametrize("kept", [True, False], ids=["a file", "a run"])
def test_a_lower_acceptance_is_found_against_a_file_and_a_run(runs, tmp_path, kept):
    against = runs / "then"
    if kept:
        against = tmp_path / "acceptance.json"
        acceptance(runs / "then", save=against)
    fell = [
        each for each in acceptance(runs / "now", against=against).moved if each.fell
    ]
    assert {each.where for each in fell} == {"overall", "class=even", "class=odd"}
    assert all(each.now < each.then for each in fell)


def test_two_gathered_runs_are_compared_in_one_call(runs):
    then, now = gather_run(runs / "then"), gather_run(runs / "now")
    assert any(each.fell for each in acceptance_drift(then, now))
    with pytest.raises(FormatError, match="another workload"):
        acceptance_drift(gather_run(runs / "other"), now)


def test_a_run_without_counts_has_no_reference(runs, tmp_path):
    builders.a_run(tmp_path / "plain")
    with pytest.raises(FormatError, match="carries counts"):
        acceptance(tmp_path / "plain")
    plain = gather_run(tmp_path / "plain")
    assert acceptance_drift(plain, plain) == ()


def a_proof(reference):
    spec = AcceptanceSpec(reference=reference)
    route = RouteSpec(endpoint="http://127.0.0.1:1/v1", model="m")
    return Proof(
        baseline=route,
        candidate=route,
        performance=PerformanceSpec(acceptance=spec),
    )


def with_reference(runs, name, folder):
    """The run with a reference kept in it and a proof that names it."""
    acceptance(runs / "then", save=folder / "acceptance.json")
    proof = a_proof("acceptance.json")
    keep_reference(proof, folder, runs / name)
    manifest = gather_run(runs / name).manifest
    changed = msgspec.structs.replace(manifest, proof=msgspec.to_builtins(proof))
    gather_run(runs / name).folder.write_manifest(changed)
    return judge(runs / name).gate("acceptance")


def test_a_proof_that_names_a_reference_is_judged_against_it(tmp_path):
    for name, accepted in (("then", 3), ("now", 2), ("same", 3)):
        a_run(tmp_path / name, accepted=accepted)
    gate = with_reference(tmp_path, "now", tmp_path)
    (check,) = [c for c in gate.checks if c.name == "drift"]
    assert check.status.value == "failed"
    gate = with_reference(tmp_path, "same", tmp_path)
    (check,) = [c for c in gate.checks if c.name == "drift"]
    assert check.status.value == "passed"
    assert (tmp_path / "now" / KEPT_NAME).exists()


def test_a_reference_that_is_missing_or_broken_is_named_before_the_run(tmp_path):
    with pytest.raises(ConfigError, match="cannot be read") as found:
        keep_reference(a_proof("nowhere.json"), tmp_path, tmp_path)
    assert "--save" in found.value.hint
    (tmp_path / "broken.json").write_text("[]")
    with pytest.raises(ConfigError, match="no acceptance reference"):
        keep_reference(a_proof("broken.json"), tmp_path, tmp_path)
    keep_reference(a_proof(None), tmp_path, tmp_path)
    assert not (tmp_path / KEPT_NAME).exists()


def test_a_run_of_a_proof_without_a_reference_has_no_past(runs):
    assert past_of(gather_run(runs / "then")) is None


def invoke(*arguments):
    return CliRunner().invoke(app, ["acceptance", *map(str, arguments)])


def test_the_command_shows_slices_and_exits_with_1_when_it_fell(runs, tmp_path):
    shown = invoke(runs / "then", "--save", tmp_path / "a.json")
    assert shown.exit_code == 0, shown.output
    assert "class=odd" in shown.output and "overall" in shown.output
    fell = invoke(runs / "now", "--against", tmp_path / "a.json")
    assert fell.exit_code == 1
    assert "FELL overall: acceptance rate" in fell.output
    mild = invoke(runs / "now", "--against", tmp_path / "a.json", "--fall", "0.9")
    assert mild.exit_code == 0


def test_the_command_prints_one_document(runs):
    found = invoke(runs / "now", "--against", runs / "then", "--json")
    document = json.loads(found.output)
    assert document["now"]["overall"]["requests"] > 0
    assert any(row["fell"] for row in document["moved"])
