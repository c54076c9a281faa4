"""Memory, stability and acceptance over their facts."""

import numpy as np
import pytest
from builders import a_speculative_diff, with_
from gate_cases import agreed, changed, check_of, evidence

from routeproof.gates.acceptance import judge_acceptance
from routeproof.gates.evidence import Acceptance, Speed, Stability
from routeproof.gates.facts import Arms, LoadRow, MemoryRow, TrendRow
from routeproof.gates.memory_stability import judge_memory_stability
from routeproof.gates.result import Status
from routeproof.gates.stability import with_capacity, with_power
from routeproof.metrics.telemetry import Series
from routeproof.proof.policy import AcceptanceSpec, MemorySpec, PerformanceSpec


def memory(limits=None, **changes):
    given = {"has_telemetry": True, **changes}
    found = with_(
        evidence(),
        agreed=agreed(memory=limits or MemorySpec()),
        stability=Stability(**given),
    )
    return judge_memory_stability(found)


def a_row(name="device_memory_bytes", baseline=1e9, candidate=1e9, **changes):
    return MemoryRow(
        name=name,
        unit="bytes",
        peak=Arms(baseline=baseline, candidate=candidate),
        **changes,
    )


def test_a_peak_inside_its_limit_passes_and_over_it_fails():
    limit = MemorySpec(peak_bytes_ratio_max=1.05)
    assert memory(limit, memory=(a_row(candidate=1.04e9),)).status is Status.PASSED
    over = memory(limit, memory=(a_row(candidate=1.2e9),))
    assert over.status is Status.FAILED
    assert over.flags == ("memory_over",)


def test_too_small_a_kv_cache_fails():
    limit = MemorySpec(kv_capacity_ratio_min=0.8)
    small = a_row("kv_capacity_tokens", 1000.0, 600.0)
    assert memory(limit, memory=(a_row(), small)).status is Status.FAILED


def test_a_limit_without_a_measurement_is_never_a_pass():
    limit = MemorySpec(peak_bytes_ratio_max=1.05)
    assert memory(limit).status is Status.NOT_MEASURED
    assert memory(has_telemetry=False).status is Status.NOT_MEASURED


def test_a_gate_that_is_half_measured_says_what_is_lacking():
    limit = MemorySpec(peak_bytes_ratio_max=1.05)
    found = memory(limit, events=events(crashes=(0, 0)))
    assert found.status is Status.INCONCLUSIVE
    assert "nothing was sampled" in found.reason


def leak(slope, low, soak_s=1800.0):
    row = a_row(
        per_hour=Arms(candidate=slope),
        per_hour_low=Arms(candidate=low),
    )
    limit = MemorySpec(leak_bytes_per_hour_max=1e6)
    return check_of(memory(limit, memory=(row,), soak_s=soak_s), "leak").status


def test_a_leak_fails_when_even_its_lower_limit_is_over():
    assert leak(5e6, 2e6) is Status.FAILED
    assert leak(5e6, -1e6) is Status.INCONCLUSIVE
    assert leak(1e5, -1e6) is Status.PASSED
    assert leak(5e6, 2e6, soak_s=None) is Status.INCONCLUSIVE


def test_a_growth_nobody_agreed_on_stays_open_when_it_is_notable():
    def status(low, baseline=0.0, soak_s=1800.0):
        row = a_row(
            per_hour=Arms(candidate=3e7, baseline=baseline),
            per_hour_low=Arms(candidate=low),
        )
        return check_of(memory(memory=(row,), soak_s=soak_s), "leak")

    assert status(2e7).status is Status.INCONCLUSIVE
    assert status(2e7).required
    assert status(5e6).status is Status.PASSED
    assert status(2e7, baseline=2e7).status is Status.PASSED
    assert not status(2e7, soak_s=None).required


def normal_stops(candidate, baseline, n=500):
    rows = [
        {"arm": arm, "name": "normal_stops", "count": count, "of": n}
        for arm, count in (("baseline", baseline), ("candidate", candidate))
    ]
    return check_of(memory(memory=(a_row(),), events=tuple(rows)), "normal_stops")


def test_answers_that_end_abnormally_in_the_soak_fail_when_there_are_more():
    assert normal_stops(470, 499).status is Status.FAILED
    assert normal_stops(497, 499).status is Status.PASSED
    assert normal_stops(440, 440).status is Status.PASSED
    assert normal_stops(498, 499).candidate == pytest.approx(0.996)


def preempted(candidate, baseline, requests=400):
    loads = tuple(
        LoadRow(arm=arm, phase="soak", level="c8", requests=requests)
        for arm in ("baseline", "candidate")
    )
    row = MemoryRow(
        name="preemptions",
        unit="count",
        peak=Arms(baseline=baseline, candidate=candidate),
    )
    found = with_(
        evidence(),
        agreed=agreed(),
        stability=Stability(has_telemetry=True, memory=(a_row(), row)),
        speed=Speed(loads=loads),
    )
    return check_of(judge_memory_stability(found), "preemptions").status


def test_preemptions_fail_when_the_candidate_has_more_of_them():
    assert preempted(40.0, 0.0) is Status.FAILED
    assert preempted(40.0, 38.0) is Status.PASSED
    assert preempted(2.0, 0.0) is Status.PASSED
    assert preempted(0.0, 90.0) is Status.PASSED


def test_a_capacity_that_is_stated_and_not_sampled_counts():
    rows = with_capacity((), Arms(baseline=1000.0, candidate=600.0))
    limit = MemorySpec(kv_capacity_ratio_min=0.8)
    assert memory(limit, memory=(a_row(), *rows)).status is Status.FAILED
    sampled = (a_row("kv_capacity_tokens", 10.0, 10.0),)
    assert with_capacity(sampled, Arms(baseline=1.0)) == sampled


def test_the_power_of_all_devices_is_one_series():
    at = np.array([0.0, 1.0])
    seen = with_power(
        {
            ("candidate", "device0_power_w"): Series(at, np.array([100.0, 200.0])),
            ("candidate", "device1_power_w"): Series(at, np.array([50.0, 60.0])),
            ("baseline", "process_rss_bytes"): Series(at, np.array([1.0, 1.0])),
        }
    )
    assert seen["candidate", "power_w"].values.tolist() == [150.0, 260.0]
    assert ("baseline", "power_w") not in seen


def test_kv_blocks_that_stay_in_use_are_a_leak():
    row = a_row(
        "kv_used_share", 0.6, 0.6, after_drain=Arms(baseline=0.0, candidate=0.4)
    )
    assert memory(memory=(a_row(), row)).status is Status.FAILED


def events(**counts):
    return tuple(
        {"arm": arm, "name": name, "count": count}
        for name, (base, cand) in counts.items()
        for arm, count in (("baseline", base), ("candidate", cand))
    )


@pytest.mark.parametrize(
    ("counts", "status"),
    [
        ({"crashes": (0, 1)}, Status.FAILED),
        ({"restarts": (0, 2)}, Status.FAILED),
        ({"stuck_streams": (0, 1)}, Status.FAILED),
        ({"stuck_streams": (2, 2)}, Status.PASSED),
        ({"stuck_streams": (None, 0)}, Status.PASSED),
        ({"timeouts": (0, 1), "crashes": (0, 0)}, Status.PASSED),
    ],
)
def test_what_broke_on_the_candidate(counts, status):
    found = memory(memory=(a_row(),), events=events(**counts))
    assert found.status is status
    assert ("unstable" in found.flags) == (status is Status.FAILED)


def test_streams_that_hang_beside_an_unknown_baseline_are_no_fault_yet():
    found = memory(memory=(a_row(),), events=events(stuck_streams=(None, 1)))
    check = check_of(found, "stuck_streams")
    assert check.status is Status.INCONCLUSIVE
    assert "unknown on the baseline" in check.reason
    assert check.baseline is None


def test_a_crash_counts_without_any_telemetry():
    found = memory(has_telemetry=False, events=events(crashes=(0, 1)))
    assert found.status is Status.FAILED


def a_trend(arm, change, p=0.001, metric="request_latency"):
    return TrendRow(
        metric=metric,
        arm=arm,
        first=1.0,
        last=1.0 + change,
        change_share=change,
        p_value=p,
        n=300,
    )


def test_latency_that_rises_over_the_soak_fails_unless_the_baseline_rises_too():
    rising = (a_trend("candidate", 0.5), a_trend("baseline", 0.02))
    assert memory(memory=(a_row(),), trends=rising).status is Status.FAILED
    both = (a_trend("candidate", 0.5), a_trend("baseline", 0.4))
    assert memory(memory=(a_row(),), trends=both).status is Status.PASSED
    check = check_of(memory(memory=(a_row(),), trends=both), "trend[request_latency]")
    assert (check.kind, check.baseline, check.candidate) == ("value", 0.4, 0.5)
    falling = (a_trend("candidate", -0.5), a_trend("baseline", 0.0))
    assert memory(memory=(a_row(),), trends=falling).status is Status.PASSED


def acceptance(floors=None, trends=(), **changes):
    given = {
        "overall": {
            "tokens_per_pass": 2.5,
            "tokens_per_pass_low": 2.4,
            "tokens_per_pass_high": 2.6,
            "acceptance_rate": 0.6,
            "break_even_tokens_per_pass": 1.3,
            "requests": 200.0,
        },
        "source": "per_request",
        **changes,
    }
    found = with_(
        evidence(),
        routes=a_speculative_diff(),
        agreed=agreed(
            performance=PerformanceSpec(acceptance=floors or AcceptanceSpec())
        ),
        acceptance=Acceptance(**given),
    )
    return judge_acceptance(changed(found, "stability", trends=tuple(trends)))


def test_acceptance_above_its_floor_passes():
    assert acceptance(AcceptanceSpec(tokens_per_pass_min=2.0)).status is Status.PASSED


def test_acceptance_below_its_floor_fails():
    found = acceptance(AcceptanceSpec(tokens_per_pass_min=3.0))
    assert found.status is Status.FAILED
    assert found.flags == ("below_floor",)


def test_a_floor_inside_the_interval_is_open():
    found = acceptance(AcceptanceSpec(tokens_per_pass_min=2.45))
    assert found.status is Status.INCONCLUSIVE


def test_a_route_without_speculation_has_nothing_to_judge():
    found = judge_acceptance(evidence())
    assert found.status is Status.NOT_MEASURED
    assert found.flags == ("not_speculative",)


def test_an_engine_that_exports_nothing_is_not_measured():
    assert acceptance(source="none").status is Status.NOT_MEASURED


def test_counts_that_contradict_each_other_decide_nothing():
    found = acceptance(identities={"histogram_sums_to_passes": False})
    assert found.status is Status.INCONCLUSIVE


def test_a_speculative_route_that_never_drafts_fails():
    assert acceptance(identities={"speculates_as_configured": False}).status is (
        Status.FAILED
    )


def by_class(**values):
    return tuple(
        {
            "class": name,
            "requests": 40,
            "tokens_per_pass": value,
            "tokens_per_pass_low": value - 0.05,
            "tokens_per_pass_high": value + 0.05,
        }
        for name, value in values.items()
    )


def test_a_class_that_pays_more_than_it_gets_is_a_collapse():
    found = acceptance(tables={"by_class": by_class(code=3.0, chat=1.05)})
    assert found.status is Status.FAILED
    assert "chat" in check_of(found, "collapse").reason
    assert "tokenizer" in found.hints[0]


def test_classes_above_what_a_pass_costs_are_fine():
    found = acceptance(tables={"by_class": by_class(code=3.0, chat=1.5)})
    assert found.status is Status.PASSED


def test_acceptance_that_falls_with_load_fails():
    rows = tuple(
        {
            "load": f"sweep c{level}",
            "tokens_per_pass": value,
            "tokens_per_pass_low": value - 0.05,
            "tokens_per_pass_high": value + 0.05,
        }
        for level, value in ((1, 2.6), (16, 1.6))
    )
    assert acceptance(tables={"by_load": rows}).status is Status.FAILED


def test_acceptance_that_decays_over_the_soak_fails():
    falling = [
        a_trend("candidate", -0.4, metric="acceptance_rate"),
    ]
    assert acceptance(trends=falling).status is Status.FAILED


def test_a_draft_that_learns_from_repeated_prompts_is_said():
    rows = tuple(
        {"repetition": f"time {i + 1}", "tokens_per_pass": value}
        for i, value in enumerate((1.4, 2.0, 2.6))
    )
    assert "learns from repeats" in acceptance(tables={"by_repetition": rows}).hints[0]


def test_texts_past_their_natural_end_are_no_evidence():
    found = acceptance(refused=("3 cases are sent with `ignore_eos`",))
    assert found.status is Status.INCONCLUSIVE
    assert "ignore_eos" in found.reason


def test_acceptance_that_ignores_the_text_is_said():
    assert "forces" in acceptance(looks_forced=True).hints[0]
