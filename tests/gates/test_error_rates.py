"""Error rates of whole gates by simulation: an arm held against itself, and a loss."""

import numpy as np
import pytest
from gate_cases import agreed, an_answer

from routeproof.gates.evidence import Evidence
from routeproof.gates.facts import QualityRow
from routeproof.gates.gain import gain_checks
from routeproof.gates.load import Load
from routeproof.gates.measure_quality import corrected
from routeproof.gates.measure_speed import measure_speed
from routeproof.gates.ratios import throughput_rows
from routeproof.gates.result import Status
from routeproof.gates.slower import slower_checks
from routeproof.metrics.requests import Labels, Requests
from routeproof.proof.policy import GainSpec, PerformanceSpec
from routeproof.records.columns import Column
from routeproof.stats.paired_binary import harm_p_value

pytestmark = pytest.mark.slow

ARMS = ("baseline", "candidate", "control")
GROUPS, BLOCK = 12, 8
N = GROUPS * len(ARMS) * BLOCK


def a_speed_run(rng, gain=1.0):
    """Three arms in interleaved blocks; blocks drift together, requests jitter."""
    shape = (GROUPS, len(ARMS), BLOCK)
    drift = np.exp(rng.normal(0, 0.1, (GROUPS, 1, 1)))
    unit = drift * np.exp(rng.normal(0, 0.15, shape))
    unit[:, 1] /= gain
    end = np.cumsum(unit.ravel())
    start = end - unit.ravel()
    case = np.broadcast_to(np.arange(GROUPS * BLOCK).reshape(GROUPS, 1, BLOCK), shape)
    arm = np.broadcast_to(np.arange(3).reshape(1, 3, 1), shape)
    every = np.ones(N, dtype=bool)
    numbers = {
        "intended_s": start,
        "end_s": end,
        "trial": np.zeros(N),
        "block": np.repeat(np.arange(N // BLOCK), BLOCK).astype(float),
        "output_tokens": np.full(N, 20.0),
        "request_latency": unit.ravel(),
        "time_to_first_token": 0.2 * unit.ravel(),
        "time_per_output_token": 0.04 * unit.ravel(),
    }

    def label(codes, *names):
        return Labels(codes.ravel().astype(np.int32), names)

    zeros = np.zeros(N)
    return Requests(
        N,
        {name: Column(values, every) for name, values in numbers.items()},
        {
            "arm": label(arm, *ARMS),
            "phase": label(zeros, "latency"),
            "level": label(zeros, "c1"),
            "outcome": label(zeros, "completed"),
            "case_id": label(case, *map(str, range(GROUPS * BLOCK))),
        },
    )


def judged(rng, gain, asked):
    wanted = agreed(performance=PerformanceSpec(gain=GainSpec(at_least=asked)))
    load = Load(requests=a_speed_run(rng, gain), agreed=wanted)
    found = Evidence(agreed=wanted, speed=measure_speed(load))
    return gain_checks(found)[0].status, slower_checks(found)


def test_an_arm_held_against_itself_is_hardly_ever_called_slower_or_faster():
    rng = np.random.default_rng(20261130)
    slower = proven = 0
    for _ in range(20):
        gain, checks = judged(rng, 1.0, 1.05)
        slower += any(check.status is Status.FAILED for check in checks)
        proven += gain is Status.PASSED
    assert slower <= 2
    assert proven <= 2


def test_a_gain_well_above_what_was_asked_is_nearly_always_proven():
    rng = np.random.default_rng(7)
    proven = sum(judged(rng, 1.5, 1.2)[0] is Status.PASSED for _ in range(8))
    assert proven >= 7


def test_the_gain_interval_keeps_its_error_rate_at_what_was_asked():
    """One-sided 5 %: 200 runs give 10 by chance, and rarely more than 17."""
    rng = np.random.default_rng(2)
    above = 0
    for _ in range(200):
        load = Load(requests=a_speed_run(rng, 1.2), agreed=agreed())
        row = throughput_rows(load, "latency", "c1")[0]
        above += row.gain_interval.low >= 1.2
    assert above <= 17


def a_slice(place, losses, gains):
    harm = harm_p_value(losses=losses, gains=gains)
    return QualityRow(
        question=f"slice {place}",
        metric="headline",
        origin="screening",
        units=60,
        answer=an_answer("undecided", harm_p_value=harm),
    )


def test_screening_many_equal_slices_accuses_hardly_ever():
    """Twenty slices without harm: one run in twenty may accuse any of them."""
    rng = np.random.default_rng(5)
    accused = 0
    for _ in range(400):
        flips = rng.binomial(60, 0.1, 20)
        losses = rng.binomial(flips, 0.5)
        rows = [
            a_slice(place, int(lost), int(all_flips - lost))
            for place, (all_flips, lost) in enumerate(zip(flips, losses, strict=True))
        ]
        accused += any(row.adjusted_harm_p <= 0.05 for row in corrected(rows))
    assert accused <= 30


def test_a_slice_that_is_truly_harmed_is_found_among_nineteen():
    found = corrected([*(a_slice(i, 3, 3) for i in range(19)), a_slice(19, 14, 0)])
    assert found[-1].adjusted_harm_p <= 0.05
    assert all(row.adjusted_harm_p > 0.05 for row in found[:-1])


def test_asked_questions_are_left_uncorrected():
    row = QualityRow(
        question="contains", metric="contains", origin="declared", answer=an_answer()
    )
    assert corrected([row])[0].adjusted_harm_p is None
