import pytest
from engine_pages import recorded
from hypothesis import given
from hypothesis import strategies as st

from routeproof.engines.adapter import Counters
from routeproof.engines.adapters import ADAPTERS
from routeproof.engines.windows import window
from routeproof.metrics.acceptance import AcceptanceCounts, derive
from routeproof.metrics.acceptance_checks import identities
from routeproof.metrics.acceptance_windows import (
    OwnTraffic,
    counts_of_gauge,
    counts_of_window,
)

LIKE = AcceptanceCounts(method="eagle3", draft_tokens=3, topology="chain")


def scrape(at_s: float, start: float | None = 100.0, **replicas: dict) -> Counters:
    """Counters of one instant; replicas by name, ``one={...}``."""
    values = {} if start is None else {"process_start_s": start}
    return Counters(at_s=at_s, values=values, replicas=replicas)


def test_replicas_grow_apart_and_are_summed():
    before = scrape(0, one={"drafted_total": 10}, two={"drafted_total": 100})
    after = scrape(5, one={"drafted_total": 14}, two={"drafted_total": 103})
    found = window([before, after])
    assert found.deltas == {"drafted_total": 7}
    assert (found.start_s, found.end_s, found.restarts) == (0, 5, 0)


def test_a_replica_that_restarts_is_split_off():
    before = scrape(0, one={"drafted_total": 10}, two={"drafted_total": 100})
    middle = scrape(1, one={"drafted_total": 2}, two={"drafted_total": 110})
    after = scrape(2, one={"drafted_total": 5}, two={"drafted_total": 115})
    found = window([before, middle, after])
    assert found.deltas == {"drafted_total": 3 + 15}
    assert found.restarts == 1
    assert "restarted 1 times" in found.reasons[0]


def test_a_new_process_is_a_restart_even_when_its_counters_are_higher():
    before = scrape(0, 100.0, one={"drafted_total": 10})
    after = scrape(9, 200.0, one={"drafted_total": 50})
    found = window([before, after])
    assert (found.deltas, found.restarts) == ({}, 1)


def test_a_replica_that_comes_or_goes_is_noted():
    before = scrape(0, one={"drafted_total": 10})
    after = scrape(1, one={"drafted_total": 11}, two={"drafted_total": 9})
    found = window([before, after])
    assert found.deltas == {"drafted_total": 1}
    assert "came or went" in found.reasons[0]


def test_a_counter_missing_at_one_end_is_unknown_but_a_new_position_began_at_zero():
    before = scrape(0, one={"drafted_total": 1})
    after = scrape(
        1,
        one={
            "drafted_total": 5,
            "accepted_total": 4,
            "accepted_at_position_total:0": 3,
        },
    )
    found = window([before, after])
    assert found.deltas == {"drafted_total": 4, "accepted_at_position_total:0": 3}


def test_gauges_are_not_counted_and_a_busy_end_is_noted():
    before = Counters(at_s=0, values={"running": 1}, replicas={"": {"running": 1}})
    after = Counters(at_s=1, values={}, replicas={"": {"running": 3}})
    found = window([before, after])
    assert found.deltas == {}
    assert "requests were running" in found.reasons[0]
    with pytest.raises(ValueError, match="two scrapes"):
        window([before])


@pytest.mark.slow
@given(st.lists(st.integers(0, 50), min_size=1, max_size=8))
def test_growth_over_steps_is_the_growth_over_the_whole(steps):
    totals = [sum(steps[:i]) for i in range(len(steps) + 1)]
    scrapes = [scrape(i, one={"a_total": float(t)}) for i, t in enumerate(totals)]
    assert window(scrapes).deltas == window([scrapes[0], scrapes[-1]]).deltas


DELTAS = {
    "spec_passes_total": 20.0,
    "drafted_total": 60.0,
    "accepted_total": 30.0,
    "output_tokens_total": 64.0,
    "requests_total": 2.0,
    "accepted_at_position_total:0": 15.0,
    "accepted_at_position_total:1": 10.0,
    "accepted_at_position_total:2": 5.0,
}
OWN = OwnTraffic(requests=2, completion_tokens=64)


def test_an_exclusive_window_is_exact():
    found = counts_of_window(DELTAS, OWN, LIKE)
    assert (found.source, found.trust, found.reasons) == ("counter_delta", "exact", ())
    assert (found.spec_passes, found.plain_passes) == (20, 12)
    assert found.accepted_at == (15, 10, 5)
    assert all(i.holds for i in identities(found))
    assert derive(found).tokens_per_pass == pytest.approx(62 / 32)


@pytest.mark.parametrize(
    ("own", "says"),
    [
        (OwnTraffic(requests=1, completion_tokens=64), "served 2 requests, we sent 1"),
        (OwnTraffic(requests=2, completion_tokens=50), "wrote 64 tokens, ours are 50"),
    ],
)
def test_foreign_traffic_lowers_the_trust(own, says):
    found = counts_of_window(DELTAS, own, LIKE)
    assert found.trust == "approximate"
    assert says in found.reasons[0]


def test_a_restart_lowers_the_trust():
    found = counts_of_window(DELTAS, OWN, LIKE, reasons=("the engine restarted",))
    assert found.trust == "approximate"


def test_accepted_tokens_follow_from_decoded_ones_where_no_counter_has_them():
    deltas = {"spec_passes_total": 20.0, "decode_tokens_total": 50.0}
    found = counts_of_window(deltas, OWN, LIKE)
    assert (found.accepted, found.trust) == (30, "derived")
    assert found.plain_passes == 0
    assert found.drafted is None


def test_verify_passes_follow_from_the_first_position_where_no_counter_has_them():
    deltas = {
        "drafted_total": 60.0,
        "accepted_total": 30.0,
        "drafted_at_position_total:1": 20.0,
        "drafted_at_position_total:2": 20.0,
        "accepted_at_position_total:1": 18.0,
        "accepted_at_position_total:2": 12.0,
    }
    found = counts_of_window(deltas, OWN, LIKE)
    assert (found.spec_passes, found.trust) == (20, "derived")
    assert found.drafted_at == (20, 20)
    assert found.accepted_at == (18, 12)


def test_a_window_without_speculation_is_unavailable():
    found = counts_of_window({"output_tokens_total": 64.0}, OWN, LIKE)
    assert (found.source, found.trust) == ("none", "unavailable")


def test_a_gauge_gives_no_integers():
    found = counts_of_gauge(4.8, LIKE)
    assert (found.source, found.trust) == ("gauge_window", "unavailable")
    assert found.accepted is None
    assert "4.80" in found.reasons[-1]


def test_a_recorded_vllm_window_satisfies_the_identities():
    folder = "engine_captures_vllm"
    pages = [
        recorded(folder, f"vllm-ngram.metrics_{end}.prom").read_text()
        for end in ("before", "after")
    ]
    found = window([ADAPTERS["vllm"].counters(p, i) for i, p in enumerate(pages)])
    own = OwnTraffic(requests=int(found.deltas["requests_total"]))
    like = AcceptanceCounts(method="ngram", draft_tokens=4, topology="chain")
    made = counts_of_window(found.deltas, own, like)
    assert made.trust == "exact"
    assert all(i.holds for i in identities(made))


def test_a_recorded_llamacpp_window_counts_by_position():
    folder, route = "engine_captures_llamacpp", "spec-draft-q2_k"
    pages = [
        recorded(folder, f"{route}.metrics_{end}.prom").read_text()
        for end in ("before", "after")
    ]
    found = window([ADAPTERS["llama.cpp"].counters(p, i) for i, p in enumerate(pages)])
    like = AcceptanceCounts(method="draft_model", draft_tokens=8, topology="chain")
    made = counts_of_window(found.deltas, OwnTraffic(requests=57), like)
    assert (made.spec_passes, made.drafted, made.accepted) == (704, 5191, 1600)
    assert sum(made.accepted_at) == made.accepted
    assert {i.name for i in identities(made) if not i.holds} == set()
