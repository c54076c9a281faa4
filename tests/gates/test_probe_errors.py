"""How often probes blame a sound route that does not always repeat itself."""

import numpy as np
import pytest

from routeproof.gates.probed import Answered, Probed, probe_rows
from routeproof.jobs.qualifying.probe_requests import PROMPTS

ALPHA = 0.05
RUNS = 400
TEXTS = ("plain", "again", "stream", "together", "top_k", "presence_penalty")
CHECKS = ("stream", "cache_warm", "together", "top_k", "presence_penalty")


def said(rng, flips, probe, prompt):
    """The greedy answer, or the other side of a near tie.

    The penalty moves every second prompt.
    """
    moved = probe == "presence_penalty" and len(prompt) % 2
    text = prompt + ("!" if moved else "")
    return (Answered(text=text + ("'" if rng.random() < flips else "")),)


def a_run(rng, flips, candidate=None):
    """One run of three arms whose texts flip at this rate, one request at a time."""
    rates = {"baseline": flips, "control": flips, "candidate": candidate or flips}
    answers = {
        arm: {
            probe: {prompt: said(rng, rate, probe, prompt) for prompt in PROMPTS}
            for probe in TEXTS
        }
        for arm, rate in rates.items()
    }
    return Probed(answers=answers)


def blamed(flips, candidate=None):
    """Share of runs in which each check fails, and in which any does."""
    rng = np.random.default_rng(20261201)
    counts = dict.fromkeys((*CHECKS, "any"), 0)
    for _ in range(RUNS):
        rows = probe_rows(a_run(rng, flips, candidate), alpha=ALPHA, is_lossless=True)
        harmed = [
            row.question[len("probe[") : -1]
            for row in rows
            if row.answer is not None and row.answer.decision == "harmed"
        ]
        for name in harmed:
            counts[name] += 1
        counts["any"] += bool(harmed)
    return {name: count / RUNS for name, count in counts.items()}


@pytest.mark.slow
@pytest.mark.parametrize("flips", [0.0, 0.05, 0.2, 0.4])
def test_a_route_no_less_steady_than_the_baseline_is_seldom_blamed(flips):
    found = blamed(flips)
    # Three standard errors of a share of 5 % over this many runs.
    most = ALPHA + 3 * np.sqrt(ALPHA * (1 - ALPHA) / RUNS)
    assert max(found.values()) <= most, found


@pytest.mark.slow
def test_a_route_that_never_repeats_itself_beside_a_steady_one_is_named():
    assert blamed(0.0, candidate=0.6)["any"] >= 0.9
