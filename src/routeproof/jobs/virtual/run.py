"""A whole run against simulated routes, in virtual time: no socket, no waiting.

The plan, the request bodies, the parser, the adapters and the run folder are those of
a real run; only the client's socket and the engine behind it are replaced. So a proof
can be tried on a known fault in seconds, and judged like any other.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec

from routeproof.jobs.qualifying.probe_requests import Hints
from routeproof.jobs.virtual.papers import Watch, write_papers, write_samples
from routeproof.jobs.virtual.probes import (
    Answers,
    probe_baseline,
    probe_candidate,
    write_probes,
)
from routeproof.jobs.virtual.simulated_answers import book_of
from routeproof.jobs.virtual.venue import SOUND_RUN, RunFaults, Sample, Venue
from routeproof.proof.proof import Proof
from routeproof.records.manifest import StageDone
from routeproof.records.record import Clock, Record, Stream
from routeproof.records.store import RunFolder
from routeproof.routes.diff import diff
from routeproof.routes.inventory import RouteDiff, take_inventory
from routeproof.routes.read_back import ReadBack
from routeproof.routes.resolve import resolve
from routeproof.runs.blocks import Block, Plan
from routeproof.runs.plan import build_plan
from routeproof.simulator.route import SimulatedRoute
from routeproof.workloads.case import Case

BETWEEN_BLOCKS_S = 0.02


@dataclass(slots=True)
class Played:
    """Blocks of one arm as they were answered, times from the start of each block."""

    records: dict[int, list[Record]] = field(default_factory=dict)
    samples: dict[int, list[Sample]] = field(default_factory=dict)
    length_s: dict[int, float] = field(default_factory=dict)


@dataclass(slots=True)
class Baseline:
    """The baseline's and the control's part of a run, to be used again.

    Holds for one plan and one baseline route; every candidate can be put beside it.
    """

    plan: Plan
    said: ReadBack
    played: Played
    hints: Hints
    probed: dict[str, Answers]

    @classmethod
    def play(
        cls, proof: Proof, cases: Sequence[Case], route: SimulatedRoute
    ) -> "Baseline":
        """Answer every baseline and control block once."""
        plan = build_plan(cases, proof.workload)
        venue = Venue(route, book_of(cases))
        played = Played()
        now_s = 0.0
        for stage in plan.stages:
            for block in stage.blocks:
                if block.arm == "candidate":
                    continue
                records, samples, end_s = venue.play(plan, block, now_s, SOUND_RUN)
                number = block.number
                played.records[number] = [_moved(r, -now_s) for r in records]
                played.samples[number] = _moved_samples(samples, -now_s)
                played.length_s[number] = end_s - now_s
                now_s = end_s + BETWEEN_BLOCKS_S
        hints, probed = probe_baseline(Venue(route, book_of(cases)))
        return cls(plan, venue.read_back(), played, hints, probed)


def virtual_run(
    path: Path,
    proof: Proof,
    baseline: Baseline,
    candidate: SimulatedRoute,
    *,
    faults: RunFaults = SOUND_RUN,
) -> RunFolder:
    """Put a candidate beside a baseline and write the run folder.

    Args:
        path: Folder to make.
        proof: What is proved; its endpoints are never asked.
        baseline: From ``Baseline.play`` of the same proof and cases.
        candidate: The simulated candidate, with its faults.
        faults: What is wrong with the measuring.
    """
    plan = baseline.plan
    folder = RunFolder.create(path)
    venue = Venue(candidate, book_of(plan.cases))
    found = _route_diff(proof, baseline.said, venue.read_back())
    if faults.candidate_warm:
        _warm(venue, plan)
    asked = probe_candidate(Venue(candidate, book_of(plan.cases)), baseline.hints)
    write_probes(folder, baseline.hints, {**baseline.probed, "candidate": asked})
    samples: list[Sample] = []
    stages: list[StageDone] = []
    watch = Watch()
    now_s = 0.0
    for stage in plan.stages:
        began_s, count = now_s, 0
        for block in _ordered(stage.blocks, faults):
            records, seen, now_s = _answered(baseline, venue, block, now_s, faults)
            folder.append(records)
            watch.take(records)
            samples += seen
            count += len(records)
        done = StageDone(
            phase=stage.phase,
            level=stage.level,
            planned=stage.planned,
            recorded=count,
            complete=True,
            started_s=began_s,
            ended_s=now_s,
        )
        stages.append(done)
    folder.flush()
    write_samples(folder, samples)
    write_papers(folder, proof, plan, found, (tuple(stages), watch.health()))
    return folder


def _answered(
    baseline: Baseline, venue: Venue, block: Block, now_s: float, faults: RunFaults
) -> tuple[list[Record], list[Sample], float]:
    plan = baseline.plan
    if block.arm == "candidate":
        cases = _cut(plan, block, faults)
        records, samples, end_s = venue.play(plan, cases, now_s, faults)
        if faults.late_dispatch_s and (block.concurrency or 2) > 1:
            records = [_late(r, faults.late_dispatch_s) for r in records]
        return records, samples, end_s + BETWEEN_BLOCKS_S
    if block.arm == "control" and not faults.control:
        return [], [], now_s
    number, played = block.number, baseline.played
    records = [_moved(r, now_s) for r in played.records[number]]
    samples = _moved_samples(played.samples[number], now_s)
    return records, samples, now_s + played.length_s[number] + BETWEEN_BLOCKS_S


def _cut(plan: Plan, block: Block, faults: RunFaults) -> Block:
    if faults.candidate_cases_share >= 1.0 or block.count is None:
        return block
    return replace(block, count=max(1, int(block.count * faults.candidate_cases_share)))


def _ordered(blocks: tuple[Block, ...], faults: RunFaults) -> tuple[Block, ...]:
    if not faults.one_after_the_other:
        return blocks
    place = {"baseline": 0, "control": 1, "candidate": 2}
    return tuple(sorted(blocks, key=lambda b: place[b.arm]))


def _warm(venue: Venue, plan: Plan) -> None:
    """Send every prompt once before anything is measured."""
    last = max((s.blocks[-1].number for s in plan.stages), default=0)
    block = Block(
        number=last + 1,
        group=0,
        arm="candidate",
        phase="warmup",
        level="c1",
        n_cases=len(plan.cases),
        count=len(plan.cases),
        concurrency=1,
        prefill_only=True,
    )
    venue.play(plan, block, 0.0, SOUND_RUN)


def _route_diff(proof: Proof, first: ReadBack, second: ReadBack) -> RouteDiff:
    baseline, candidate = resolve(proof)
    return diff(
        take_inventory(baseline, first), take_inventory(candidate, second), candidate
    )


def _moved(record: Record, by_s: float) -> Record:
    """The same record, ``by_s`` later."""
    clock, stream = record.clock, record.stream

    def later(stamp_s: float | None) -> float | None:
        return None if stamp_s is None else stamp_s + by_s

    return msgspec.structs.replace(
        record,
        clock=Clock(
            wall_s=clock.wall_s + by_s,
            intended_s=clock.intended_s + by_s,
            dispatched_s=later(clock.dispatched_s),
            sent_s=later(clock.sent_s),
            first_byte_s=later(clock.first_byte_s),
            end_s=later(clock.end_s),
        ),
        stream=Stream(
            chunk_s=tuple(t + by_s for t in stream.chunk_s),
            chunk_tokens=stream.chunk_tokens,
            first_visible_s=later(stream.first_visible_s),
            coalesced_reads=stream.coalesced_reads,
        ),
    )


def _late(record: Record, by_s: float) -> Record:
    """The schedule wanted it ``by_s`` earlier than the client managed."""
    clock = record.clock
    return msgspec.structs.replace(
        record,
        clock=msgspec.structs.replace(
            clock,
            intended_s=clock.intended_s - by_s,
            wall_s=clock.wall_s - by_s,
        ),
    )


def _moved_samples(samples: Iterable[Sample], by_s: float) -> list[Sample]:
    return [(at + by_s, arm, name, value) for at, arm, name, value in samples]
