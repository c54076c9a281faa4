"""Whole runs in virtual time, scripts made from cases, and the selftest."""

import msgspec
import numpy as np
import pytest

from routeproof.errors import ConfigError
from routeproof.jobs.selftest import power_of, simulated_routes, trimmed, usual_proof
from routeproof.jobs.simulate import Simulation, route_of
from routeproof.jobs.virtual.run import Baseline, virtual_run
from routeproof.jobs.virtual.simulated_answers import book_of, entry_of, key_of
from routeproof.jobs.virtual.venue import RunFaults
from routeproof.proof.workload import ArrivalSpec, LoadSpec, WorkloadSpec
from routeproof.scorers.score import ScoredAnswer
from routeproof.scorers.table import SCORERS
from routeproof.simulator.faults import fault
from routeproof.simulator.route import SimulatedRoute
from routeproof.workloads.case import Case
from routeproof.workloads.golden import golden_cases


def cases(n=24):
    return tuple(
        Case(
            id=f"c{i}",
            class_="sums" if i % 2 else "counts",
            messages=({"role": "user", "content": f"How many in crate {i}?"},),
            reference=str(i),
            scorers=("numeric",),
        )
        for i in range(n)
    )


def small_proof():
    load = LoadSpec(
        quality=ArrivalSpec(concurrency=(4,)),
        latency=ArrivalSpec(concurrency=(1,), requests=8),
        sweep=ArrivalSpec(concurrency=(4,), requests=16),
        block_size=4,
        warmup_requests=1,
    )
    return msgspec.structs.replace(usual_proof(), workload=WorkloadSpec(load=load))


def values(case, said):
    calls = tuple({"name": n, "arguments": a} for n, a in said.calls)
    answer = ScoredAnswer(text=said.text, tool_calls=calls)
    return SCORERS[case.scorers[0]].of(case, answer).value


@pytest.mark.slow
def test_a_script_is_right_and_wrong_by_the_case_s_own_scorer():
    both = 0
    for case in golden_cases():
        entry = entry_of(case)
        if not entry.wrong or values(case, entry.right) is None:
            continue
        both += 1
        assert values(case, entry.right) > values(case, entry.wrong[0]), case.id
        if entry.reworded is not None:
            assert values(case, entry.reworded) == values(case, entry.right)
            assert entry.reworded != entry.right
    assert both > 250


def test_prompts_of_a_skill_are_left_to_it():
    counting = Case(
        id="x",
        class_="stop",
        messages=({"role": "user", "content": "Count from 1 to 9."},),
        scorers=("exact_match",),
        reference="1",
    )
    assert book_of([counting]).entries == {}
    assert set(book_of(cases(2)).entries) == {key_of(c) for c in cases(2)}


def records_of(folder):
    return list(folder.parts())


@pytest.mark.slow
def test_a_virtual_run_has_every_record_of_its_plan(tmp_path):
    proof = small_proof()
    first, second = simulated_routes(proof)
    baseline = Baseline.play(proof, cases(), first)
    folder = virtual_run(tmp_path / "run", proof, baseline, second)
    parts = records_of(folder)
    assert sum(p.n for p in parts) == baseline.plan.planned
    ids = [i for p in parts for i in p.text("request_id")]
    assert len(set(ids)) == len(ids)
    manifest = folder.read_manifest()
    assert manifest.finished and manifest.route_diff is not None


@pytest.mark.slow
def test_only_one_arm_is_busy_at_a_time(tmp_path):
    proof = small_proof()
    first, second = simulated_routes(proof)
    baseline = Baseline.play(proof, cases(), first)
    folder = virtual_run(tmp_path / "run", proof, baseline, second)
    spans = {}
    for part in records_of(folder):
        blocks = part.number("block").values
        starts, ends = part.number("intended_s").values, part.number("end_s").values
        for block, start, end in zip(blocks, starts, ends, strict=True):
            low, high = spans.get(block, (np.inf, -np.inf))
            spans[block] = (min(low, start), max(high, end))
    ordered = [spans[b] for b in sorted(spans)]
    assert all(a[1] <= b[0] for a, b in zip(ordered, ordered[1:], strict=False))


@pytest.mark.slow
def test_measuring_wrongly_shows_in_the_records(tmp_path):
    proof = small_proof()
    first, second = simulated_routes(proof)
    baseline = Baseline.play(proof, cases(), first)
    late = RunFaults(late_dispatch_s=0.5, control=False)
    folder = virtual_run(tmp_path / "run", proof, baseline, second, faults=late)
    (part,) = records_of(folder)
    assert "control" not in set(part.text("arm"))
    held = part.where(part.is_in("arm", "candidate") & part.is_in("phase", "sweep"))
    lag = held.number("dispatched_s").values - held.number("intended_s").values
    assert (lag > 0.4).all()


@pytest.mark.slow
def test_the_selftest_finds_a_plain_fault_and_no_fault_in_a_sound_route():
    proof = small_proof()
    tried = [fault("http_500"), fault("call_dropped")]
    power = power_of(proof, cases(120), tried, lambda words: None)
    assert not [n for n in power.sound_failures if n.startswith("correctness")]
    seen, blind = power.rows
    assert seen.smallest is not None and seen.smallest <= seen.tried[-1].strength
    assert blind.smallest is None
    assert msgspec.json.decode(msgspec.json.encode(power), type=type(power)) == power


def test_load_levels_are_cut_for_a_selftest():
    load = LoadSpec(sweep=ArrivalSpec(concurrency=(8,), duration_s=600.0))
    cut = trimmed(WorkloadSpec(load=load), 50).load.sweep
    assert cut.duration_s is None and cut.requests == 256


def test_the_simulate_command_refuses_what_it_does_not_know():
    with pytest.raises(ConfigError, match="no such engine"):
        route_of(Simulation(engine="vlm"))
    wanted = Simulation(engine="llama.cpp", draft_tokens=3, faults=("slower:2",))
    route = route_of(wanted)
    assert isinstance(route, SimulatedRoute)
    assert route.dialect == "llamacpp" and route.faults == {"slower": 2.0}
    assert route.speculation is not None and route.speculation.draft_tokens == 3
