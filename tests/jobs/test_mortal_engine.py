"""A request that ends the candidate's engine: it is started anew and gone around."""

import json
import sys
from pathlib import Path

import pytest
from qualify_cases import crates

from routeproof.errors import ConfigError
from routeproof.jobs.qualify import Options, qualify
from routeproof.records.store import RunFolder
from routeproof.reports.release_sheet import render
from routeproof.workloads.cases import write_cases

pytestmark = pytest.mark.slow

SPECULATES = (
    "--speculative-config",
    '{"method": "ngram", "num_speculative_tokens": 4}',
)
PROGRAM = Path(__file__).with_name("mortal_engine.py")


def a_proof(folder, *deadly, cases=None):
    """A proof of two engines that are launched; the candidate's ends at some fields."""
    write_cases(cases or crates(6), folder / "cases.jsonl")
    command = [sys.executable, str(PROGRAM), "{port}"]
    proof = {
        "baseline": {
            "model": "org/M",
            "revision": "r1",
            "speculation": {"method": "none"},
            "launch": {"command": command},
        },
        "candidate": {
            "like": "baseline",
            "speculation": {"method": "ngram", "draft_tokens": 4},
            "changes": ["speculation"],
            "launch": {"command": [*command, *deadly, *SPECULATES]},
        },
        "workload": {
            "cases": ["cases.jsonl"],
            "load": {"latency": None, "warmup_requests": 0},
        },
        "quality": [{"metric": "headline", "tolerance": 0.05}],
    }
    path = folder / "proof.yaml"
    path.write_text(json.dumps(proof))
    return path


def ran(folder, *deadly, **options):
    found = qualify(
        a_proof(folder, *deadly),
        folder / "run",
        options=Options(has_control=False, **options),
    )
    return found, RunFolder.open(folder / "run")


def test_the_run_goes_on_and_the_feature_goes_around(tmp_path):
    found, folder = ran(tmp_path, "top_k")
    assert found.evidence.fallback == ("top_k",)
    assert folder.read_manifest().finished
    assert len(list(folder.done_request_ids())) == 12
    sheet = render(found)
    assert "`traffic: {fallback: [top_k]}`" in sheet
    note = "a request with top_k ends the engine of the candidate; it was started anew"
    assert note in found.evidence.notes
    log = folder.log_path("candidate").read_text()
    assert log.count("listening") == log.count("ended by top_k") + 1
    assert log.count("ended by top_k") == 2, "once in the crowd, once alone"
    died = folder.read_manifest().engines["candidate"].get("died")
    assert died is None, "the engine of the run itself lived"


def test_each_of_several_is_found(tmp_path):
    found, _ = ran(tmp_path, "top_k", "min_p", has_probes=False)
    assert found.evidence.fallback == ("min_p", "top_k")


def test_a_probe_that_ends_the_engine_is_found_out_too(tmp_path):
    """Not among the features that are tried first: only the probes ask for it."""
    found, folder = ran(tmp_path, "top_p")
    assert folder.read_manifest().finished
    assert "a request with top_p ends" in " ".join(found.evidence.notes)
    probes = json.loads((folder.path / "probe" / "probes.json").read_text())
    told = probes["answers"]["candidate"]
    assert all(each["text"] for row in told["min_p"].values() for each in row)
    assert not any(each.get("text") for row in told["top_p"].values() for each in row)


def test_a_workload_that_needs_the_feature_is_unfair(tmp_path):
    cases = crates(6, parameters={"top_k": 3})
    with pytest.raises(ConfigError, match="candidate: ends"):
        qualify(a_proof(tmp_path, "top_k", cases=cases), tmp_path / "run")


def test_an_engine_that_never_comes_up_again_says_so(tmp_path):
    with pytest.raises(ConfigError, match="plain request"):
        ran(tmp_path, "messages")
