"""The draft-length search: what is picked, when it stops, and the real grid."""

import json
import sys
from time import monotonic

import pytest
from fakes.openai_server import serving_in_thread
from hypothesis import given
from hypothesis import strategies as st
from jobs.short_proof import short_proof
from qualify_cases import Answering, crates, two_routes, write_proof

from routeproof.cli.tune import endpoints, numbers, varied
from routeproof.errors import ConfigError, EngineError
from routeproof.jobs.demo import demo_proof
from routeproof.jobs.tune import Grid, Point, Size, _Time, settings, tune
from routeproof.jobs.tune_choice import choose, coarse_first, is_hopeless
from routeproof.jobs.tune_rows import Setting, telling
from routeproof.proof.workload import LoadSpec, WorkloadSpec
from routeproof.runs.plan import build_plan
from routeproof.workloads.case import Case


def a_row(draft_tokens, gain=1.2, spread=0.05, **changes):
    row = {
        "draft_tokens": draft_tokens,
        "concurrency": 1.0,
        "gain": gain,
        "gain_low": None if gain is None else gain - spread,
        "gain_high": None if gain is None else gain + spread,
        "correct_goodput_per_s": None,
        "tokens_per_pass": 2.0,
        "equal_share": 1.0,
        "correctness": "passed",
    }
    return {**row, **changes}


def test_the_largest_proven_gain_wins_where_no_slo_says_more():
    (pick,) = choose([a_row(1, 1.1), a_row(2, 1.4), a_row(3, 1.2)])
    assert (pick.draft_tokens, pick.by) == (2, "gain")


def test_correct_goodput_beats_a_larger_gain():
    rows = [
        a_row(1, 1.2, correct_goodput_per_s=3.0),
        a_row(2, 1.4, correct_goodput_per_s=2.0),
    ]
    assert choose(rows)[0].draft_tokens == 1


def test_a_point_that_failed_correctness_is_never_picked():
    rows = [a_row(1, 1.1), a_row(2, 3.0, correctness="failed")]
    assert choose(rows)[0].draft_tokens == 1


def test_a_gain_that_is_not_proven_means_no_speculation():
    (pick,) = choose([a_row(1, 1.02), a_row(2, 1.04)])
    assert pick.draft_tokens is None and "1.04x" in pick.why


def test_each_load_has_its_own_pick():
    rows = [a_row(1, 1.1), a_row(4, 1.5)]
    rows += [a_row(1, 1.2, concurrency=16.0), a_row(4, 0.8, concurrency=16.0)]
    assert [(c.concurrency, c.draft_tokens) for c in choose(rows)] == [
        (1.0, 4),
        (16.0, 1),
    ]


def test_what_lies_beyond_two_surely_worse_lengths_is_given_up():
    rows = [a_row(1, 1.5), a_row(4, 1.2), a_row(8, 1.1)]
    said = "4 and 8 drafts are surely worse than the best, and 6 lie beyond"
    assert is_hopeless(rows, 6) == said
    assert is_hopeless(rows, 9) and is_hopeless(rows, 5)
    assert is_hopeless(rows, 3) is None and is_hopeless(rows, 2) is None
    assert is_hopeless(rows[:2], 6) is None


def test_shorter_lengths_are_given_up_alike():
    rows = [a_row(1, 1.0), a_row(4, 1.1), a_row(8, 1.6)]
    assert is_hopeless(rows, 2) and is_hopeless(rows, 3)
    assert is_hopeless(rows, 6) is None


def test_a_length_is_tried_as_long_as_one_load_may_like_it():
    rows = [a_row(1, 1.5), a_row(4, 1.2), a_row(8, 1.1)]
    at_four = [a_row(k, 1.2, concurrency=4.0) for k in (1, 4, 8)]
    assert is_hopeless(rows + at_four, 6) is None


def test_one_dip_does_not_end_the_search():
    assert is_hopeless([a_row(1, 1.5), a_row(2, 1.1), a_row(3, 1.48)], 4) is None


def test_unknown_gains_never_end_the_search():
    rows = [a_row(1, 1.5), a_row(2, None), a_row(3, None)]
    assert is_hopeless(rows, 4) is None and is_hopeless([], 4) is None


@given(st.lists(st.integers(1, 40), unique=True, max_size=12))
def test_the_ends_come_first_and_nothing_is_lost(lengths):
    order = coarse_first(sorted(lengths))
    assert sorted(order) == sorted(lengths)
    if len(lengths) > 2:
        assert set(order[:2]) == {min(lengths), max(lengths)}


@given(
    st.lists(
        st.tuples(st.integers(1, 8), st.floats(0.1, 5), st.sampled_from("pf")),
        min_size=1,
        max_size=8,
        unique_by=lambda t: t[0],
    )
)
def test_what_is_picked_was_measured_sound_and_proven(points):
    rows = [
        a_row(k, g, correctness="failed" if c == "f" else "passed")
        for k, g, c in points
    ]
    (pick,) = choose(rows)
    if pick.draft_tokens is not None:
        row = next(r for r in rows if r["draft_tokens"] == pick.draft_tokens)
        assert row["correctness"] == "passed" and row["gain_low"] > 1


@pytest.mark.parametrize(
    ("text", "found"), [("1..3", (1, 2, 3)), ("4", (4,)), ("2, 8", (2, 8))]
)
def test_numbers_as_people_write_them(text, found):
    assert numbers(text, "--x") == found


@pytest.mark.parametrize("text", ["", "a", "0..3", "3..1", "1,,2", "-1"])
def test_other_text_is_refused(text):
    with pytest.raises(ConfigError, match="no list of numbers"):
        numbers(text, "--x")


def test_a_candidate_that_does_not_speculate_cannot_be_tuned(tmp_path):
    path = tmp_path / "same.yaml"
    path.write_text(demo_proof("same", path))
    with pytest.raises(ConfigError, match="does not speculate"):
        tune(path, tmp_path / "out", Grid((1,), (1,)))


def test_options_are_combined_with_every_draft_length():
    found = list(settings((3, 5), {"num_steps": ("2", "3"), "eagle_topk": ("1",)}))
    assert [s.name() for s in found] == [
        "k3-num_steps2-eagle_topk1",
        "k5-num_steps2-eagle_topk1",
        "k3-num_steps3-eagle_topk1",
        "k5-num_steps3-eagle_topk1",
    ]
    assert [s.name() for s in settings((1, 2))] == ["k1", "k2"]
    assert found[0].words() == "num_steps=2 eagle_topk=1"


def test_the_page_to_look_at_is_that_of_a_pick_else_of_the_largest_gain():
    rows = [a_row(1, 1.2, chosen=True), a_row(2, 1.5, options="n=2 m=a")]
    assert telling(rows) == Setting(1)
    assert telling(rows[1:]) == Setting(2, (("n", "2"), ("m", "a")))
    assert telling([]) is None and telling([a_row(1, None)]) is None


def test_options_are_written_as_people_write_them():
    assert varied(("num-steps=2,3", "x=a")) == {"num_steps": ("2", "3"), "x": ("a",)}
    for text in ("num_steps", "=1", "a=", "a=1,,2"):
        with pytest.raises(ConfigError, match="varies nothing"):
            varied((text,))


def test_the_pick_says_its_options_and_hopes_are_kept_apart():
    rows = [a_row(2, 1.2, options="n=2"), a_row(2, 1.5, options="n=3")]
    (pick,) = choose(rows)
    assert (pick.draft_tokens, pick.options) == (2, "n=3")
    falling = [a_row(k, g, options="n=2") for k, g in ((1, 1.5), (2, 1.2), (3, 1.1))]
    assert is_hopeless(falling, 4, "n=2")
    assert is_hopeless(falling, 4, "n=3") is None and is_hopeless(falling, 4) is None


def test_every_load_has_the_blocks_that_an_interval_needs():
    load = Point(Setting(4), (1, 4, 16), Size()).load(LoadSpec(block_size=8))
    assert load.quality.concurrency == (1,) and load.latency is None
    assert load.sweep.concurrency == (4, 16)
    cases = [Case(id=f"c{i}", class_="chat", prompt=f"Say {i}") for i in range(12)]
    plan = build_plan(
        cases, WorkloadSpec(load=load), arms=("baseline", "candidate"), traces=None
    )
    stages = [stage for stage in plan.stages if stage.phase in ("quality", "sweep")]
    assert [stage.level for stage in stages] == ["c1", "c4", "c16"]
    for stage in stages:
        blocks = [b for b in stage.blocks if b.arm == "candidate"]
        assert len(blocks) >= 4, (stage.phase, stage.level)
    only = Point(Setting(4), (1,), Size()).load(LoadSpec())
    assert only.sweep is None


@pytest.mark.engine
@pytest.mark.slow
def test_a_real_grid_ends_with_a_record_and_does_not_run_twice(tmp_path):
    path, grid = short_proof(tmp_path, "ngram"), Grid((2, 8), (1,))
    found = tune(path, tmp_path / "out", grid, size=Size(8))
    assert [row["draft_tokens"] for row in found.rows] == [2, 8]
    assert all(row["equal_share"] is not None for row in found.rows)
    assert all(row["gain_low"] is not None for row in found.rows)
    assert not found.failed
    stamps = [p.stat().st_mtime_ns for p in (tmp_path / "out").rglob("part-*.parquet")]
    again = tune(path, tmp_path / "out", grid, size=Size(8))
    assert again.chosen == found.chosen
    after = [p.stat().st_mtime_ns for p in (tmp_path / "out").rglob("part-*.parquet")]
    assert after == stamps
    judged = json.loads((tmp_path / "out" / "k8" / "judgement.json").read_text())
    assert len(judged["tables"]["tune"]) == 2


def served(folder, servers, **candidate):
    """A proof of two servers that run already."""
    path = write_proof(folder, servers, cases=crates(8))
    proof = json.loads(path.read_text())
    proof["candidate"] = {
        "like": "baseline",
        "speculation": {"method": "ngram", "draft_tokens": 4},
        "changes": ["speculation"],
        **candidate,
    }
    path.write_text(json.dumps(proof))
    return path


@pytest.mark.slow
def test_lengths_that_are_served_already_are_asked_where_they_are(tmp_path):
    with two_routes() as servers, serving_in_thread(Answering()) as third:
        grid = Grid((2, 8), (1,), endpoints={2: servers[1].url, 8: third.url})
        found = tune(served(tmp_path, servers), tmp_path / "out", grid)
    assert [row["draft_tokens"] for row in found.rows] == [2, 8]
    assert third.seen and servers[1].seen


def test_a_length_without_a_server_has_to_be_launched(tmp_path):
    class Up:
        url = "http://127.0.0.1:1/v1"

    path = served(tmp_path, (Up, Up), endpoint=Up.url)
    with pytest.raises(ConfigError, match="not launched by this proof") as found:
        tune(path, tmp_path / "out", Grid((2, 8), (1,), endpoints={2: Up.url}))
    assert "--at 8=URL" in found.value.hint
    with pytest.raises(ConfigError, match="not tried"):
        tune(path, tmp_path / "out", Grid((2,), (1,), endpoints={3: Up.url}))


@pytest.mark.slow
def test_a_search_without_any_point_is_an_error(tmp_path):
    with two_routes() as servers:
        command = [sys.executable, "-c", "raise SystemExit(3)", "{port}"]
        path = served(
            tmp_path,
            servers,
            launch={"command": [*command, "--speculative-config", "{}"]},
            engine={"name": "vllm"},
        )
        with pytest.raises(EngineError, match="ended with exit status 3"):
            tune(path, tmp_path / "out", Grid((2, 8), (1,)))


def test_servers_are_named_as_people_write_them():
    assert endpoints(("4=http://h:1/v1",)) == {4: "http://h:1/v1"}
    for text in ("http://h:1", "x=http://h:1", "4=h:1", "=http://h:1"):
        with pytest.raises(ConfigError, match="no server"):
            endpoints((text,))


def test_no_point_is_begun_that_would_end_too_late():
    time = _Time(100.0, begun_s=monotonic() - 50.0)
    assert time.is_up() is None, "nothing is known of a point yet"
    time.longest_s = 49.0
    assert time.is_up() is None
    time.longest_s = 60.0
    assert "no time left: a point took up to 60 s" in time.is_up()
    assert _Time(None, longest_s=1e9).is_up() is None
