"""The main job on the real engine, as a person runs it."""

import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from jobs.short_proof import short_proof

from routeproof.gates.result import Status
from routeproof.jobs.demo import DemoSize, demo_proof
from routeproof.jobs.judge import judge
from routeproof.jobs.qualify import Options, qualify
from routeproof.records.store import RunFolder

pytestmark = [pytest.mark.engine, pytest.mark.slow]

SMALL = DemoSize(cases=9, required_per_class=1)


def a_proof(folder, variant):
    path = folder / f"{variant}.yaml"
    path.write_text(demo_proof(variant, path, size=SMALL))
    return path


def test_the_baseline_against_itself_fails_no_gate(tmp_path):
    # The small questions are what takes the time; the control is what is asked here.
    options = Options(has_probes=False, has_features=False)
    proof = short_proof(tmp_path, "same")
    judgement = qualify(proof, tmp_path / "run", options=options)
    assert [g.gate for g in judgement.gates if g.status is Status.FAILED] == []
    assert judgement.evidence.has_control
    flips = judgement.evidence.quality.flips_total
    assert flips == 0, "the engine is deterministic at one stream, greedy"


def test_killed_in_the_middle_and_resumed_is_the_whole_run_once(tmp_path):
    proof, run = a_proof(tmp_path, "ngram"), tmp_path / "run"
    command = [sys.executable, "-m", "routeproof", "qualify", str(proof)]
    first = subprocess.Popen(
        [*command, "--out", str(run), "--keep-going", "--no-probes"],
        stderr=subprocess.PIPE,
    )
    _wait_for_parts(run, first)
    first.send_signal(signal.SIGKILL)
    first.communicate()
    kept = set(RunFolder.open(run).done_request_ids())
    assert kept
    qualify(proof, run, options=Options(resume=True, keep_going=True, has_probes=False))
    ids = [
        name
        for part in RunFolder.open(run).parts()
        for name in part.text("request_id").tolist()
    ]
    assert len(ids) == len(set(ids))
    assert kept < set(ids)
    stages = RunFolder.open(run).read_manifest().plan["stages"]
    assert len(ids) == sum(stage["requests"] for stage in stages)
    before = (run / "judgement.json").read_bytes()
    judge(run)
    assert (run / "judgement.json").read_bytes() == before


def _wait_for_parts(run: Path, process: subprocess.Popen) -> None:
    """Block until the first records are on disk, by watching the progress lines."""
    assert process.stderr is not None
    for _ in process.stderr:
        if list((run / "records").glob("*.parquet")):
            return
    raise AssertionError(f"the run ended early with {process.wait()}")


def test_no_engine_outlives_an_interrupted_run(tmp_path):
    proof, run = a_proof(tmp_path, "same"), tmp_path / "run"
    process = subprocess.Popen(
        [sys.executable, "-m", "routeproof", "qualify", str(proof), "--out", str(run)],
        stderr=subprocess.PIPE,
    )
    assert process.stderr is not None
    process.stderr.readline()
    below = psutil.Process(process.pid).children(recursive=True)
    assert [p for p in below if "embedded_server" in " ".join(p.cmdline())]
    process.send_signal(signal.SIGINT)
    _, words = process.communicate(timeout=60)
    assert process.returncode == 130, words
    assert "Traceback" not in words.decode()
    assert not [p for p in below if p.is_running()]
