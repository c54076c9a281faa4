"""A whole run against simulated routes, in virtual time: no socket, no waiting.

The plan, the request bodies, the parser, the adapters and the run folder are those of
a real run; only the client's socket and the engine behind it are replaced. So a proof
can be tried on a known fault in seconds, and judged like any other.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec
import numpy as np

from routeproof import __version__
from routeproof.engines.adapter import TableAdapter
from routeproof.engines.adapters import adapter
from routeproof.engines.endpoint import Endpoint
from routeproof.jobs.simulated_answers import book_of
from routeproof.proof.proof import Proof
from routeproof.proof.workload import SamplingSpec
from routeproof.records.columns import Column
from routeproof.records.manifest import ClientHealth, Manifest, StageDone, Versions
from routeproof.records.record import Arm, Clock, Key, Record, Stream
from routeproof.records.store import RunFolder
from routeproof.routes.diff import diff
from routeproof.routes.inventory import RouteDiff, take_inventory
from routeproof.routes.read_back import ReadBack
from routeproof.routes.resolve import resolve
from routeproof.runs.blocks import Block, Plan, Planned
from routeproof.runs.capture import Capture, FailureKind
from routeproof.runs.health import judge_client, quantile
from routeproof.runs.parse import Origin, parse
from routeproof.runs.plan import build_plan
from routeproof.runs.request import Target, body_of, path_of
from routeproof.simulator.book import Book
from routeproof.simulator.route import SimulatedRoute
from routeproof.simulator.virtual import Exchange, VirtualEngine
from routeproof.workloads.case import Case
from routeproof.workloads.fingerprint import fingerprint

WALL_S = 1_790_000_000.0
"""Wall clock at the start of every virtual run."""

BETWEEN_BLOCKS_S = 0.02
SAMPLE_EVERY_S = 1.0
_ZERO_NS = 1_000_000_000
_ORIGIN = Origin(_ZERO_NS, WALL_S)
"""Time zero is not stamp 0, which means "never" in a capture."""

_ADAPTERS = {"llamacpp": "llama.cpp", "tensorrt_llm": "tensorrt-llm"}

Sample = tuple[float, str, str, float]
"""(at_s, arm, name, value)."""


class RunFaults(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What can be wrong with the measuring itself, not with a route.

    Attributes:
        one_after_the_other: All of the baseline first, then all of the candidate.
        control: False leaves the A/A control out.
        candidate_sampling: Sampling the candidate gets instead of the workload's.
        candidate_cases_share: Share of the cases the candidate is sent.
        candidate_warm: Every prompt has been through the candidate's cache before.
        late_dispatch_s: The client sends later than it should, under load.
    """

    one_after_the_other: bool = False
    control: bool = True
    candidate_sampling: SamplingSpec | None = None
    candidate_cases_share: float = 1.0
    candidate_warm: bool = False
    late_dispatch_s: float = 0.0


SOUND_RUN = RunFaults()


@dataclass(slots=True)
class Played:
    """Blocks of one arm as they were answered, times from the start of each block."""

    records: dict[int, list[Record]] = field(default_factory=dict)
    samples: dict[int, list[Sample]] = field(default_factory=dict)
    length_s: dict[int, float] = field(default_factory=dict)


class Venue:
    """One simulated route as an arm of a plan sees it."""

    def __init__(self, route: SimulatedRoute, book: Book) -> None:
        self.engine = VirtualEngine(route, book)
        name = _ADAPTERS.get(route.dialect, route.dialect)
        self.adapter: TableAdapter = adapter(name)
        endpoint = Endpoint("http://simulated.invalid/v1")
        self.target = Target(endpoint, route.identity.model, self.adapter)
        self._sampled_s = -SAMPLE_EVERY_S

    def read_back(self) -> ReadBack:
        """What the route says of itself."""
        paths = {*self.adapter.probe_paths, "/v1/models"}
        pages = {path: self.engine.page(path) for path in sorted(paths)}
        return self.adapter.read_back({p: t for p, t in pages.items() if t is not None})

    def play(
        self, plan: Plan, block: Block, start_s: float, faults: RunFaults
    ) -> tuple[list[Record], list[Sample], float]:
        """Send one block from ``start_s`` on: records, samples, time it ended.

        Times are those of the run.
        """
        self.engine.idle_until(start_s)
        records: list[Record] = []
        samples: list[Sample] = []
        ended_s = start_s
        for exchange in self._exchanges(plan, block, start_s, faults):
            planned, due_s = exchange.tag
            key = _key(plan, block, planned)
            records.append(parse(_capture(exchange, due_s), key, self.adapter, _ORIGIN))
            ended_s = max(ended_s, exchange.end_s or ended_s)
            samples += self._sample(block.arm, force=False)
        samples += self._sample(block.arm, force=True)
        return records, samples, ended_s

    def _exchanges(
        self, plan: Plan, block: Block, start_s: float, faults: RunFaults
    ) -> Iterator[Exchange]:
        if block.offsets_s is not None:
            for planned in block.requests():
                due_s = start_s + (planned.offset_s or 0.0)
                self._send(plan, block, planned, (due_s, due_s), faults)
            while (done := self.engine.next_end()) is not None:
                yield done
            return
        coming = block.requests()
        many = block.concurrency or 1
        for planned in _first(coming, many):
            self._send(plan, block, planned, (start_s, start_s), faults)
        last_s = None if block.duration_s is None else start_s + block.duration_s
        while (done := self.engine.next_end()) is not None:
            yield done
            now_s = self.engine.now_s
            if last_s is not None and now_s >= last_s:
                continue
            for planned in _first(coming, 1):
                self._send(plan, block, planned, (now_s, now_s), faults)

    def _send(
        self,
        plan: Plan,
        block: Block,
        planned: Planned,
        times_s: tuple[float, float],
        faults: RunFaults,
    ) -> None:
        case = plan.cases[planned.case]
        sampling = plan.workload.sampling
        if block.arm == "candidate" and faults.candidate_sampling is not None:
            sampling = faults.candidate_sampling
        body = body_of(
            case,
            self.target,
            sampling,
            stream=plan.workload.stream,
            trial=planned.trial,
            nonce=block.nonce,
            prefill_only=block.prefill_only,
        )
        due_s, at_s = times_s
        if (block.concurrency or 2) > 1:
            at_s += faults.late_dispatch_s
        self.engine.send(
            at_s,
            f"/v1/{path_of(case)}",
            body,
            tag=(planned, due_s),
            deadline_s=plan.workload.load.request_timeout_s,
        )

    def _sample(self, arm: Arm, *, force: bool) -> list[Sample]:
        now_s = self.engine.now_s
        if not force and now_s - self._sampled_s < SAMPLE_EVERY_S:
            return []
        self._sampled_s = now_s
        page = self.engine.page(self.adapter.metrics_path)
        values = {} if page is None else self.adapter.counters(page, now_s).values
        held = {"device_memory_bytes": float(self.engine.engine.memory_bytes)}
        return [(now_s, arm, name, v) for name, v in {**values, **held}.items()]


@dataclass(slots=True)
class Baseline:
    """The baseline's and the control's part of a run, to be used again.

    Holds for one plan and one baseline route; every candidate can be put beside it.
    """

    plan: Plan
    said: ReadBack
    played: Played

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
        return cls(plan, venue.read_back(), played)


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
    samples: list[Sample] = []
    stages: list[StageDone] = []
    watch = _Watch()
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
    _write_samples(folder, samples)
    _write_papers(folder, proof, plan, found, (tuple(stages), watch.health()))
    return folder


@dataclass(slots=True)
class _Watch:
    """The client's checks on itself, as far as they mean anything without a client."""

    delays_s: dict[str, list[float]] = field(default_factory=dict)
    firsts_s: dict[str, list[float]] = field(default_factory=dict)

    def take(self, records: Iterable[Record]) -> None:
        for record in records:
            key, clock = record.key, record.clock
            place = f"{key.arm}/{key.phase}/{key.level}"
            if clock.dispatched_s is not None:
                late = clock.dispatched_s - clock.intended_s
                self.delays_s.setdefault(place, []).append(late)
            if record.stream.chunk_s:
                first = record.stream.chunk_s[0] - clock.intended_s
                self.firsts_s.setdefault(place, []).append(first)

    def health(self) -> ClientHealth:
        levels = {
            place: {
                "requests": float(len(delays)),
                "dispatch_delay_p99_s": quantile(delays, 0.99),
                "first_chunk_p50_s": quantile(self.firsts_s.get(place, []), 0.5),
            }
            for place, delays in self.delays_s.items()
        }
        return judge_client(levels)


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


# -- records ---------------------------------------------------------------------------


def _first(coming: Iterator[Planned], n: int) -> Iterator[Planned]:
    for _ in range(n):
        planned = next(coming, None)
        if planned is None:
            return
        yield planned


def _key(plan: Plan, block: Block, planned: Planned) -> Key:
    return Key(
        request_id=planned.request_id,
        arm=block.arm,
        phase=block.phase,
        level=block.level,
        block=block.number,
        case_id=plan.cases[planned.case].id,
        trial=planned.trial,
    )


_FAILURES: Mapping[str, tuple[FailureKind, str]] = {
    "timeout": ("timeout", "not finished in time"),
    "cut_short": ("cut_short", "the server closed the connection mid-response"),
    "connection_error": ("connection_error", "connection refused"),
}


def _capture(exchange: Exchange, due_s: float) -> Capture:
    capture = Capture(_ns(due_s), _ns(exchange.sent_s), _ns(exchange.sent_s))
    capture.status = exchange.status
    capture.headers = [("content-type", exchange.kind)]
    if exchange.first_byte_s is not None:
        capture.first_byte_ns = _ns(exchange.first_byte_s)
    for due, data in exchange.pieces:
        capture.stamps.append(_ns(due))
        capture.pieces.append(data)
        capture.size_bytes += len(data)
    if exchange.failure is not None:
        capture.failure = _FAILURES[exchange.failure]
    capture.end_ns = _ns(exchange.end_s or exchange.sent_s)
    return capture


def _ns(seconds: float) -> int:
    return round(seconds * 1e9) + _ZERO_NS


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


# -- the folder ----------------------------------------------------------------------


def _write_samples(folder: RunFolder, samples: list[Sample]) -> None:
    if not samples:
        return
    at_s, arms, names, values = zip(*samples, strict=True)
    folder.write_telemetry(
        {
            "at_s": _known(at_s),
            "arm": np.array(arms, dtype=object),
            "name": np.array(names, dtype=object),
            "value": _known(values),
        }
    )


def _known(values: Sequence[float]) -> Column:
    return Column(np.array(values), np.ones(len(values), dtype=np.bool_))


def _write_papers(
    folder: RunFolder,
    proof: Proof,
    plan: Plan,
    found: RouteDiff,
    done: tuple[tuple[StageDone, ...], ClientHealth],
) -> None:
    stages, health = done
    lines = b"\n".join(msgspec.json.encode(case) for case in plan.cases) + b"\n"
    folder.cases_path.write_bytes(lines)
    folder.write_manifest(
        Manifest(
            run_id=folder.path.name,
            created_wall="2026-09-21T14:13:20+00:00",
            versions=Versions(
                routeproof=__version__, python="virtual", platform="virtual"
            ),
            proof=msgspec.to_builtins(proof),
            cases_digest=hashlib.sha256(lines).hexdigest(),
            fingerprint=fingerprint(plan.cases, proof.workload),
            route_diff=msgspec.to_builtins(found),
            plan=plan.summary(),
            stages=stages,
            health=health,
            finished=True,
        )
    )
