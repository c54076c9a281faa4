"""One simulated route as an arm of a plan sees it: blocks in, records out."""

from collections.abc import Iterator, Mapping

import msgspec

from routeproof.engines.adapter import TableAdapter
from routeproof.engines.adapters import adapter
from routeproof.engines.endpoint import Endpoint
from routeproof.proof.workload import SamplingSpec
from routeproof.records.record import Arm, Key, Record
from routeproof.routes.read_back import ReadBack
from routeproof.runs.blocks import Block, Plan, Planned
from routeproof.runs.capture import Capture, FailureKind
from routeproof.runs.parse import Origin, parse
from routeproof.runs.request import Target, body_of, path_of
from routeproof.simulator.book import Book
from routeproof.simulator.route import SimulatedRoute
from routeproof.simulator.virtual import Exchange, VirtualEngine

WALL_S = 1_790_000_000.0
"""Wall clock at the start of every virtual run."""

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
            key, due_s = exchange.tag
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
            body.data,
            tag=(_key(plan, block, planned, body.asked), due_s),
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


def _first(coming: Iterator[Planned], n: int) -> Iterator[Planned]:
    for _ in range(n):
        planned = next(coming, None)
        if planned is None:
            return
        yield planned


def _key(plan: Plan, block: Block, planned: Planned, asked: str) -> Key:
    return Key(
        request_id=planned.request_id,
        arm=block.arm,
        phase=block.phase,
        level=block.level,
        block=block.number,
        case_id=plan.cases[planned.case].id,
        trial=planned.trial,
        asked=asked,
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
