import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from routeproof.canary.splitting.split import (
    ALGO_VERSION,
    PPM,
    assign,
    bucket,
    is_sampled,
)

# Written down once; they may only change together with ALGO_VERSION.
GOLDEN = {
    ("chat", "user-1"): 6_269_461_814_043_338_304,
    ("chat", "user-2"): 710_944_248_174_741_110,
    ("chat", ""): 17_269_512_891_714_961_933,
    ("other", "user-1"): 11_817_677_314_997_497_629,
    ("chat", "naïve–ключ"): 15_156_973_202_979_900_390,
}


def test_golden_vectors_pin_the_algorithm():
    assert ALGO_VERSION == 1
    for (salt, key), place in GOLDEN.items():
        assert bucket(key, salt=salt) == place


@pytest.mark.parametrize("weight_ppm", [1_000, 10_000, 50_000, 500_000])
def test_the_share_of_each_arm_is_the_weight_within_the_binomial_bound(weight_ppm):
    n = 40_000
    arms = [assign(f"u{i}", salt="s", weight_ppm=weight_ppm) for i in range(n)]
    p = weight_ppm / PPM
    bound = 4 * math.sqrt(n * p * (1 - p)) + 1
    assert abs(arms.count("canary") - n * p) < bound
    assert abs(arms.count("control") - n * p) < bound


@given(st.text(), st.integers(0, PPM), st.integers(0, PPM))
def test_raising_the_weight_never_takes_the_canary_away(key, one, other):
    low, high = sorted((one, other))
    if assign(key, salt="s", weight_ppm=low) == "canary":
        assert assign(key, salt="s", weight_ppm=high) == "canary"


@given(st.text())
def test_nobody_at_zero_and_everybody_at_the_top(key):
    assert assign(key, salt="s", weight_ppm=0) == "baseline"
    assert assign(key, salt="s", weight_ppm=PPM) == "canary"


@given(st.integers(max_value=-1) | st.integers(min_value=PPM + 1))
def test_a_weight_outside_the_space_is_refused(weight_ppm):
    with pytest.raises(ValueError, match="outside"):
        assign("k", salt="s", weight_ppm=weight_ppm)


def test_sampling_does_not_depend_on_the_arm():
    n = 20_000
    sampled = {"canary": 0, "other": 0}
    total = {"canary": 0, "other": 0}
    for i in range(n):
        key = f"r{i}"
        arm = assign(key, salt="s", weight_ppm=PPM // 2)
        side = "canary" if arm == "canary" else "other"
        total[side] += 1
        sampled[side] += is_sampled(key, salt="s", share_ppm=100_000)
    for side, count in sampled.items():
        assert abs(count / total[side] - 0.1) < 0.012
