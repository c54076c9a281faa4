"""Recorded SGLang on a processor: it speculates greedily whatever the temperature."""

import pytest
from builders import a_speculative_diff, with_
from engine_pages import answers, rows
from gate_cases import changed, evidence

from routeproof.engines.adapters import ADAPTERS
from routeproof.gates.result import Status
from routeproof.gates.same_texts import sampled_checks
from routeproof.proof.route import RouteSpec
from routeproof.routes.modes import mode_of
from routeproof.stats.two_sample import mmd_test

SPECULATIVE = ("sglang-ngram", "sglang-draft-self", "sglang-draft-q2k")


def sampled(route):
    """Answers at temperature 0.8 over four seeds, by prompt."""
    found = {}
    for row in rows("engine_captures_sglang", "sampled_outputs.jsonl"):
        if row["route"] == route:
            found.setdefault(row["id"], []).append(row["text"])
    return [found[key] for key in sorted(found)]


@pytest.mark.parametrize("route", SPECULATIVE)
def test_sampling_that_is_ignored_is_a_parity_failure(route):
    baseline, candidate = sampled("sglang-bf16"), sampled(route)
    found = mmd_test(baseline, candidate)
    assert (found.prompts, found.answers) == (6, 48)
    assert found.p_value <= 0.05
    row = {
        "test": "mmd",
        "p_value": found.p_value,
        "control_p_value": 0.6,
        "prompts": found.prompts,
        "answers": found.answers,
    }
    seen = with_(evidence(), routes=a_speculative_diff())
    (check,) = sampled_checks(changed(seen, "quality", sampled=(row,)), 0.05)
    assert check.status is Status.FAILED
    assert "differs" in check.reason


def test_every_seed_of_the_baseline_gives_another_text():
    for texts in sampled("sglang-bf16"):
        assert len(set(texts)) == 4
    alike = sum(len(texts) - len(set(texts)) for texts in sampled("sglang-draft-q2k"))
    assert alike >= 5


@pytest.mark.parametrize("route", SPECULATIVE)
def test_the_route_is_called_lossy_before_anything_is_sampled(route):
    pages = answers("engine_captures_sglang", route, "/v1/models", "/server_info")
    read_back = ADAPTERS["sglang"].read_back(pages)
    found = mode_of(RouteSpec(), read_back)
    assert found.mode == "lossy"
    assert any("greed" in reason for reason in found.reasons)
