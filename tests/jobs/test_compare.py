import pytest
from stored_runs import a_run

from routeproof.errors import StoredRunError
from routeproof.jobs.compare import compare
from routeproof.reports.comparison import render

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def then(tmp_path_factory):
    return a_run(tmp_path_factory.mktemp("runs") / "then")


def rows(comparison):
    return {row.question: row for row in comparison.quality}


def test_a_run_beside_itself_held(then):
    found = compare(then, then)
    assert found.status == "held"
    assert found.problems == () and found.routes == ()
    assert rows(found)["headline"].losses == 0
    assert all(moved.ratio == pytest.approx(1.0) for moved in found.speed)
    assert "HELD" in render(found)


def test_answers_lost_since_then_are_found_though_both_runs_have_flips(then, tmp_path):
    now = a_run(tmp_path / "now", wrong=range(0, 40, 2))
    found = compare(then, now)
    row = rows(found)["headline"]
    assert (row.losses, row.gains) == (20, 0)
    assert found.status == "worse"
    assert any(reason.startswith("headline") for reason in found.reasons)
    baseline = {r.question: r for r in found.control}["headline"]
    assert (baseline.losses, baseline.gains) == (0, 0)
    assert "WORSE" in render(found)


def test_lower_acceptance_is_found_overall_and_by_class(then, tmp_path):
    found = compare(then, a_run(tmp_path / "now", accepted=1))
    moved = {each.where: each for each in found.acceptance}
    assert moved["all"].then == pytest.approx(0.775, abs=0.01)
    assert moved["all"].now == pytest.approx(0.275, abs=0.01)
    assert "acceptance, all: lower than it was" in found.reasons
    assert set(moved) == {"all", "even", "odd"}


def test_acceptance_that_fell_with_a_version_is_named_with_it(then, tmp_path):
    found = compare(then, a_run(tmp_path / "now", accepted=1, digest_of="c"))
    fell = {(each.where, each.metric) for each in found.drifts if each.fell}
    assert ("overall", "acceptance_rate") in fell
    assert ("class=odd", "acceptance_rate") in fell
    [reason] = [r for r in found.reasons if r.startswith("acceptance rate, overall")]
    assert "fell by 6" in reason, "31 of 40 drafts accepted, then 11"
    text = render(found)
    assert "FELL" in text and "engine.version: 1.a -> 1.c" in text
    same = compare(then, then)
    assert same.drifts and not any(each.fell for each in same.drifts)


def test_a_slower_machine_is_not_a_slower_route(then, tmp_path):
    found = compare(then, a_run(tmp_path / "now", machine=1.5))
    moved = {each.metric: each for each in found.speed}
    assert moved["request latency"].ratio == pytest.approx(1.0)
    assert found.status == "held"


def test_a_slower_candidate_is_found_beside_its_baseline(then, tmp_path):
    found = compare(then, a_run(tmp_path / "now", slow=1.3))
    moved = {each.metric: each for each in found.speed}
    assert moved["request latency"].ratio == pytest.approx(1.3)
    assert found.status == "worse"


def test_another_workload_is_not_compared_pair_by_pair(then, tmp_path):
    found = compare(then, a_run(tmp_path / "now", fingerprint="e" * 64))
    assert found.status == "not_comparable"
    assert found.quality == ()
    assert "the workloads differ" in found.problems[0]


def test_what_changed_in_the_route_is_named(then, tmp_path):
    found = compare(then, a_run(tmp_path / "now", digest_of="c"))
    [moved] = found.routes
    assert (moved.field, moved.then, moved.now) == ("engine.version", "1.a", "1.c")


def test_a_run_that_was_not_judged_says_what_to_do(then, tmp_path):
    (tmp_path / "records").mkdir()
    with pytest.raises(StoredRunError, match="routeproof judge"):
        compare(then, tmp_path)
