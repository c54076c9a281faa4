"""From cases and load levels to interleaved blocks."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from routeproof.errors import ConfigError
from routeproof.proof.workload import ArrivalSpec, WorkloadSpec
from routeproof.records.record import Arm, Phase
from routeproof.runs.blocks import CONTROL, Block, Plan, Stage
from routeproof.workloads.arrivals import arrival_offsets_s, closed_offsets_s
from routeproof.workloads.case import Case
from routeproof.workloads.replay import replay_offsets_s
from routeproof.workloads.sessions import Session, plan_sessions
from routeproof.workloads.trace import Trace

ROUNDS_PER_BLOCK = 4
"""A closed block sends at least this many times its concurrency, so that most of it
runs at that concurrency and not in the ramps."""

GROUPS_PER_TIMED_LEVEL = 4
"""A level that runs by the clock is cut into this many groups, so that its arms
alternate too (A B, B A, A B, B A)."""

SHORTEST_TIMED_BLOCK_S = 5.0
"""No group of a level that runs by the clock is shorter."""


def build_plan(
    cases: Sequence[Case],
    workload: WorkloadSpec,
    *,
    arms: Sequence[Arm] = ("baseline", "candidate", "control"),
    phases: Sequence[Phase] = ("quality", "latency", "sweep", "soak"),
    seed: int | None = None,
    traces: Mapping[str, Trace] | None = None,
    trials_together: bool = False,
) -> Plan:
    """Expand cases, trials, arms and load levels into interleaved blocks.

    The plan is a pure function of its arguments, and so are the request ids: resume
    builds it again and leaves out what has a record.

    Args:
        cases: Sent in this order.
        workload: Trials, load levels, block size, cache state.
        arms: Which arms take part; leaving out ``control`` saves a third of the time
            and the noise floor with it.
        phases: Which stages to plan, of those the workload has.
        seed: Decides arm order and arrivals; the workload's own when ``None``.
        traces: What ``workloads.replay.load_traces`` gave, for stages that replay one.
        trials_together: Send all trials of a few cases before the next cases, and not
            all cases once before the second trial; for a run that may stop early.

    Raises:
        ConfigError: No cases, or a level that makes no sense.
    """
    if not cases:
        raise ConfigError("the workload has no cases", key="workload.cases")
    chosen = workload.seed if seed is None else seed
    builder = _Builder(workload, tuple(arms), chosen, tuple(cases), traces or {})
    builder.trials_together = trials_together
    stages: list[Stage] = []
    for phase in phases:
        arrivals: ArrivalSpec | None = getattr(workload.load, phase)
        if arrivals is not None:
            stages.extend(builder.stage(phase, lv) for lv in _levels(phase, arrivals))
    return Plan(
        tuple(stages),
        tuple(arms),
        chosen,
        tuple(cases),
        workload,
        tuple(phases),
        dict(traces or {}),
    )


@dataclass(frozen=True, slots=True)
class _Level:
    name: str
    spec: ArrivalSpec
    concurrency: int | None = None
    rate_per_s: float | None = None


def _levels(phase: str, spec: ArrivalSpec) -> list[_Level]:
    key = f"workload.load.{phase}"
    if spec.think_s is not None and spec.trace is not None:
        raise ConfigError(
            "a stage that replays a trace has the times of every turn already",
            key=f"{key}.think_s",
            hint="leave out `think_s`, or give `concurrency` or `request_rate`",
        )
    if spec.ramp_s and not spec.concurrency:
        raise ConfigError(
            "only the streams of a closed level begin over a ramp",
            key=f"{key}.ramp_s",
            hint="leave it out, or give `concurrency`",
        )
    if spec.trace is not None and not spec.request_rate:
        if spec.concurrency:
            raise ConfigError(
                "a stage that replays a trace has no concurrency of its own",
                key=f"{key}.concurrency",
                hint="replay it at its own rate, or at several with `request_rate`",
            )
        return [_Level("trace", spec)]
    if not spec.concurrency and not spec.request_rate:
        raise ConfigError(
            "this stage says neither `concurrency` nor `request_rate` nor `trace`",
            key=key,
            hint="add `concurrency: [1]` or a `trace`, or remove the stage",
        )
    if any(level < 1 for level in spec.concurrency):
        raise ConfigError("a concurrency is below 1", key=f"{key}.concurrency")
    closed = [_Level(f"c{c}", spec, concurrency=c) for c in spec.concurrency]
    return closed + [_Level(f"r{r:g}", spec, rate_per_s=r) for r in spec.request_rate]


class _Builder:
    """Numbers blocks and groups through the whole plan."""

    def __init__(
        self,
        workload: WorkloadSpec,
        arms: tuple[Arm, ...],
        seed: int,
        cases: tuple[Case, ...],
        traces: Mapping[str, Trace],
    ) -> None:
        self.trials_together = False
        self._cases = cases
        self._traces = traces
        self._workload = workload
        self._load = workload.load
        self._arms = arms
        self._seed = seed
        self._n_cases = len(cases)
        self._blocks = 0
        self._groups = 0
        self._rng = np.random.Generator(np.random.PCG64(seed))

    def stage(self, phase: Phase, level: _Level) -> Stage:
        """Warm-up of every arm, then the groups, arms turned round each time."""
        blocks = self._warm_up(phase, level)
        order: list[Arm] = []
        for number, model in enumerate(self._models(phase, level)):
            if number % 2 == 0:
                order = [self._arms[i] for i in self._rng.permutation(len(self._arms))]
            else:
                order = order[::-1]
            self._groups += 1
            blocks.extend(self._numbered(model, arm) for arm in order)
        return Stage(phase, level.name, tuple(blocks))

    def _numbered(self, model: Block, arm: Arm) -> Block:
        self._blocks += 1
        nonce = None
        if self._load.cache == "cold" and model.phase != "quality":
            # The control reaches the same server as the baseline: own nonce.
            slot = CONTROL if arm == CONTROL else "arms"
            seed = f"{self._seed}/{model.phase}/{model.level}/{self._groups}/{slot}"
            nonce = hashlib.sha256(seed.encode()).hexdigest()[:8]
        return replace(
            model, number=self._blocks, group=self._groups, arm=arm, nonce=nonce
        )

    def _warm_up(self, phase: Phase, level: _Level) -> list[Block]:
        fill = self._load.cache == "warm" and phase != "quality"
        count = self._n_cases if fill else self._load.warmup_requests
        if count < 1:
            return []
        model = replace(
            self._model("warmup", level),
            count=count,
            concurrency=min(level.concurrency or 1, count),
            prefill_only=fill,
        )
        self._groups += 1
        return [self._numbered(model, arm) for arm in self._arms if arm != CONTROL]

    def _model(self, phase: Phase, level: _Level) -> Block:
        """A block without number, group, arm and requests."""
        return Block(
            number=0,
            group=0,
            arm="baseline",
            phase=phase,
            level=level.name,
            n_cases=self._n_cases,
            concurrency=level.concurrency,
        )

    def _sessions(self, spec: ArrivalSpec) -> tuple[Session, ...]:
        if spec.think_s is None:
            return ()
        anywhen = np.zeros(self._n_cases)
        return plan_sessions(
            self._cases, anywhen, mean_think_s=spec.think_s, seed=self._seed
        )

    def _models(self, phase: Phase, level: _Level) -> Iterator[Block]:
        """One block per group, of no arm yet."""
        starts_s = None
        if level.concurrency is not None and level.spec.ramp_s:
            starts_s = closed_offsets_s(level.concurrency, ramp_s=level.spec.ramp_s)
        model = replace(
            self._model(phase, level),
            starts_s=starts_s,
            sessions=self._sessions(level.spec),
        )
        if level.spec.trace is not None:
            yield self._replayed(model, level)
        elif level.rate_per_s is not None:
            yield from self._open(model, level, level.rate_per_s)
        elif level.spec.duration_s is not None:
            yield from self._timed(model, level.spec.duration_s, level.spec.requests)
        else:
            yield from self._counted(model, level.spec.requests)

    @property
    def _is_alone(self) -> bool:
        """One arm has nothing to alternate with; cutting would only add ramps."""
        return len(self._arms) == 1

    def _groups_in(self, duration_s: float) -> int:
        """Groups of a level that runs by the clock: 4, 2 or 1, none too short."""
        groups = 1 if self._is_alone else GROUPS_PER_TIMED_LEVEL
        while groups > 1 and duration_s / groups < SHORTEST_TIMED_BLOCK_S:
            groups //= 2
        return groups

    def _counted(self, model: Block, requests: int | None) -> Iterator[Block]:
        passes = self._workload.trials if model.phase == "quality" else 1
        wanted = model.n_units * passes
        if requests is not None:
            wanted = _units_of(model, requests)
        many = model.concurrency or 1
        size = self._load.block_size
        if many > 1:
            size = max(size, ROUNDS_PER_BLOCK * many)
        if self._is_alone:
            size = max(size, wanted)
        if self.trials_together and model.phase == "quality" and requests is None:
            yield from self._together(model, size)
            return
        for start in range(0, wanted, size):
            trial, position = divmod(start, model.n_units)
            block = replace(model, position=position, first_trial=trial)
            yield replace(block, count=block.n_requests(min(size, wanted - start)))

    def _together(self, model: Block, size: int) -> Iterator[Block]:
        for position in range(0, model.n_units, size):
            for trial in range(self._workload.trials):
                block = replace(model, position=position, first_trial=trial)
                units = min(size, model.n_units - position)
                yield replace(block, count=block.n_requests(units))

    def _timed(
        self, model: Block, duration_s: float, requests: int | None
    ) -> Iterator[Block]:
        groups = self._groups_in(duration_s)
        for group in range(groups):
            block = _part(model, group, groups)
            yield replace(
                block,
                duration_s=duration_s / groups,
                count=None
                if requests is None
                else block.n_requests(_units_of(block, -(-requests // groups))),
            )

    def _replayed(self, model: Block, level: _Level) -> Block:
        """The trace in one block: cutting it would cut its bursts."""
        offsets_s = replay_offsets_s(
            level.spec, self._traces, rate_per_s=level.rate_per_s
        )
        return replace(model, offsets_s=offsets_s, count=len(offsets_s))

    def _open(self, model: Block, level: _Level, rate_per_s: float) -> Iterator[Block]:
        spec = level.spec
        wanted, duration_s = spec.requests, spec.duration_s
        if wanted is None and duration_s is None:
            wanted = model.n_units
        elif wanted is not None:
            wanted = _units_of(model, wanted)
        length_s = duration_s if duration_s is not None else (wanted or 0) / rate_per_s
        groups = self._groups_in(length_s)
        for group in range(groups):
            offsets_s = arrival_offsets_s(
                spec.arrivals,
                rate_per_s,
                seed=int(self._rng.integers(2**63)),
                n=None if wanted is None else -(-wanted // groups),
                duration_s=None if duration_s is None else duration_s / groups,
                burstiness=spec.burstiness,
            )
            block = _part(model, group, groups)
            count = block.n_requests(len(offsets_s))
            yield replace(block, offsets_s=offsets_s, count=count)


def _part(model: Block, group: int, groups: int) -> Block:
    """Where the blocks of one of several groups begin; no case twice in a trial."""
    return replace(
        model,
        position=group * model.n_units // groups,
        first_trial=group,
        trial_step=groups,
    )


def _units_of(model: Block, requests: int) -> int:
    """Whole sessions, or cases, that make at least so many requests."""
    if not model.sessions:
        return requests
    passes, rest = divmod(requests, model.n_requests(model.n_units))
    units = passes * model.n_units
    while passes * model.n_requests(model.n_units) + rest > model.n_requests(units):
        units += 1
    return units
