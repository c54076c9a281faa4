import json

import pytest
from route_specs import a_route, compared, launched, said, speculation

from routeproof.proof.route import RouteSpec
from routeproof.routes.modes import mode_of
from routeproof.routes.parity import parity_problems
from routeproof.routes.read_back import ReadBack


def config(**options) -> str:
    return json.dumps({"method": "eagle3", "num_speculative_tokens": 3, **options})


SYNTHETIC = {
    "vllm method": launched(
        "vllm",
        "serve",
        "--speculative-config",
        config(rejection_sample_method="synthetic"),
    ),
    "vllm rates": launched(
        "vllm",
        "serve",
        f"--speculative_config={config(synthetic_acceptance_rates=[0.9])}",
    ),
    "vllm length": launched(
        "vllm", "serve", "--speculative-config", config(synthetic_acceptance_length=3.2)
    ),
    "sglang environment": launched("serve", SGLANG_SIMULATE_ACC_LEN="4"),
    "sglang environment in the command": launched(
        "env", "SGLANG_SIMULATE_ACC_LEN=4", "python", "-m", "sglang.launch_server"
    ),
    "llama.cpp rates": launched("llama-server", "--spec-synth-rates", "0.9,0.8"),
    "llama.cpp length": launched("llama-server", "--spec-synth-len", "3"),
    "tensorrt-llm environment": launched(
        "trtllm-serve", "m", TLLM_SPEC_DECODE_FORCE_NUM_ACCEPTED_TOKENS="2.3"
    ),
    "atom": launched("atom", "--spec-decode-acceptance-length", "3.1"),
}


@pytest.mark.parametrize("launch", SYNTHETIC.values(), ids=SYNTHETIC)
def test_forced_acceptance_is_found_in_command_and_environment(launch):
    found = mode_of(RouteSpec(launch=launch), None)
    assert found.mode == "synthetic"
    assert found.reasons


@pytest.mark.parametrize(
    "launch",
    [
        launched("vllm", "--speculative-config", config(rejection_sample_method="fly")),
        launched("serve", "--speculative-accept-threshold-single", "0.9"),
        launched("serve", "--speculative-accept-threshold-acc=.5"),
        launched("serve", '{"use_relaxed_acceptance_for_thinking": true}'),
    ],
)
def test_a_lossy_switch_is_found(launch):
    assert mode_of(RouteSpec(launch=launch), None).mode == "lossy"


@pytest.mark.parametrize(
    "launch",
    [
        launched("vllm", "--speculative-config", config()),
        launched(
            "vllm", "--speculative-config", config(synthetic_acceptance_rates=None)
        ),
        launched("serve", "--speculative-accept-threshold-single", "1.0", "-md", "d"),
        launched("serve", "-md", "d", SGLANG_SIMULATE_ACC_LEN="-1"),
        launched("serve", "-md", "d", SGLANG_SIMULATE_ACC_LEN=""),
    ],
)
def test_a_switch_that_is_off_is_no_finding(launch):
    assert mode_of(RouteSpec(launch=launch), None).mode == "lossless"


def test_an_option_in_the_proof_file_is_found():
    spec = a_route(speculation=speculation(options={"accept_threshold_single": 0.8}))
    assert mode_of(spec, None).mode == "lossy"


def test_a_running_server_tells_on_itself():
    raw = {
        "speculative_accept_threshold_single": 0.7,
        "speculative_algorithm": "EAGLE3",
    }
    live = ReadBack(
        engine="sglang",
        fields={"speculation.method": "EAGLE3"},
        cannot_tell=(),
        models=(),
        raw={"/server_info": json.dumps({"internal_states": [raw]})},
    )
    found = mode_of(a_route(), live)
    assert (found.mode, found.from_read_back) == ("lossy", True)


def test_sglang_on_a_processor_verifies_greedily_and_is_lossy():
    live = said("sglang", speculation__method="NGRAM", hardware__device="cpu")
    found = mode_of(a_route(), live)
    assert found.mode == "lossy"
    assert "sampling parameters are ignored" in found.reasons[0]
    on_gpu = said("sglang", speculation__method="NGRAM", hardware__device="cuda")
    assert mode_of(a_route(), on_gpu).mode == "lossless"


def test_a_route_without_speculation_has_no_mode():
    assert mode_of(a_route(), said(speculation__method="none")).mode == "none"
    assert mode_of(a_route(), None).mode == "unknown"


@pytest.mark.parametrize("arms", [(True, False), (False, True), (True, True)])
def test_forced_acceptance_on_any_side_makes_the_comparison_invalid(arms):
    fake = launched("serve", SGLANG_SIMULATE_ACC_LEN="4")
    honest = launched("serve")
    baseline, candidate = (a_route(launch=fake if arm else honest) for arm in arms)
    found = compared(baseline, candidate)
    assert found.change_class == "invalid"
    problems = [p for p in parity_problems(found) if p.kind == "invalid"]
    assert len(problems) == 1
    assert "simulates" in problems[0].why


def test_a_lossy_mode_makes_the_change_lossy_even_when_intended():
    baseline = a_route()
    lossy = speculation(options={"accept_threshold_single": 0.8})
    candidate = a_route(speculation=lossy, changes=("speculation",))
    found = compared(baseline, candidate)
    assert found.change_class == "lossy"
    assert parity_problems(found) == ()
