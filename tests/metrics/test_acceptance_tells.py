import numpy as np
import pytest
from acceptance_cases import everyone, requests, simulate
from engine_pages import rows

from routeproof.engines.adapters import ADAPTERS
from routeproof.errors import FormatError
from routeproof.metrics.acceptance import AcceptanceCounts
from routeproof.metrics.acceptance_drift import (
    Reference,
    drift,
    read_reference,
    reference_of,
    write_reference,
)
from routeproof.metrics.acceptance_profile import profile
from routeproof.metrics.acceptance_tells import (
    dispersion,
    every_pass_the_same,
    why_refused,
)
from routeproof.records.record import EngineDetails
from routeproof.workloads.case import Case


def case(number: int, **changes) -> Case:
    fields = {"id": f"c{number}", "class_": "chat", "prompt": f"Question {number}"}
    return Case(**{**fields, **changes})


def test_a_plain_workload_is_not_refused():
    assert why_refused([case(i, parameters={"max_tokens": 64}) for i in range(5)]) == ()


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"parameters": {"ignore_eos": True}}, "ignore_eos"),
        ({"parameters": {"min_tokens": 64, "max_tokens": 64}}, "forced to a length"),
        ({"tags": {"source": "random"}}, "random tokens"),
        ({"class_": "random_tokens"}, "random tokens"),
    ],
)
def test_one_case_that_inflates_acceptance_is_named(changes, says):
    found = why_refused([case(0), case(1, **changes), case(2)])
    assert len(found) == 1
    assert says in found[0]
    assert "c1" in found[0]


def test_the_same_prompt_over_and_over_is_refused():
    same = [case(i, prompt="Tell me a joke") for i in range(8)]
    assert "repeat another" in why_refused(same)[0]
    several = why_refused([case(i, parameters={"ignore_eos": True}) for i in range(9)])
    assert "9 cases (c0, c1, c2, ...)" in several[0]


def answers(seed: int, rates: np.ndarray, passes: int = 40):
    rng = np.random.default_rng(seed)
    made = [simulate(rng, passes=passes, draft_tokens=4, rate=r) for r in rates]
    return requests(made, [1 + d.passes + d.accepted for d in made])


def test_forced_acceptance_is_too_even_and_a_real_draft_is_not():
    forced = answers(1, np.full(60, 0.6))
    assert dispersion(forced, everyone(forced)).looks_forced()
    rates = np.random.default_rng(2).beta(4, 3, 60)
    real = answers(1, rates)
    assert not dispersion(real, everyone(real)).looks_forced()


def test_too_little_evidence_and_nearly_full_acceptance_are_no_tells():
    few = answers(1, np.full(20, 0.6))
    assert not dispersion(few, everyone(few)).looks_forced()
    full = answers(1, np.full(60, 0.99))
    assert not dispersion(full, everyone(full)).looks_forced()
    nothing = requests([EngineDetails()] * 3, [5, 5, 5])
    assert dispersion(nothing, everyone(nothing)) is None


@pytest.mark.slow
def test_real_drafts_are_hardly_ever_taken_for_forced_ones():
    wrong = forced = 0
    for seed in range(60):
        rates = np.random.default_rng(seed).beta(8, 6, 60)
        real, even = answers(seed, rates), answers(seed, np.full(60, 0.57))
        wrong += dispersion(real, everyone(real)).looks_forced()
        forced += dispersion(even, everyone(even)).looks_forced()
    assert wrong == 0
    assert forced >= 48


def test_recorded_drafts_are_uneven():
    found = [
        row
        for row in rows("engine_captures_sglang", "paired_outputs.jsonl")
        if row["route"] in ("sglang-ngram", "sglang-draft-q2k") and row["trial"] == 0
    ]
    bodies = [{"sglext": r["sglext"], "meta_info": r["meta_info"]} for r in found]
    details = [ADAPTERS["sglang"].details(body) for body in bodies]
    records = requests(details, [r["usage"]["completion_tokens"] for r in found])
    measured = dispersion(records, everyone(records))
    assert measured.ratio > 4
    assert measured.requests == 48


def test_a_pass_that_always_accepts_the_same_is_a_switch():
    constant = EngineDetails(
        accepted=300, spec_passes=100, accepted_hist=(0, 0, 0, 100)
    )
    records = requests([constant] * 8, [401] * 8)
    assert every_pass_the_same(records, everyone(records)) == 3
    few = requests([constant], [401])
    assert every_pass_the_same(few, everyone(few)) is None
    real = answers(1, np.full(60, 0.6))
    assert every_pass_the_same(real, everyone(real)) is None


def test_a_profile_shows_forced_acceptance_as_a_broken_identity():
    like = AcceptanceCounts(topology="chain", draft_tokens=4, method="eagle3")
    for rates, holds in (
        (np.full(60, 0.6), False),
        (np.random.default_rng(2).beta(4, 3, 60), True),
    ):
        records = answers(1, rates)
        found = profile(records, everyone(records), like=like)
        told = {i.name: i.holds for i in found.identities}
        assert told["acceptance_depends_on_the_text"] is holds
        assert "passes_differ" not in told


def counts(rate: float, passes: int = 2000, seed: int = 0) -> AcceptanceCounts:
    made = simulate(
        np.random.default_rng(seed), passes=passes, draft_tokens=4, rate=rate
    )
    return AcceptanceCounts(
        topology="chain",
        draft_tokens=4,
        completion_tokens=1 + passes + made.accepted,
        spec_passes=passes,
        plain_passes=0,
        drafted=made.drafted,
        accepted=made.accepted,
        accepted_hist=made.accepted_hist,
    )


def reference(rate: float, seed: int = 0, **slices: AcceptanceCounts) -> Reference:
    return reference_of("f" * 64, counts(rate, seed=seed), slices)


def test_a_version_that_accepts_less_is_found_overall_and_in_its_slice():
    old = reference(0.7, code=counts(0.8), chat=counts(0.5))
    new = reference(0.6, seed=1, code=counts(0.8, seed=2), chat=counts(0.35, seed=3))
    found = {(d.where, d.metric): d for d in drift(old, new)}
    assert found["overall", "tokens_per_pass"].fell
    assert found["chat", "acceptance_rate"].fell
    assert not found["code", "tokens_per_pass"].fell
    assert found["overall", "acceptance_rate"].change < -0.1


def test_chance_and_gains_are_no_fall():
    assert not any(d.fell for d in drift(reference(0.7), reference(0.7, seed=4)))
    assert not any(d.fell for d in drift(reference(0.5), reference(0.7, seed=4)))
    small = reference_of("f" * 64, counts(0.6, passes=20, seed=5), {})
    old = reference_of("f" * 64, counts(0.7, passes=20), {})
    assert not any(d.fell for d in drift(old, small))


def test_another_workload_is_not_compared():
    other = reference_of("e" * 64, counts(0.7), {})
    with pytest.raises(FormatError, match="another workload"):
        drift(reference(0.7), other)


def test_a_reference_survives_its_file(tmp_path):
    path = tmp_path / "acceptance.json"
    kept = reference(0.7, code=counts(0.8))
    write_reference(path, kept)
    first = path.read_bytes()
    assert read_reference(path) == kept
    write_reference(path, read_reference(path))
    assert path.read_bytes() == first


@pytest.mark.parametrize(
    ("text", "says"),
    [("{", "no acceptance reference"), (None, "cannot be read")],
)
def test_a_broken_reference_is_refused(tmp_path, text, says):
    path = tmp_path / "acceptance.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(FormatError, match=says):
        read_reference(path)


def test_a_count_without_a_histogram_still_has_an_error():
    thin = AcceptanceCounts(
        topology="chain",
        draft_tokens=4,
        completion_tokens=5001,
        passes=2000,
        drafted=8000,
        accepted=3000,
    )
    less = AcceptanceCounts(
        topology="chain",
        draft_tokens=4,
        completion_tokens=4001,
        passes=2000,
        drafted=8000,
        accepted=2000,
    )
    found = drift(reference_of("w", thin, {}), reference_of("w", less, {}))
    assert all(d.fell for d in found)
    assert {d.metric for d in found} == {"tokens_per_pass", "acceptance_rate"}
