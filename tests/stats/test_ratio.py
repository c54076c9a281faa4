"""Ratios of latencies: known truth, blocks, failures."""

from math import inf

import numpy as np
import pytest

from routeproof.stats.ratio import paired_ratio


def blocked_pairs(rng, blocks, per_block, ratio, block_sd=0.3, arm_sd=0.08):
    """Latencies whose blocks drift together, with one arm's own drift per block."""
    block = np.repeat(np.arange(blocks), per_block)
    common = rng.normal(0, block_sd, blocks)[block]
    own = rng.normal(0, arm_sd, blocks)[block]
    case = rng.normal(0, 0.5, block.size)
    base = np.exp(common + case + rng.normal(0, 0.1, block.size))
    cand = ratio * np.exp(common + own + case + rng.normal(0, 0.1, block.size))
    return base, cand, block


def test_a_constant_ratio_is_found_exactly():
    base = np.linspace(1, 2, 100)
    for statistic in ("geometric_mean", "mean", "p50", "p95"):
        answer = paired_ratio(base, 0.5 * base, statistic=statistic)
        assert answer.estimate == pytest.approx(0.5)
        assert answer.interval.low <= 0.5 + 1e-12
        assert answer.interval.high >= 0.5 - 1e-12


@pytest.mark.slow
@pytest.mark.parametrize("statistic", ["geometric_mean", "mean", "p50", "p90"])
@pytest.mark.parametrize("blocks", [6, 20])
def test_the_interval_covers_under_drifting_blocks(statistic, blocks):
    rng = np.random.default_rng(5)
    runs, covered = 300, 0
    for seed in range(runs):
        base, cand, block = blocked_pairs(rng, blocks, 16, 0.8)
        interval = paired_ratio(
            base, cand, blocks=block, statistic=statistic, resamples=200, seed=seed
        ).interval
        covered += interval.low <= 0.8 <= interval.high
    assert covered / runs >= 0.95 - 3 * (0.95 * 0.05 / runs) ** 0.5


def test_pretending_that_requests_are_independent_is_too_narrow():
    rng = np.random.default_rng(2)
    base, cand, block = blocked_pairs(rng, 10, 40, 1.0)
    honest = paired_ratio(base, cand, blocks=block).interval
    naive = paired_ratio(base, cand).interval
    assert (honest.high - honest.low) > 2 * (naive.high - naive.low)


def test_failures_count_as_their_time_or_the_mean_is_unknown():
    base, cand = np.full(50, 2.0), np.full(50, 1.0)
    cand[:5] = inf
    unknown = paired_ratio(base, cand)
    assert (unknown.estimate, unknown.failed_candidate) == (None, 5)
    counted = paired_ratio(base, cand, statistic="mean", failure_s=60.0)
    assert counted.estimate == pytest.approx((45 + 300) / 100)


def test_failures_rank_last_in_a_quantile():
    base, cand = np.linspace(1, 2, 200), np.linspace(1, 2, 200)
    cand[:20] = inf
    median = paired_ratio(base, cand, statistic="p50")
    assert 1.0 < median.estimate < 1.1
    tail = paired_ratio(base, cand, statistic="p95")
    assert tail.estimate is None
    assert "failed" in tail.note


def test_few_blocks_give_no_interval_and_few_pairs_no_tail():
    base = np.linspace(1, 2, 30)
    assert paired_ratio(base, base, blocks=np.arange(30) // 10).interval is None
    assert paired_ratio(base, base, statistic="p99").estimate is None
    assert paired_ratio([], []).estimate is None


@pytest.mark.parametrize(
    ("base", "cand", "blocks"),
    [([1.0, 2.0], [1.0], None), ([0.0], [1.0], None), ([1.0], [1.0], [1, 2])],
)
def test_numbers_that_are_no_latencies_are_refused(base, cand, blocks):
    with pytest.raises(ValueError):
        paired_ratio(base, cand, blocks=blocks)


def test_the_seed_decides_the_draws():
    rng = np.random.default_rng(1)
    base, cand, block = blocked_pairs(rng, 8, 10, 0.9)
    one, two, other = (
        paired_ratio(base, cand, blocks=block, seed=seed) for seed in (1, 1, 2)
    )
    assert one == two
    assert one != other


@pytest.mark.parametrize("statistic", ["p50", "p95"])
@pytest.mark.parametrize("blocks", [5, 60])
def test_looking_into_a_window_first_changes_no_draw(statistic, blocks):
    rng = np.random.default_rng(3)
    base, cand, block = blocked_pairs(rng, blocks, 600 // blocks, 0.8)
    answer = paired_ratio(base, cand, blocks=block, statistic=statistic, resamples=300)
    q = {"p50": 0.5, "p95": 0.95}[statistic]
    weights = np.random.default_rng(0).multinomial(
        blocks, np.full(blocks, 1 / blocks), size=300
    )

    def quantile(values, row):
        order = np.argsort(values, kind="stable")
        reached = np.cumsum(row[block[order]])
        return values[order][np.argmax(reached >= np.ceil(q * reached[-1] - 1e-9))]

    logs = [np.log(quantile(cand, row) / quantile(base, row)) for row in weights]
    se = np.std(logs, ddof=1) * (blocks / (blocks - 1)) ** 0.5
    reach = np.log(answer.interval.high / answer.estimate)
    t = {5: 2.7764451, 60: 2.0009954}[blocks]
    assert reach == pytest.approx(t * se, rel=1e-6)
