"""Speed: gain, SLOs, slower anywhere, hidden gains, shorter answers."""

import pytest
from builders import with_
from gate_cases import (
    a_latency_row,
    a_load,
    a_ratio,
    agreed,
    an_interval,
    changed,
    check_of,
    evidence,
    speed,
)

from routeproof.gates.facts import Percentile
from routeproof.gates.latency import judge_latency
from routeproof.gates.result import Status
from routeproof.gates.slo import metric_of, quantile_of, target_load
from routeproof.proof.policy import GainSpec, PerformanceSpec

THROUGHPUT = "output_token_throughput"


def judged(*ratios, asked=1.2, slo=None, **changes):
    performance = PerformanceSpec(gain=GainSpec(at_least=asked), slo=slo or {})
    found = with_(
        evidence(),
        agreed=agreed(performance=performance),
        speed=speed(*ratios, **changes),
    )
    return judge_latency(found)


def test_a_gain_is_proven_when_its_lower_limit_reaches_what_was_asked():
    found = judged(a_ratio(THROUGHPUT, 1.4, 1.25, 1.55))
    assert found.status is Status.PASSED
    assert "gain_proven" in found.flags


def test_a_gain_that_may_be_there_is_open():
    found = judged(a_ratio(THROUGHPUT, 1.25, 1.1, 1.4))
    assert found.status is Status.INCONCLUSIVE
    assert "gain_proven" not in found.flags


def test_a_gain_that_is_shown_to_be_absent_fails_without_being_slower():
    found = judged(a_ratio(THROUGHPUT, 1.05, 1.0, 1.1))
    assert found.status is Status.FAILED
    assert "slower" not in found.flags


def test_who_asks_for_no_gain_only_needs_no_loss():
    found = judged(a_ratio(THROUGHPUT, 1.0, 0.98, 1.02), asked=1.0)
    assert found.status is Status.PASSED
    assert "gain_proven" not in found.flags


def test_a_gain_inside_the_noise_of_the_control_is_not_proven():
    noisy = a_ratio(
        THROUGHPUT,
        1.3,
        1.25,
        1.35,
        control_ratio=1.2,
        control_interval=an_interval(1.0, 1.4),
    )
    found = judged(noisy)
    assert check_of(found, "gain").status is Status.INCONCLUSIVE


def test_few_blocks_have_no_interval_and_prove_nothing():
    thin = with_(
        a_ratio(THROUGHPUT, 1.5),
        interval=None,
        gain_interval=None,
        note="3 blocks; an interval needs 4",
    )
    found = judged(thin)
    assert found.status is Status.INCONCLUSIVE
    assert "3 blocks" in found.reason


@pytest.mark.parametrize("metric", ["request_latency", "time_to_first_token"])
def test_a_time_that_is_clearly_worse_at_a_declared_load_fails(metric):
    found = judged(a_ratio(THROUGHPUT), a_ratio(metric, 0.8))
    assert found.status is Status.FAILED
    assert "slower" in found.flags


def test_worse_within_the_tolerance_does_not_fail():
    found = judged(a_ratio(THROUGHPUT), a_ratio("request_latency", 0.97, 0.96, 0.98))
    assert found.status is Status.PASSED


def test_slower_than_the_baseline_but_not_than_its_own_noise_does_not_fail():
    noisy = a_ratio(
        "request_latency",
        0.9,
        0.85,
        0.95,
        control_ratio=1.1,
        control_interval=an_interval(1.02, 1.25),
    )
    assert judged(a_ratio(THROUGHPUT), noisy).status is Status.PASSED


def test_a_chunk_gap_alone_is_never_slower():
    bundled = a_ratio("chunk_gap", 0.25)
    assert judged(a_ratio(THROUGHPUT), bundled).status is Status.PASSED


def test_fast_when_idle_and_slower_at_peak_is_named():
    found = judged(
        a_ratio(THROUGHPUT, 1.5, phase="sweep", level="c1"),
        a_ratio(THROUGHPUT, 0.7, phase="sweep", level="c64"),
        a_ratio("request_latency", 1.5, phase="sweep", level="c1"),
        a_ratio("request_latency", 0.7, phase="sweep", level="c64"),
    )
    assert found.status is Status.FAILED
    assert "fast when idle, slower at peak" in check_of(found, "slower_at_peak").reason


SLO = {"time_to_first_token_s": {"p95": 0.3}}


def test_an_slo_is_met_when_the_upper_limit_is_inside():
    check = check_of(judged(slo=SLO), "slo")
    assert check.status is Status.PASSED


def test_an_slo_is_missed_when_the_lower_limit_is_outside():
    rows = (a_latency_row(p95=0.6), a_latency_row(p95=0.5, arm="baseline"))
    found = judged(slo=SLO, latencies=rows)
    assert "slo_missed" in found.flags
    assert "the baseline misses it too" in check_of(found, "slo").reason


def test_an_slo_whose_interval_straddles_it_is_open():
    rows = (a_latency_row(p95=0.3),)
    assert check_of(judged(slo=SLO, latencies=rows), "slo").status is (
        Status.INCONCLUSIVE
    )


def test_a_percentile_of_too_few_requests_is_open_and_says_how_many():
    few = Percentile(q=0.95, value=None, n_needed=59)
    rows = (a_latency_row(percentiles=(few,), n=20),)
    check = check_of(judged(slo=SLO, latencies=rows), "slo")
    assert check.status is Status.INCONCLUSIVE
    assert check.n_needed == 59


def test_a_percentile_among_the_failures_misses_every_slo():
    lost = Percentile(q=0.95, value=None, n_needed=59, is_infinite=True)
    rows = (a_latency_row(percentiles=(lost,), failed=20),)
    assert check_of(judged(slo=SLO, latencies=rows), "slo").status is Status.FAILED


def test_an_slo_on_a_metric_nobody_measured_is_not_measured():
    check = check_of(judged(slo={"no_such_time_s": {"p95": 1.0}}), "slo")
    assert check.status is Status.NOT_MEASURED


def test_the_target_load_is_the_top_of_the_sweep():
    loads = (
        a_load(phase="quality"),
        a_load(phase="sweep", level="c4", asked=4.0),
        a_load(phase="sweep", level="c16", asked=16.0),
        a_load(phase="latency"),
    )
    assert target_load(changed(evidence(), "speed", loads=loads)) == ("sweep", "c16")


def test_a_workload_of_long_prompts_says_that_it_hides_decode():
    found = judged(a_ratio(THROUGHPUT, 1.05, 1.0, 1.3), prefill_share=0.8)
    assert "decode_gain_hidden" in found.flags
    assert "prefill takes 80%" in found.hints[0]


def test_short_answers_are_said_and_a_proven_gain_needs_no_excuse():
    found = judged(a_ratio(THROUGHPUT), median_output_tokens=8.0)
    assert "decode_gain_hidden" not in found.flags
    assert "at most 8 tokens" in found.hints[0]


def test_faster_only_because_shorter_fails():
    shorter = a_ratio("output_length", 1 / 0.95, 1 / 0.97, 1 / 0.93)
    matched = a_ratio("request_latency", 0.9, 0.85, 0.95)
    found = judged(matched_length=matched, length_ratio=shorter)
    assert check_of(found, "not_because_shorter").status is Status.FAILED
    assert "gain_proven" not in found.flags


def test_names_people_write_are_understood():
    assert metric_of("inter_token_latency_s") == "time_per_output_token"
    assert metric_of("request_latency_s") == "request_latency"
    assert quantile_of("p99.9") == 0.999
    assert quantile_of("median") is None
