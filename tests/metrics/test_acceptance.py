import numpy as np
import pytest
from acceptance_cases import column, everyone, requests, simulate
from hypothesis import given
from hypothesis import strategies as st

from routeproof.metrics.acceptance import (
    AcceptanceCounts,
    break_even_tokens_per_pass,
    derive,
    speedup,
    topology_of,
)
from routeproof.metrics.acceptance_checks import (
    checked,
    identities,
    same_sums,
    speculates,
)
from routeproof.metrics.acceptance_profile import (
    Slice,
    length_slice,
    profile,
    repetition_slice,
    time_slice,
)
from routeproof.metrics.acceptance_requests import estimate, step_time
from routeproof.metrics.acceptance_sums import sum_counts, sum_groups
from routeproof.records.columns import Records
from routeproof.records.record import EngineDetails

HISTOGRAMS = st.lists(st.integers(0, 50), min_size=2, max_size=9).filter(sum)


def counts(**fields) -> AcceptanceCounts:
    """A chain of four drafts: 22 verify passes, 9 accepted, 64 tokens."""
    base = {
        "topology": "chain",
        "draft_tokens": 4,
        "completion_tokens": 64,
        "spec_passes": 22,
        "plain_passes": 32,
        "drafted": 87,
        "accepted": 9,
        "accepted_hist": (16, 5, 0, 0, 1),
    }
    return AcceptanceCounts(**{**base, **fields})


def broken(made: AcceptanceCounts) -> set[str]:
    return {i.name for i in identities(made) if not i.holds}


def test_the_headline_counts_every_pass_and_not_only_those_with_a_draft():
    found = derive(counts())
    assert found.acceptance_length == pytest.approx(1.409, abs=1e-3)
    assert found.tokens_per_pass == pytest.approx(63 / 54)
    assert found.coverage == pytest.approx(22 / 54)


def test_shares_and_positions_of_a_chain():
    found = derive(counts())
    assert found.marginal == pytest.approx((6 / 22, 1 / 22, 1 / 22, 1 / 22))
    assert found.conditional == pytest.approx((6 / 22, 1 / 6, 1.0, 1.0))
    assert found.rejected_first == pytest.approx((16 / 22, 5 / 22, 0, 0))
    assert found.zero_accept_share == pytest.approx(16 / 22)
    assert found.full_accept_share == pytest.approx(1 / 22)
    assert found.rejection_rate == pytest.approx(1 - 9 / 87)
    assert found.waste == pytest.approx((87 - 9) / (87 + 22))
    assert found.conditional_assumes_fixed_length


def test_drafts_that_ended_early_are_no_rejections_where_the_engine_tells():
    found = derive(counts(drafted_at=(22, 22, 3, 1)))
    assert found.conditional == pytest.approx((6 / 22, 1 / 6, 1.0, 1.0))
    short = derive(counts(accepted_hist=(0, 22), accepted=22, drafted_at=(22, 4)))
    assert short.marginal == (1.0,)


def test_a_histogram_that_ends_early_has_zeros_beyond():
    found = derive(counts(accepted_hist=(20, 2), accepted=2))
    assert found.full_accept_share == 0.0


def test_what_is_unknown_stays_unknown():
    found = derive(AcceptanceCounts(accepted=9, drafted=87))
    assert found.acceptance_rate == pytest.approx(9 / 87)
    assert found.tokens_per_pass is None
    assert found.acceptance_length is None
    assert found.coverage is None
    assert found.full_accept_share is None
    assert found.marginal == ()


def test_a_request_without_passes_gives_no_ratio():
    found = derive(
        counts(spec_passes=0, plain_passes=0, drafted=0, accepted=0, accepted_hist=None)
    )
    assert found.tokens_per_pass is None
    assert found.acceptance_rate is None


def test_a_tree_has_no_rate_and_no_positions():
    found = derive(counts(topology="tree"))
    assert found.acceptance_rate is None
    assert found.marginal == ()
    assert found.tokens_per_pass is not None


@pytest.mark.parametrize(
    ("method", "topk", "topology"),
    [
        ("eagle3", None, "chain"),
        ("eagle", 4, "tree"),
        ("dflash", 1, "block"),
        ("dflash2", None, "block"),
        ("ngram", None, "chain"),
        ("none", None, "unknown"),
        (None, None, "unknown"),
    ],
)
def test_the_shape_of_a_draft_follows_from_its_method(method, topk, topology):
    assert topology_of(method, topk) == topology


@pytest.mark.slow
@given(HISTOGRAMS)
def test_a_true_histogram_satisfies_every_identity(hist):
    k = len(hist) - 1
    s, a = sum(hist), sum(j * n for j, n in enumerate(hist))
    made = AcceptanceCounts(
        topology="chain",
        draft_tokens=k,
        completion_tokens=1 + s + a,
        spec_passes=s,
        plain_passes=0,
        drafted=s * k,
        accepted=a,
        accepted_hist=tuple(hist),
        accepted_at=tuple(sum(hist[i + 1 :]) for i in range(k)),
    )
    assert broken(made) == set()
    found = derive(made)
    assert found.acceptance_length == pytest.approx(1 + sum(found.marginal))
    assert found.tokens_per_pass == pytest.approx(found.acceptance_length)
    product, length = 1.0, 1.0
    for rate in found.conditional:
        product *= rate or 0.0
        length += product
    assert length == pytest.approx(found.acceptance_length)
    assert sum(found.rejected_first) + hist[-1] / s == pytest.approx(1.0)
    assert checked(made) == made


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ({"spec_passes": 21}, "histogram_sums_to_passes"),
        ({"accepted": 10}, "histogram_weighs_to_accepted"),
        ({"drafted": 8}, "accepted_at_most_drafted"),
        ({"drafted": 89}, "drafted_at_most_configured"),
        ({"accepted_at": (1, 8, 0, 0)}, "accepted_falls_with_position"),
        ({"drafted_at": (20, 22)}, "drafted_falls_with_position"),
        ({"accepted_at": (9, 9, 9, 9)}, "length_is_one_plus_marginals"),
        ({"completion_tokens": 70}, "tokens_are_accounted_for"),
        ({"completion_tokens": 40}, "tokens_are_accounted_for"),
    ],
)
def test_a_count_that_lies_is_found_and_lowers_the_trust(fields, name):
    made = counts(**fields)
    assert name in broken(made)
    lowered = checked(made)
    assert lowered.trust == "approximate"
    assert any(reason.startswith(name) for reason in lowered.reasons)


def test_tokens_beyond_the_end_are_allowed_up_to_a_run():
    assert broken(counts(completion_tokens=60)) == set()
    assert broken(counts(completion_tokens=59)) == {"tokens_are_accounted_for"}


def test_a_configured_route_that_never_drafts_is_noticed():
    silent = counts(drafted=0, accepted=0, spec_passes=0)
    assert not speculates(silent, configured=True).holds
    assert speculates(counts(), configured=True).holds
    assert speculates(silent, configured=False) is None
    assert speculates(AcceptanceCounts(), configured=True) is None


def test_requests_and_counters_must_agree_to_the_token():
    assert all(i.holds for i in same_sums(counts(), counts()))
    off = same_sums(counts(), counts(drafted=88))
    assert [i.name for i in off if not i.holds] == ["requests_equal_counters.drafted"]
    assert same_sums(counts(drafted=None), counts())[-1].name.endswith("tokens")


def some_requests(seed: int = 1, n: int = 40) -> Records:
    rng = np.random.default_rng(seed)
    made = [simulate(rng, passes=10, draft_tokens=3, rate=0.6) for _ in range(n)]
    return requests(made, [1 + d.passes + d.accepted for d in made])


CHAIN = AcceptanceCounts(topology="chain", draft_tokens=3, method="eagle3")


def test_a_profile_sums_first_and_divides_then():
    records = some_requests()
    found = profile(records, everyone(records), like=CHAIN)
    assert all(i.holds for i in found.identities)
    assert found.counts.requests == 40
    assert found.counts.spec_passes == 400
    made = found.estimates["tokens_per_pass"]
    assert made.micro == pytest.approx(found.derived.tokens_per_pass)
    assert made.low < made.micro < made.high
    assert found.overall()["acceptance_rate_macro"] is not None
    assert [row["position"] for row in found.by_position] == [1, 2, 3]


def test_a_request_without_counts_leaves_every_sum():
    whole = some_requests(n=5)
    details = [EngineDetails()] * 2
    rng = np.random.default_rng(3)
    made = [simulate(rng, passes=10, draft_tokens=3, rate=0.6) for _ in range(3)]
    mixed = requests([*made, *details], [50, 50, 50, 1000, 1000])
    found = sum_counts(mixed, everyone(mixed), CHAIN)
    assert found.requests == 3
    assert found.completion_tokens == 150
    assert found.reasons == ("2 of 5 requests carry no counts",)
    none = requests(details, [9, 9])
    empty = sum_counts(none, everyone(none), CHAIN)
    assert (empty.trust, empty.source) == ("unavailable", "none")
    assert sum_counts(whole, everyone(whole), CHAIN).reasons == ()


def test_a_field_some_requests_lack_is_unknown_and_no_partial_sum():
    mixed = requests(
        [
            EngineDetails(drafted=0, accepted=0, spec_passes=0, passes=9),
            EngineDetails(drafted=8, accepted=4, passes=5),
        ],
        [10, 10],
    )
    found = sum_counts(mixed, everyone(mixed))
    assert found.spec_passes is None
    assert found.passes == 14
    assert derive(found).tokens_per_pass == pytest.approx(18 / 14)


def test_parts_with_shorter_histograms_join():
    short = EngineDetails(drafted=6, accepted=1, spec_passes=2, accepted_hist=(1, 1))
    long = EngineDetails(
        drafted=6, accepted=3, spec_passes=2, accepted_hist=(1, 0, 0, 1)
    )
    records = requests([short, long], [4, 6])
    assert sum_counts(records, everyone(records)).accepted_hist == (2, 1, 0, 1)


def test_slices_add_up_to_the_whole():
    records = some_requests()
    split = Slice(np.arange(40) % 2, ("even", "odd"))
    found = profile(records, everyone(records), like=CHAIN, slices={"parity": split})
    rows = found.by_slice["parity"]
    assert [row["parity"] for row in rows] == ["even", "odd"]
    assert sum(row["requests"] for row in rows) == 40


def test_lengths_times_and_repetitions_are_slices():
    tokens = column([10, 64, 1023, 1e6, None])
    assert list(length_slice(tokens).codes) == [0, 1, 2, 6, -1]
    at = column([0.0, 1.0, 2.0, 3.0, None])
    keep = np.array([True] * 5)
    assert list(time_slice(at, keep, 2).codes) == [0, 0, 1, 1, -1]
    case = np.array([7, 8, 7, 7, 9])
    split = repetition_slice(case, at, keep)
    assert list(split.codes) == [0, 0, 1, 2, -1]
    assert split.names == ("time 1", "time 2", "time 3")


def test_a_ratio_over_no_request_is_unknown():
    nothing = column([])
    found = estimate(nothing, nothing, np.zeros(0, dtype=bool))
    assert (found.micro, found.macro, found.low, found.n) == (None, None, None, 0)


def test_few_units_have_no_interval():
    above, below = column([1.0] * 9), column([2.0] * 9)
    assert estimate(above, below, np.ones(9, dtype=bool)).low is None


def test_trials_of_a_case_are_one_unit():
    rng = np.random.default_rng(5)
    case_rate = rng.uniform(0.2, 0.9, 20)
    unit = np.repeat(np.arange(20), 8)
    above = column(list(case_rate[unit] * 100))
    below = column([100.0] * 160)
    keep = np.ones(160, dtype=bool)
    together = estimate(above, below, keep, unit=unit)
    apart = estimate(above, below, keep)
    assert (together.units, apart.units) == (20, 160)
    assert together.high - together.low > 2 * (apart.high - apart.low)


@pytest.mark.slow
def test_the_interval_covers_the_true_rate():
    covered = 0
    for seed in range(150):
        records = some_requests(seed, n=30)
        found = estimate(
            records.number("accepted"),
            records.number("spec_passes"),
            everyone(records),
            seed=seed,
            draws=400,
        )
        # Mean run of up to 3 drafts accepted with chance 0.6 each.
        covered += found.low <= 0.6 + 0.36 + 0.216 <= found.high
    assert 0.82 <= covered / 150 <= 0.96


@pytest.mark.slow
def test_many_units_are_blocked_without_narrowing_the_interval():
    rng = np.random.default_rng(0)
    x = column(list(rng.poisson(3.0, 6000).astype(float)))
    y = column([5.0] * 6000)
    keep = np.ones(6000, dtype=bool)
    found = estimate(x, y, keep)
    expected = 2 * 1.645 * np.sqrt(3.0 / 6000) / 5.0
    assert found.high - found.low == pytest.approx(expected, rel=0.15)


def test_step_time_splits_speed_into_two_factors():
    records = requests(
        [EngineDetails(spec_passes=10, plain_passes=0, accepted=30)], [41]
    )
    records = records.with_number("time_per_output_token", column([0.025]))
    assert step_time(records, speculates=True).values[0] == pytest.approx(0.1)
    assert step_time(records, speculates=False).values[0] == pytest.approx(0.025)
    blind = requests([EngineDetails()], [41])
    blind = blind.with_number("time_per_output_token", column([0.025]))
    assert not step_time(blind, speculates=True).known[0]


def test_a_route_gains_only_above_its_break_even():
    overhead = 0.6
    at = break_even_tokens_per_pass(overhead)
    assert speedup(at, overhead) == pytest.approx(1.0)
    assert speedup(at - 0.1, overhead) < 1.0 < speedup(at + 0.1, overhead)


def test_a_run_cut_at_the_end_does_not_make_passes_vanish():
    # llama-server, ten tokens each, draft = target, four drafts: two passes a request.
    short = EngineDetails(drafted=8, accepted=8, passes=1)
    records = requests([short] * 6, [10] * 6)
    like = AcceptanceCounts(draft_tokens=4, topology="chain", method="draft_model")
    found = checked(sum_counts(records, everyone(records), like))
    assert found.passes == 12
    assert derive(found).tokens_per_pass == pytest.approx(54 / 12)
    assert found.trust == "derived"
    blind = sum_counts(records, everyone(records), AcceptanceCounts())
    assert blind.passes == 6


def test_more_tokens_a_pass_than_drafts_allow_are_noticed():
    assert "tokens_per_pass_are_possible" in broken(
        counts(plain_passes=0, spec_passes=10, accepted_hist=None, accepted=None)
    )


@pytest.mark.slow
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 20)), max_size=20))
def test_repetitions_are_counted_in_the_order_of_time(sent):
    case = np.array([c for c, _ in sent], dtype=np.int64)
    at = column([float(t) + i / 100 for i, (_, t) in enumerate(sent)])
    split = repetition_slice(case, at, np.ones(len(sent), dtype=bool))
    seen: dict[int, int] = {}
    for index in sorted(range(len(sent)), key=lambda i: at.values[i]):
        before = seen.get(sent[index][0], 0)
        assert split.codes[index] == before
        seen[sent[index][0]] = before + 1


def test_sums_by_group_are_the_sums_of_each_group():
    records = some_requests()
    codes = np.arange(40) % 3 - 1
    found = sum_groups(records, codes, 2, CHAIN)
    for group in range(2):
        assert found[group] == sum_counts(records, codes == group, CHAIN)
    assert sum_groups(records, np.full(40, -1), 2, CHAIN)[0].source == "none"
