from pathlib import Path

import pytest
from route_specs import compared

from routeproof.proof.file import load_proof
from routeproof.routes.lock import lock_of
from routeproof.routes.parity import parity_problems
from routeproof.routes.resolve import resolve

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize("name", ["20-dflash2-vllm", "21-dflash2-sglang"])
def test_a_dflash_example_is_complete_and_changes_only_speculation(name):
    proof = load_proof(EXAMPLES / name / "proof.yaml")
    baseline, candidate = resolve(proof)
    found = compared(baseline, candidate)
    assert parity_problems(found) == ()
    assert found.baseline.unverified() == found.candidate.unverified() == ()
    assert found.change_class == "lossless"
    assert found.is_speculative
    assert found.candidate.value("speculation.draft_tokens") == "7"
    assert {"thinking", "past_the_window"} <= set(proof.workload.classes_required)
    assert max(proof.workload.load.sweep.concurrency) > 1
    lock = lock_of(found.candidate)
    assert lock is not None
    assert lock.draft["speculation.draft.model"] == "z-lab/Qwen3.8-27B-DFlash2"


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*/proof.yaml")), ids=str)
def test_every_example_loads(path):
    load_proof(path)
