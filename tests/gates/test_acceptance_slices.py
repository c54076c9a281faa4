"""Acceptance by slice, in two factors, along the answer and against the past."""

import numpy as np
import pytest
from builders import a_case, a_speculative_diff, with_
from gate_cases import agreed, check_of, evidence
from gates.test_measures import a_load, sent
from hypothesis import given
from hypothesis import strategies as st
from metric_cases import requests as reduced

from routeproof.gates.acceptance import judge_acceptance
from routeproof.gates.acceptance_reference import drift_rows, reference_from
from routeproof.gates.evidence import Acceptance
from routeproof.gates.measure_acceptance import (
    Past,
    like_of,
    measure_acceptance,
    own_requests,
)
from routeproof.gates.result import Status
from routeproof.gates.slices import case_facts
from routeproof.metrics.acceptance_drift import Reference
from routeproof.metrics.acceptance_profile import output_position_rows
from routeproof.proof.policy import AcceptanceSpec, PerformanceSpec

CASES = [a_case(i) for i in range(60)]


def drafted(case, accepted=6, **changes):
    """An answer of 10 tokens of which ``accepted`` were drafts."""
    passes = 9 - accepted
    return sent(
        "candidate",
        case,
        spec_passes=passes,
        plain_passes=0,
        drafted=4 * passes,
        accepted=accepted,
        **changes,
    )


def measured(records, cases=None, past=None, **changes):
    given = CASES if cases is None else cases
    facts = case_facts(given, {}, {})
    load = a_load(*records, **changes)
    return measure_acceptance(load, a_speculative_diff(), given, facts, {}, past=past)


def rows(found, name):
    return {row[name]: row for row in found.tables[f"by_{name}"]}


def test_every_kind_of_request_has_its_slice():
    cases = [
        a_case(
            i,
            tags={"language": "zh" if i % 2 else "en"},
            parameters={"temperature": 0.7} if i % 3 == 0 else {"temperature": 0.0},
            messages=({"role": "user", "content": f"Say {i}"},) * (1 + i % 2),
        )
        for i in range(60)
    ]
    records = [
        drafted(
            i,
            6 if i % 2 else 3,
            reasoning_tokens=5 if i % 2 else 0,
            cached_tokens=8 if i % 5 == 0 else 0,
            prompt_tokens=500 if i % 2 else 20,
        )
        for i in range(60)
    ]
    found = measured(records, cases)
    for name, odd, even in (
        ("language", "zh", "en"),
        ("turns", "multi", "single"),
        ("thinking", "on", "off"),
        ("prompt_length", "256 to 1023", "under 64"),
    ):
        table = rows(found, name)
        assert table[odd]["tokens_per_pass"] == pytest.approx(3.0)
        assert table[even]["tokens_per_pass"] == pytest.approx(1.5)
    assert rows(found, "temperature").keys() == {"0", "0.7"}
    assert rows(found, "cache")["hit"]["requests"] == 12


def test_a_load_that_is_come_back_to_is_a_row_of_its_own():
    records, at = [], 0.0
    for level, accepted in (("c1", 6), ("c16", 3), ("c1", 3)):
        for case in range(20):
            at += 10.0
            records.append(
                drafted(
                    case,
                    accepted,
                    request_id=f"{at}",
                    phase="sweep",
                    level=level,
                    at=at,
                )
            )
    found = measured(records)
    table = rows(found, "load")
    assert list(table) == ["sweep c1", "sweep c16", "sweep c1, time 2"]
    gate = judge_acceptance(
        with_(evidence(), routes=a_speculative_diff(), acceptance=found)
    )
    assert check_of(gate, "holds_under_load").status is Status.FAILED
    recovers = check_of(gate, "recovers_after_load")
    assert recovers.status is Status.FAILED
    assert "at sweep c1, 1.50 at sweep c1, time 2" in recovers.reason


def pair(case, *, accepted, slow):
    """The baseline, and a candidate whose passes take ``slow`` times as long."""
    passes = 9 - accepted
    step = 0.1 * slow * passes / 9
    begun = case * 10.0 + 2.0
    yield sent("baseline", case)
    yield drafted(
        case,
        accepted,
        chunk_s=tuple(begun + 1.0 + step * i for i in range(10)),
        end_s=begun + 1.0 + 9 * step,
    )


def test_much_accepted_and_little_gained_is_explained_by_two_factors():
    records = [r for i in range(60) for r in pair(i, accepted=7, slow=3.75)]
    found = measured(records)
    overall = found.overall
    assert overall["tokens_per_pass"] == pytest.approx(4.5)
    assert overall["step_ratio"] == pytest.approx(3.75, rel=1e-3)
    assert overall["decode_speed"] == pytest.approx(1.2, rel=1e-3)
    assert overall["decode_speed"] == pytest.approx(
        overall["tokens_per_pass"] / overall["step_ratio"], rel=1e-3
    )
    assert overall["break_even_tokens_per_pass"] == pytest.approx(3.75, rel=1e-3)
    gate = judge_acceptance(
        with_(evidence(), routes=a_speculative_diff(), acceptance=found)
    )
    assert "4.50 [4.50, 4.50] tokens" in check_of(gate, "acceptance_factor").reason
    assert "3.75" in check_of(gate, "step_factor").reason
    told = check_of(gate, "break_even")
    assert told.status is Status.PASSED
    assert "1.20" in told.reason and "for sure" in told.reason


def test_a_draft_that_costs_more_than_it_yields_breaks_not_even():
    records = [r for i in range(60) for r in pair(i, accepted=3, slow=2.0)]
    gate = judge_acceptance(
        with_(evidence(), routes=a_speculative_diff(), acceptance=measured(records))
    )
    assert check_of(gate, "acceptance_factor").status is Status.PASSED
    assert check_of(gate, "step_factor").status is Status.INCONCLUSIVE
    told = check_of(gate, "break_even")
    assert told.status is Status.INCONCLUSIVE
    assert "0.75" in told.reason and "for sure" not in told.reason


def test_each_factor_has_an_interval_over_prompts():
    records = [
        r
        for i in range(60)
        for r in pair(i, accepted=5 + i % 3, slow=2.0 + 0.3 * (i % 4))
    ]
    overall = measured(records).overall
    for name in ("tokens_per_pass", "step_ratio", "decode_speed"):
        assert overall[f"{name}_low"] < overall[name] < overall[f"{name}_high"]


def test_acceptance_along_the_answer_is_read_from_the_chunks():
    # The first chunk is the prefill's; passes of 2 tokens follow, then of 4.
    chunks = (1, *(2,) * 20, *(4,) * 10)

    def answers(passes):
        return reduced(
            *(
                sent(
                    "candidate",
                    i,
                    spec_passes=passes,
                    plain_passes=0,
                    output_tokens=sum(chunks),
                    chunk_tokens=chunks,
                    chunk_s=tuple(3.0 + 0.01 * k for k in range(len(chunks))),
                )
                for i in range(3)
            )
        )

    every = np.ones(3, dtype=bool)
    # Three passes and 31 chunks do not belong together: nothing is claimed.
    assert output_position_rows(answers(3), every) == []
    table = output_position_rows(answers(30), every)
    assert [row["output_position"] for row in table] == ["0 to 31", "32 to 127"]
    assert table[0]["tokens_per_pass"] == 2.0
    assert table[1]["tokens_per_pass"] == pytest.approx((5 * 2 + 10 * 4) / 15, rel=0.1)
    assert sum(row["passes"] for row in table) == 3 * 30


@given(st.lists(st.integers(1, 5), min_size=2, max_size=200))
def test_stretches_of_an_answer_add_up_to_it(chunks):
    record = sent(
        "candidate",
        0,
        spec_passes=len(chunks) - 1,
        plain_passes=0,
        drafted=9 * len(chunks),
        accepted=sum(chunks[1:]) - len(chunks) + 1,
        output_tokens=sum(chunks),
        chunk_tokens=tuple(chunks),
        chunk_s=tuple(3.0 + 0.01 * k for k in range(len(chunks))),
    )
    made = reduced(record, record)
    table = output_position_rows(made, np.ones(2, dtype=bool))
    tokens = sum(row["passes"] * row["tokens_per_pass"] for row in table)
    assert sum(row["passes"] for row in table) == 2 * (len(chunks) - 1)
    assert tokens == pytest.approx(2 * sum(chunks[1:]))


# -- against a stored reference -----------------------------------------------------


def reference(records, workload="w" * 64):
    load = a_load(*records)
    return reference_from(
        load.requests,
        own_requests(load.requests),
        case_facts(CASES, {}, {}),
        like=like_of(a_speculative_diff()),
        workload=workload,
    )


def judged(records, past):
    spec = AcceptanceSpec(reference="acceptance.json")
    found = measured(records, past=past)
    return judge_acceptance(
        with_(
            evidence(),
            routes=a_speculative_diff(),
            agreed=agreed(performance=PerformanceSpec(acceptance=spec)),
            acceptance=found,
        )
    )


def uneven(shift=0):
    return [drafted(i, max(0, min(8, 3 + i % 4 - shift))) for i in range(60)]


def test_a_reference_holds_the_integers_of_run_class_and_case():
    kept = reference(uneven())
    assert kept.overall.requests == 60
    assert set(kept.slices) == {f"class={c}" for c in {c.class_ for c in CASES}}
    assert len(kept.cases) == 60
    one = kept.cases["case-00000"]
    assert (one.decoded, one.passes) == (9, 6)
    assert sum(c.passes for c in kept.cases.values()) == kept.overall.spec_passes


def test_a_version_that_accepts_less_on_the_same_prompts_fails():
    past = Past(reference(uneven()), "w" * 64)
    gate = judged(uneven(shift=1), past)
    check = check_of(gate, "drift")
    assert check.status is Status.FAILED and gate.status is Status.FAILED
    assert "tokens per pass" in check.reason and "(overall)" in check.reason


def test_the_same_acceptance_is_no_drift_and_neither_is_a_gain():
    past = Past(reference(uneven(shift=1)), "w" * 64)
    for records in (uneven(shift=1), uneven()):
        assert check_of(judged(records, past), "drift").status is Status.PASSED


def test_a_fall_within_what_was_agreed_passes():
    past = Past(reference(uneven()), "w" * 64, fall_max_share=0.5)
    assert check_of(judged(uneven(shift=1), past), "drift").status is Status.PASSED


def test_another_workload_cannot_be_held_against_the_reference():
    past = Past(reference(uneven()), "x" * 64)
    check = check_of(judged(uneven(), past), "drift")
    assert check.status is Status.NOT_MEASURED
    assert "another workload" in check.reason


def test_a_reference_that_was_not_kept_is_no_pass():
    assert check_of(judged(uneven(), None), "drift").status is Status.NOT_MEASURED


def test_pairs_make_a_small_fall_sure_that_passes_alone_do_not():
    then, now = reference(uneven()), reference(uneven(shift=1))
    paired = drift_rows(then, now, tolerance=0.05)[0][0]
    bare = [Reference(workload=r.workload, overall=r.overall) for r in (then, now)]
    alone = drift_rows(*bare, tolerance=0.05)[0][0]
    assert (paired["metric"], paired["where"]) == ("tokens_per_pass", "overall")
    assert paired["pairs"] == 60 and alone["pairs"] == 0
    assert abs(paired["z"]) > abs(alone["z"])


def test_a_proof_without_a_reference_asks_nothing():
    gate = judge_acceptance(
        with_(
            evidence(),
            routes=a_speculative_diff(),
            acceptance=Acceptance(
                overall={"tokens_per_pass": 2.0}, source="per_request"
            ),
        )
    )
    assert "drift" not in {check.name for check in gate.checks}
