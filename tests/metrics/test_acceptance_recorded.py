"""Recorded and published acceptance figures come out as they were."""

import csv

import numpy as np
import pytest
from acceptance_cases import column, everyone, requests
from engine_pages import recorded, rows

from routeproof.engines.adapters import ADAPTERS
from routeproof.engines.windows import window
from routeproof.metrics.acceptance import AcceptanceCounts, derive, speedup
from routeproof.metrics.acceptance_checks import identities, same_sums
from routeproof.metrics.acceptance_profile import profile, repetition_slice
from routeproof.metrics.acceptance_sums import sum_counts
from routeproof.metrics.acceptance_windows import OwnTraffic, counts_of_window

SGLANG = {
    "sglang-ngram": AcceptanceCounts(method="ngram", draft_tokens=4, topology="chain"),
    "sglang-draft-self": AcceptanceCounts(
        method="draft_model", draft_tokens=3, topology="chain"
    ),
    "sglang-draft-q2k": AcceptanceCounts(
        method="draft_model", draft_tokens=3, topology="chain"
    ),
}
SGLANG |= {
    name: SGLANG["sglang-draft-q2k"]
    for name in (
        "sglang-fp32-draft-q2k",
        "sglang-fp32-draft-self",
        "sglang-fp32-draft-self-noradix",
    )
}
SGLANG["sglang-fp32-ngram"] = SGLANG["sglang-ngram"]


def sglang_rows(route: str, trial: int | None = None) -> list[dict]:
    return [
        row
        for row in rows("engine_captures_sglang", "paired_outputs.jsonl")
        if row["route"] == route and trial in (None, row["trial"])
    ]


def sglang_requests(found: list[dict]):
    bodies = [{"sglext": row["sglext"], "meta_info": row["meta_info"]} for row in found]
    details = [ADAPTERS["sglang"].details(body) for body in bodies]
    return requests(details, [row["usage"]["completion_tokens"] for row in found])


@pytest.mark.parametrize(
    ("route", "trial", "accepted", "drafted"),
    [
        ("sglang-ngram", 0, 270, 3044),
        ("sglang-ngram", 1, 728, 1200),
        ("sglang-ngram", 2, 792, 956),
        ("sglang-ngram", 3, 266, 3084),
        ("sglang-draft-self", 0, 707, 960),
        ("sglang-draft-self", 2, 707, 960),
        ("sglang-draft-q2k", 1, 625, 1287),
        ("sglang-fp32-ngram", 0, 262, 3136),
        ("sglang-fp32-draft-q2k", 0, 624, 1326),
        ("sglang-fp32-draft-self", 0, 737, 1011),
        ("sglang-fp32-draft-self-noradix", 0, 784, 882),
    ],
)
def test_sglang_integers_come_out_and_their_identities_hold(
    route, trial, accepted, drafted
):
    records = sglang_requests(sglang_rows(route, trial))
    found = sum_counts(records, everyone(records), SGLANG[route])
    assert (found.requests, found.accepted, found.drafted) == (24, accepted, drafted)
    assert [i for i in identities(found) if not i.holds] == []
    for index in range(records.n):
        one = sum_counts(records, np.arange(records.n) == index, SGLANG[route])
        assert [i for i in identities(one) if not i.holds] == []


def test_the_true_length_is_not_the_engines_ratio():
    silent = next(
        row
        for row in sglang_rows("sglang-ngram", 0)
        if row["sglext"]["spec_tokens_details"]["spec_num_correct_drafts"] == 0
    )
    said = silent["sglext"]["spec_tokens_details"]["spec_accept_length"]
    records = sglang_requests([silent])
    found = derive(sum_counts(records, everyone(records), SGLANG["sglang-ngram"]))
    assert said > 1.0
    assert found.acceptance_length == 1.0
    assert found.tokens_per_pass == 1.0


@pytest.mark.parametrize("route", ["sglang-ngram", "sglang-draft-self"])
def test_sums_over_requests_equal_the_counters_to_the_token(route):
    found = sglang_rows(route)
    records = sglang_requests(found)
    summed = sum_counts(records, everyone(records), SGLANG[route])
    pages = [
        recorded("engine_captures_sglang", f"{route}.metrics_{end}.prom").read_text()
        for end in ("paired_start", "after")
    ]
    grown = window([ADAPTERS["sglang"].counters(p, i) for i, p in enumerate(pages)])
    own = OwnTraffic(requests=len(found), completion_tokens=summed.completion_tokens)
    by_counters = counts_of_window(grown.deltas, own, SGLANG[route])
    checks = same_sums(summed, by_counters)
    assert len(checks) == 3
    assert [i for i in checks if not i.holds] == []
    assert by_counters.trust == "derived"


def test_ngram_acceptance_that_grows_with_repeated_prompts_is_shown():
    found = [row for row in sglang_rows("sglang-ngram") if row["trial"] < 3]
    records = sglang_requests(found)
    case = np.array([row["id"] for row in found])
    at = column([float(row["trial"]) for row in found])
    split = repetition_slice(case, at, everyone(records))
    made = profile(
        records,
        everyone(records),
        like=SGLANG["sglang-ngram"],
        slices={"repetition": split},
    )
    rates = [row["acceptance_rate"] for row in made.by_slice["repetition"]]
    assert rates == pytest.approx([0.0887, 0.6067, 0.8285], abs=1e-3)


def test_a_longer_draft_is_accepted_longer_but_less_often():
    grid = rows("engine_captures_sglang", "draft_length_grid.jsonl")
    lengths, rates = [], []
    for k in (1, 2, 5):
        found = [row for row in grid if f"-k{k}" in row["route"]]
        if not found:
            pytest.skip("the grid names its routes otherwise")
        records = sglang_requests(found)
        like = AcceptanceCounts(draft_tokens=k, topology="chain")
        made = derive(sum_counts(records, everyone(records), like))
        lengths.append(made.acceptance_length)
        rates.append(made.acceptance_rate)
    assert lengths == pytest.approx([1.68, 2.17, 2.83], abs=0.01)
    assert rates == pytest.approx([0.675, 0.584, 0.366], abs=1e-3)


def vllm_requests(route: str):
    found = [
        row
        for row in rows("engine_captures_vllm", "paired_outputs.jsonl")
        if row["route"] == route
    ]
    bodies = [{"metrics": row["metrics"], "usage": row["usage"]} for row in found]
    details = [ADAPTERS["vllm"].details(body) for body in bodies]
    return requests(details, [row["usage"]["completion_tokens"] for row in found])


def test_vllm_ngram_yields_less_per_pass_than_its_own_number_says():
    records = vllm_requests("vllm-ngram")
    like = AcceptanceCounts(method="ngram", draft_tokens=4, topology="chain")
    found = profile(records, everyone(records), like=like)
    assert [i for i in found.identities if not i.holds] == []
    assert found.derived.acceptance_length > found.derived.tokens_per_pass > 1.0
    assert found.derived.coverage < 0.5
    assert not found.derived.conditional_assumes_fixed_length


def test_a_draft_that_is_the_target_accepts_nearly_all():
    page = recorded("engine_captures_vllm", "vllm-draft-self.metrics_after.prom")
    values = ADAPTERS["vllm"].counters(page.read_text(), 0.0).values
    like = AcceptanceCounts(method="draft_model", draft_tokens=3, topology="chain")
    found = counts_of_window(values, OwnTraffic(requests=26), like)
    assert (found.accepted, found.drafted) == (887, 909)
    assert derive(found).acceptance_rate == pytest.approx(0.976, abs=1e-3)
    assert [i for i in identities(found) if not i.holds] == []


def test_published_worked_numbers_reproduce():
    v1 = derive(AcceptanceCounts(spec_passes=59, drafted=295, accepted=262))
    assert v1.acceptance_length == pytest.approx(5.44, abs=5e-3)
    assert v1.acceptance_rate == pytest.approx(0.888, abs=5e-4)
    assert 1 + sum((0.983, 0.949, 0.915, 0.881, 0.712)) == pytest.approx(
        v1.acceptance_length, abs=2e-3
    )
    bench = derive(AcceptanceCounts(spec_passes=2729, drafted=8187, accepted=5709))
    assert bench.acceptance_rate == pytest.approx(0.6973, abs=1e-4)
    assert bench.acceptance_length == pytest.approx(3.09, abs=5e-3)
    # vLLM V0 counted the bonus tokens in: 3 drafts and 1 bonus a step.
    steps = 13311 // 3
    v0 = derive(AcceptanceCounts(spec_passes=steps, drafted=13311, accepted=8547))
    assert v0.acceptance_rate == pytest.approx(0.642, abs=5e-4)
    assert 10616 / (steps * 4) == pytest.approx(0.598, abs=5e-4)


def table(*parts: str) -> list[dict[str, str]]:
    with recorded(*parts).open(newline="") as file:
        return list(csv.DictReader(file))


def test_a_longer_draft_is_not_always_accepted_longer():
    curves: dict[tuple[str, str], dict[int, float]] = {}
    for row in table("specdec_golden_al", "golden_al.csv"):
        curve = curves.setdefault((row["file"], row["mode"]), {})
        curve[int(row["num_speculative_tokens"])] = float(row["mean_acceptance_length"])
    falling = [
        (curve[6], curve[7], curve[8])
        for curve in curves.values()
        if 8 in curve and curve[8] < curve[6]
    ]
    assert (3.77, 3.73, 3.47) in falling


def test_accepted_length_alone_does_not_make_a_route_faster():
    found = table("specdec_specforge", "accept_length.csv")
    setting = ("target", "benchmark", "batch_size")
    plain = {
        tuple(row[key] for key in setting): float(row["output_throughput_tok_s"])
        for row in found
        if row["draft"] == "none"
    }
    drafted = [row for row in found if row["draft"] != "none"]
    slower = []
    for row in drafted:
        base = plain.get(tuple(row[key] for key in setting))
        if base is None:
            continue
        gain = float(row["output_throughput_tok_s"]) / base
        length = float(row["accept_length"])
        overhead = length / gain - 1.0
        assert speedup(length, overhead) == pytest.approx(gain)
        if gain < 1.0:
            slower.append(length)
    assert len(slower) == 2
    assert max(slower) == pytest.approx(2.5, abs=0.05)
