"""From requests to rows: speed, outcomes, stability, comparability, acceptance."""

import numpy as np
import pytest
from builders import a_case, a_speculative_diff
from gate_cases import agreed
from metric_cases import requests
from record_cases import a_manifest, a_record

from routeproof.gates.comparable import (
    asked_otherwise,
    has_control,
    is_interleaved,
    prompt_token_problem,
    validity_rows,
    workload_matches,
)
from routeproof.gates.load import Load
from routeproof.gates.measure_acceptance import measure_acceptance
from routeproof.gates.measure_speed import measure_speed
from routeproof.gates.outcomes import guard_rows, outcome_counts, outcome_rows
from routeproof.gates.slices import case_facts
from routeproof.gates.stability import engine_events, event_rows, measure_stability
from routeproof.gates.timeline import time_bins
from routeproof.gates.trends import rank_sum_p_value
from routeproof.metrics.telemetry import Series
from routeproof.proof.policy import PerformanceSpec
from routeproof.records.manifest import ClientHealth

ARMS = ("baseline", "candidate", "control")


def sent(arm, case, *, slow=1.0, at=None, **changes):
    """One request of 10 tokens that takes 1.9 s times ``slow``."""
    begun = case * 10.0 + ARMS.index(arm) * 2.0 if at is None else at
    given = {
        "request_id": f"{arm}/{case}/{changes.get('phase', 'latency')}",
        "arm": arm,
        "phase": "latency",
        "case_id": f"case-{case:05d}",
        "block": case // 8 * 3 + ARMS.index(arm),
        "intended_s": begun,
        "dispatched_s": begun,
        "end_s": begun + 1.9 * slow,
        "chunk_s": tuple(begun + (1.0 + 0.1 * i) * slow for i in range(10)),
        "output_tokens": 10,
        "prompt_tokens": 20,
        **changes,
    }
    return a_record(**given)


def a_load(*records, **changes):
    return Load(requests=requests(*records), agreed=agreed(**changes))


def both(count=64, slow=1.0, **candidate):
    for case in range(count):
        yield sent("baseline", case)
        yield sent("candidate", case, slow=slow, **candidate)


def ratios(speed):
    return {(row.metric, row.of): row for row in speed.ratios}


def test_a_candidate_twice_as_slow_has_a_gain_of_one_half():
    found = ratios(measure_speed(a_load(*both(slow=2.0))))
    for metric in ("request_latency", "time_to_first_token", "time_per_output_token"):
        row = found[metric, "mean"]
        assert row.ratio == pytest.approx(2.0, rel=1e-4)
        assert row.gain == pytest.approx(0.5, rel=1e-4)
        assert row.gain_interval.high == pytest.approx(0.5, rel=1e-3)


def test_throughput_is_turned_so_that_more_is_better():
    row = ratios(measure_speed(a_load(*both(slow=0.5))))[
        "output_token_throughput", "mean"
    ]
    assert row.better == "higher"
    assert row.ratio == row.gain > 1
    assert row.values.candidate > row.values.baseline


def test_a_failed_request_is_not_left_out_of_a_mean():
    records = list(both())
    records[1] = sent(
        "candidate", 0, outcome="timeout", chunk_s=(), output_tokens=None, text=None
    )
    load = Load(requests=requests(*records), agreed=agreed(), timeout_s=60.0)
    row = ratios(measure_speed(load))["request_latency", "mean"]
    assert row.pairs == 64
    assert row.values.candidate == pytest.approx((63 * 1.9 + 60) / 64, rel=1e-6)


def test_percentiles_hold_failures_and_come_only_with_enough_requests():
    found = measure_speed(a_load(*both(count=64)))
    row = next(r for r in found.latencies if r.metric == "request_latency")
    by_q = {p.q: p for p in row.percentiles}
    assert by_q[0.95].value == pytest.approx(1.9)
    assert by_q[0.99].value is None
    assert by_q[0.99].n_needed == 299


def test_a_percentile_that_an_slo_asks_for_is_taken():
    slo = {"inter_token_latency_s": {"p80": 1.0}}
    load = a_load(*both(), performance=PerformanceSpec(slo=slo))
    row = next(
        r for r in measure_speed(load).latencies if r.metric == "time_per_output_token"
    )
    assert 0.8 in {p.q for p in row.percentiles}


def test_quality_requests_are_timed_only_when_nothing_else_was():
    alone = measure_speed(
        a_load(
            *(
                sent(a, c, phase="quality")
                for c in range(9)
                for a in ("baseline", "candidate")
            )
        )
    )
    assert {row.phase for row in alone.latencies} == {"quality"}
    mixed = measure_speed(a_load(*both(9), sent("baseline", 50, phase="quality")))
    assert {row.phase for row in mixed.latencies} == {"latency"}


def test_an_ecdf_ends_below_one_when_requests_failed():
    records = [sent("baseline", c) for c in range(15)]
    records += [
        sent("baseline", 20 + c, outcome="timeout", chunk_s=(), text=None)
        for c in range(5)
    ]
    found = measure_speed(a_load(*records))
    row = next(r for r in found.latencies if r.metric == "request_latency")
    assert row.ecdf[-1][1] == pytest.approx(0.75)
    assert row.failed == 5


def test_prefill_share_is_told_from_the_baseline():
    found = measure_speed(a_load(*both()))
    assert found.prefill_share == pytest.approx(1.0 / 1.9)
    assert found.median_output_tokens == 10


def test_matched_lengths_leave_out_pairs_of_other_lengths():
    records = list(both(64))
    records[1] = sent("candidate", 0, output_tokens=3)
    found = measure_speed(a_load(*records))
    assert found.matched_length.pairs == 63


# -- outcomes ------------------------------------------------------------------------


def test_outcomes_are_counted_with_their_share():
    some = requests(
        sent("baseline", 0), sent("baseline", 1, outcome="timeout", text=None)
    )
    rows = outcome_counts(some)
    assert {(r["outcome"], r["count"], r["share"]) for r in rows} == {
        ("completed", 1, 0.5),
        ("timeout", 1, 0.5),
    }


def test_more_errors_of_the_candidate_are_harm():
    records = list(both(60))
    records[1:40:2] = [
        sent("candidate", c, outcome="http_error", text=None, chunk_s=())
        for c in range(20)
    ]
    rows = {r.question: r for r in outcome_rows(requests(*records), "latency", 0.05)}
    assert rows["no_errors"].answer.decision == "harmed"
    assert rows["no_errors"].losses == 20
    assert rows["not_truncated"].losses == 0


LOOP = "and so on " * 60


def looping(arm, case, is_loop, trial=0):
    return sent(
        arm,
        case,
        phase="soak",
        trial=trial,
        text=LOOP if is_loop else f"The answer is {case}.",
    )


def test_loops_beyond_the_baselines_trip_the_guard():
    some = requests(
        *(looping("baseline", c, False) for c in range(50)),
        *(looping("candidate", c, c < 10) for c in range(50)),
    )
    row = next(r for r in guard_rows(some, "soak", 0.05) if r["check"] == "loops[soak]")
    assert row["tripped"]
    assert row["candidate"] == 0.2


def test_a_baseline_that_loops_as_much_does_not_trip_it():
    some = requests(*(looping(a, c, c < 10) for c in range(50) for a in ARMS[:2]))
    assert not any(row["tripped"] for row in guard_rows(some, "soak", 0.05))


def test_one_case_that_loops_again_and_again_votes_once():
    some = requests(
        *(
            looping(arm, c, arm == "candidate" and c == 0, trial)
            for c in range(5)
            for trial in range(20)
            for arm in ARMS[:2]
        )
    )
    assert not any(row["tripped"] for row in guard_rows(some, "soak", 0.05))


# -- comparability -------------------------------------------------------------------


def test_the_same_cases_match_and_other_cases_do_not():
    assert workload_matches(requests(*both(5))) is True
    apart = requests(
        *(sent("baseline", c) for c in range(5)),
        *(sent("candidate", 100 + c) for c in range(5)),
    )
    assert workload_matches(apart) is False
    assert workload_matches(requests(sent("baseline", 0))) is None


def test_pairs_that_were_sent_other_parameters_are_counted_where_both_are_known():
    some = requests(
        *both(3, asked="warm"),
        *(sent(arm, 10 + c, asked="cold") for c in range(4) for arm in ARMS[:2]),
    )
    assert asked_otherwise(some) == (0, 4)
    some = requests(
        *(sent("baseline", c, asked="cold") for c in range(4)),
        *(sent("candidate", c, asked="warm" if c else "cold") for c in range(4)),
    )
    assert asked_otherwise(some) == (3, 4)


def test_blocks_in_turns_are_told_from_one_after_the_other():
    turns = requests(*both(32))
    assert is_interleaved(turns) is True
    after = requests(
        *(sent("baseline", c, at=float(c)) for c in range(32)),
        *(sent("candidate", c, at=1000.0 + c) for c in range(32)),
    )
    assert is_interleaved(after) is False
    assert is_interleaved(requests(*both(4))) is None


def test_a_control_counts_when_it_was_answered():
    assert not has_control(requests(*both(4)))
    assert has_control(requests(*both(4), sent("control", 0)))
    warm = sent("control", 0, phase="warmup")
    assert not has_control(requests(*both(4), warm))


def test_other_prompt_tokens_for_the_same_case_are_another_template():
    records = [sent(a, c, phase="quality") for c in range(9) for a in ARMS[:2]]
    assert prompt_token_problem(requests(*records), ()) is None
    records.append(sent("candidate", 20, phase="quality", prompt_tokens=25))
    records.append(sent("baseline", 20, phase="quality"))
    some = requests(*records)
    assert "1 of 10 pairs" in prompt_token_problem(some, ("kv_cache",))
    assert prompt_token_problem(some, ("tokenizer.chat_template",)) is None


def test_a_client_that_calls_itself_invalid_is_believed():
    rows = validity_rows(ClientHealth(valid=False, reasons=("lag",)))
    assert [row.is_ok for row in rows] == [False]
    assert validity_rows(None) == ()


# -- stability -----------------------------------------------------------------------


def test_events_are_counted_by_arm():
    some = requests(
        sent("candidate", 0, outcome="http_error", http_status=503, text=None),
        sent("candidate", 1, outcome="timeout", first_byte_s=11.0, text=None),
        sent("baseline", 0),
    )
    counts = {(r["arm"], r["name"]): r["count"] for r in event_rows(some)}
    assert counts["candidate", "http_5xx"] == 1
    assert counts["candidate", "stuck_streams"] == 1
    assert counts["baseline", "timeouts"] == 0


def test_a_death_and_a_restart_are_seen():
    at = np.arange(4.0)
    samples = {
        ("candidate", "process_start_s"): Series(at, np.array([5.0, 5.0, 9.0, 9.0])),
        ("baseline", "requests_total"): Series(at, np.array([1.0, 5.0, 9.0, 12.0])),
    }
    engines = {
        "baseline": {"launched": True},
        "candidate": {"launched": True, "died": "out of memory"},
    }
    rows = engine_events(samples, a_manifest(engines=engines))
    counts = {(r["arm"], r["name"]): r["count"] for r in rows}
    assert counts["candidate", "crashes"] == 1
    assert counts["candidate", "restarts"] == 1
    assert counts["baseline", "crashes"] == 0
    assert counts["baseline", "restarts"] == 0


def test_latency_that_rises_over_the_soak_is_a_trend():
    records = [
        sent(arm, c, phase="soak", slow=1 + (c / 100 if arm == "candidate" else 0))
        for c in range(100)
        for arm in ARMS[:2]
    ]
    found = measure_stability(requests(*records), [], a_manifest())
    trends = {(t.metric, t.arm): t for t in found.trends}
    rising = trends["request_latency", "candidate"]
    assert rising.change_share > 0.3
    assert rising.p_value < 1e-6
    assert abs(trends["request_latency", "baseline"].change_share) < 1e-4
    assert found.soak_s == pytest.approx(992, abs=5)


def test_the_rank_sum_keeps_its_error_rate():
    rng = np.random.default_rng(8)
    called = sum(
        rank_sum_p_value(rng.normal(size=30), rng.normal(size=30)) <= 0.05
        for _ in range(400)
    )
    assert 5 <= called <= 35
    assert rank_sum_p_value(np.ones(30), np.ones(30)) == 1.0


def test_the_time_line_counts_every_request_once():
    some = requests(
        *both(200),
        sent("baseline", 300, outcome="timeout", end_s=None, chunk_s=(), text=None),
    )
    bins = time_bins(some)
    assert sum(sum(b.outcomes.values()) for b in bins) == some.n
    assert len({b.start_s for b in bins}) <= 100
    assert all(b.start_s < b.end_s for b in bins)
    assert time_bins(requests()) == ()


# -- acceptance ----------------------------------------------------------------------


def drafted(case, accepted, **changes):
    return sent(
        "candidate",
        case,
        spec_passes=10 - 1 - accepted,
        plain_passes=0,
        drafted=2 * (9 - accepted),
        accepted=accepted,
        **changes,
    )


def test_acceptance_is_summed_then_divided_and_split_by_class():
    records = [drafted(c, 6 if c % 3 == 0 else 3) for c in range(60)]
    records += [sent("baseline", c) for c in range(60)]
    cases = [a_case(c) for c in range(60)]
    found = measure_acceptance(
        a_load(*records), a_speculative_diff(), cases, case_facts(cases, {}, {}), {}
    )
    assert found.source == "per_request"
    assert found.overall["tokens_per_pass"] == pytest.approx(60 * 9 / (20 * 3 + 40 * 6))
    rows = {row["class"]: row for row in found.tables["by_class"]}
    assert rows["factual_qa"]["tokens_per_pass"] == pytest.approx(3.0)
    assert rows["arithmetic"]["tokens_per_pass"] == pytest.approx(1.5)
    assert rows["arithmetic"]["tokens_per_pass_low"] is not None


def test_counters_stand_in_where_answers_carry_no_counts():
    at = np.arange(3.0)
    samples = {
        ("candidate", name): Series(at, np.array([0.0, end / 2, end]))
        for name, end in [
            ("spec_passes_total", 100.0),
            ("drafted_total", 400.0),
            ("accepted_total", 200.0),
        ]
    }
    found = measure_acceptance(
        a_load(sent("candidate", 0)),
        a_speculative_diff(),
        [],
        case_facts([], {}, {}),
        samples,
    )
    assert found.source == "counter_delta"
    assert found.overall["acceptance_rate"] == pytest.approx(0.5)


def test_an_engine_that_tells_nothing_has_no_acceptance():
    found = measure_acceptance(
        a_load(sent("candidate", 0)),
        a_speculative_diff(),
        [],
        case_facts([], {}, {}),
        {},
    )
    assert found.source == "none"
    assert found.overall == {}
