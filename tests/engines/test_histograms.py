"""Percentiles from an engine's histograms, and what they may not say."""

import math

import numpy as np
import pytest
from engine_pages import recorded
from hypothesis import given
from hypothesis import strategies as st

from routeproof.engines.histograms import Histogram, growth, histograms

EDGES = (0.1, 0.5, 1.0, 5.0, math.inf)


def page(values, labels="", engine="vllm:"):
    name = f"{engine}e2e_request_latency_seconds"
    comma = f"{labels}," if labels else ""
    lines = [
        f'{name}_bucket{{{comma}le="{"+Inf" if math.isinf(e) else e}"}} '
        f"{sum(v <= e for v in values)}"
        for e in EDGES
    ]
    lines += [
        f"{name}_sum{{{labels}}} {sum(values)}",
        f"{name}_count{{{labels}}} {len(values)}",
    ]
    return "\n".join([*lines, ""])


def found(text, engine="vllm"):
    return histograms(text, engine)["request_latency"]


def test_replicas_and_streams_are_added_up():
    both = page([0.2, 0.3], 'engine="0"') + page([2.0], 'engine="1"')
    made = found(both)
    assert (made.n, made.total_s) == (3, pytest.approx(2.5))
    assert made.buckets[0.5] == 2 and made.buckets[math.inf] == 3


def test_a_median_lies_inside_its_bucket():
    made = found(page([0.2] * 50 + [2.0] * 50))
    assert 0.1 < made.quantile_s(0.25) <= 0.5
    assert 1.0 < made.quantile_s(0.75) <= 5.0
    assert made.mean_s() == pytest.approx(1.1)


@pytest.mark.parametrize(("n", "q", "known"), [(99, 0.99, False), (100, 0.99, True)])
def test_a_tail_without_values_is_unknown(n, q, known):
    assert (found(page([0.2] * n)).quantile_s(q) is not None) is known


def test_a_tail_above_the_last_edge_is_unknown_and_not_the_edge():
    made = found(page([0.2] * 10 + [60.0] * 10))
    assert made.quantile_s(0.9) is None
    assert made.quantile_s(0.5) is not None


def test_a_sum_without_buckets_has_a_mean_and_no_percentile():
    name = "vllm:e2e_request_latency_seconds"
    made = found(f"{name}_sum 4.0\n{name}_count 2\n")
    assert made.mean_s() == 2.0
    assert made.quantile_s(0.5) is None
    assert Histogram({}, 0.0, 0).mean_s() is None


def test_growth_is_what_came_between():
    before, after = page([0.2, 3.0]), page([0.2, 3.0, 0.7, 0.8])
    grown = growth(found(before), found(after))
    assert (grown.n, grown.total_s) == (2, pytest.approx(1.5))
    assert 0.5 < grown.quantile_s(0.5) <= 1.0


def test_an_engine_that_began_anew_has_no_growth():
    assert growth(found(page([0.2, 3.0])), found(page([0.2]))) is None


@given(st.lists(st.floats(0.01, 4.9), min_size=20, max_size=60))
def test_a_quantile_is_at_most_one_bucket_off(values):
    made = found(page(values)).quantile_s(0.5)
    true = float(np.quantile(values, 0.5, method="inverted_cdf"))
    edges = [0.0, *EDGES]
    bucket = next(i for i in range(1, len(edges)) if true <= edges[i])
    assert edges[bucket - 1] - 1e-9 <= made <= edges[bucket] + 1e-9


def test_an_engine_without_histograms_gives_none():
    assert histograms(page([0.2]), "llama.cpp") == {}
    assert histograms("no page at all", "vllm") == {}


def test_recorded_pages_have_their_latencies():
    text = recorded("engine_captures_vllm", "vllm-ngram.metrics_after.prom").read_text()
    made = found(text)
    assert made.n == 30
    assert 0.1 < made.quantile_s(0.5) < 10
    assert made.quantile_s(0.99) is None
    text = recorded(
        "engine_captures_sglang", "sglang-ngram.metrics_after.prom"
    ).read_text()
    made = found(text, "sglang")
    assert made.n > 20 and made.buckets[math.inf] == made.n
