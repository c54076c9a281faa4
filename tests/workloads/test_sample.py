from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from routeproof.errors import ConfigError
from routeproof.workloads.case import Case
from routeproof.workloads.sample import stratified


def cases_of(sizes):
    return [
        Case(id=f"{name}{i}", class_=name, prompt="x")
        for name, size in sizes.items()
        for i in range(size)
    ]


sizes = st.dictionaries(st.sampled_from("abcde"), st.integers(1, 40), min_size=1)


@pytest.mark.slow
@given(sizes=sizes, n=st.integers(1, 150), seed=st.integers(0, 2**32))
def test_every_class_keeps_its_share_and_the_order_stays(sizes, n, seed):
    cases = cases_of(sizes)
    part = stratified(cases, n, seed=seed)
    assert len(part) == min(n, len(cases))
    assert list(part) == [case for case in cases if case in set_of(part)]
    for name, count in Counter(case.class_ for case in part).items():
        assert abs(count - len(part) * sizes[name] / len(cases)) < 1 + 1e-9


def set_of(part):
    ids = {case.id for case in part}

    class Ids:
        def __contains__(self, case):
            return case.id in ids

    return Ids()


@pytest.mark.slow
@given(sizes=sizes, data=st.data())
def test_minimums_are_kept(sizes, data):
    at_least = {k: data.draw(st.integers(0, v)) for k, v in sizes.items()}
    total = sum(sizes.values())
    n = data.draw(st.integers(max(1, sum(at_least.values())), total))
    counts = Counter(
        case.class_
        for case in stratified(cases_of(sizes), n, seed=1, at_least=at_least)
    )
    assert sum(counts.values()) == n
    assert all(counts[name] >= at_least[name] for name in at_least)


def test_a_short_run_is_part_of_the_long_one():
    cases = cases_of({"a": 30, "b": 20})
    small = {c.id for c in stratified(cases, 10, seed=4)}
    large = {c.id for c in stratified(cases, 25, seed=4)}
    assert small < large


def test_the_seed_decides_which():
    cases = cases_of({"a": 50})
    assert stratified(cases, 10, seed=1) == stratified(cases, 10, seed=1)
    assert stratified(cases, 10, seed=1) != stratified(cases, 10, seed=2)


def test_minimums_that_do_not_fit_are_refused():
    with pytest.raises(ConfigError, match="asks for 6 cases"):
        stratified(cases_of({"a": 9}), 5, seed=0, at_least={"a": 6})
    with pytest.raises(ConfigError, match="at least 1"):
        stratified(cases_of({"a": 9}), 0, seed=0)
