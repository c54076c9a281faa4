"""What is sent, to whom, in which order: decided before the first byte.

A plan is a list of blocks. A block sends a few cases to one arm, and only one arm is
busy at a time. The same cases go to every arm in neighbouring blocks; the order of
the arms is drawn from the seed and turned round from group to group (A B, B A, ...),
so that drift of the machine falls on all arms alike. The control arm is the baseline
a second time, interleaved like the others: what differs there is noise.
"""

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from routeproof.proof.workload import WorkloadSpec
from routeproof.records.record import Arm, Phase
from routeproof.workloads.case import Case
from routeproof.workloads.sessions import Session, Turn
from routeproof.workloads.trace import Trace

CONTROL: Arm = "control"


@dataclass(frozen=True, slots=True)
class Planned:
    """One request of a block.

    Attributes:
        case: Index into the plan's cases.
        offset_s: When it, or its session, is due after the start of its block;
            ``None`` in a closed block, where a free slot decides.
        session: Number of its session in the block; ``None`` when it has none.
        think_s: A later turn is due so long after the answer before it.
    """

    request_id: str
    case: int
    trial: int
    offset_s: float | None = None
    session: int | None = None
    think_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Block:
    """Some requests to one arm, sent one way.

    Attributes:
        number: Counts through the whole plan; the interleaving block of a record.
        group: Blocks of one group send the same cases with the same trials.
        position: Index of the first case, or session; those after the last start
            again.
        first_trial: Trial of the first pass over the cases.
        trial_step: Added to the trial with each further pass.
        count: Requests to send; ``None`` = until ``duration_s`` is over.
        concurrency: Most requests in flight, or sessions under way; ``None`` = as the
            schedule wants.
        starts_s: When each stream of a closed block begins, shape ``(concurrency,)``;
            ``None`` = all at once.
        sessions: Their turns are what is sent; empty when every case is on its own.
        offsets_s: Due times of an open block, one per request or session.
        nonce: Put in front of every prompt of the block.
        prefill_only: One output token is enough: the block fills a cache.
    """

    number: int
    group: int
    arm: Arm
    phase: Phase
    level: str
    n_cases: int
    position: int = 0
    first_trial: int = 0
    trial_step: int = 1
    count: int | None = None
    concurrency: int | None = None
    duration_s: float | None = None
    starts_s: NDArray[np.float64] | None = None
    sessions: tuple[Session, ...] = ()
    offsets_s: NDArray[np.float64] | None = None
    nonce: str | None = None
    prefill_only: bool = False

    def requests(self) -> Iterator[Planned]:
        """The requests in order; without end when the clock ends the block."""
        stem = f"{self.arm}/{self.phase}/{self.level}/{self.number}"
        number = 0
        for unit in itertools.count():
            if self.count is not None and number >= self.count:
                return
            pass_, index = divmod(self.position + unit, self.n_units)
            offset = None if self.offsets_s is None else float(self.offsets_s[unit])
            trial = self.first_trial + pass_ * self.trial_step
            session = unit if self.sessions else None
            for turn in self._turns(index):
                yield Planned(
                    f"{stem}/{number}",
                    turn.case_index,
                    trial,
                    offset,
                    session,
                    turn.think_s,
                )
                number += 1

    @property
    def n_units(self) -> int:
        """Sessions, or cases, before they start again."""
        return len(self.sessions) or self.n_cases

    def n_requests(self, units: int) -> int:
        """Requests in the first so many sessions, or cases, of the block."""
        if not self.sessions:
            return units
        passes, rest = divmod(units, len(self.sessions))
        whole = sum(len(session.turns) for session in self.sessions)
        last = range(self.position, self.position + rest)
        return passes * whole + sum(
            len(self.sessions[i % len(self.sessions)].turns) for i in last
        )

    def _turns(self, index: int) -> tuple[Turn, ...]:
        return self.sessions[index].turns if self.sessions else (Turn(index, 0.0),)


@dataclass(frozen=True, slots=True)
class Stage:
    """One phase at one load level; its blocks in the order in which they run."""

    phase: Phase
    level: str
    blocks: tuple[Block, ...]

    @property
    def planned(self) -> int | None:
        """Requests in it, or ``None`` when the clock ends some block."""
        return _total([b.count for b in self.blocks])


@dataclass(frozen=True, slots=True)
class Plan:
    """All stages, in order.

    Attributes:
        arms: In the plan; ``control`` is sent to the baseline's route.
        cases: What the blocks' indices mean.
        workload: Sampling, deadlines and the failure rule of the requests.
        phases: What the plan was built of; with the rest it gives the same plan again
            in another process.
        traces: Those that its stages replay, by name.
    """

    stages: tuple[Stage, ...]
    arms: tuple[Arm, ...]
    seed: int
    cases: tuple[Case, ...]
    workload: WorkloadSpec
    phases: tuple[Phase, ...] = ()
    traces: Mapping[str, Trace] = field(default_factory=dict)

    @property
    def planned(self) -> int | None:
        """Requests in all stages, or ``None`` when the clock ends some block."""
        return _total([s.planned for s in self.stages])

    def summary(self) -> dict[str, object]:
        """Plain data for the manifest."""
        stages = [
            {
                "phase": stage.phase,
                "level": stage.level,
                "blocks": len(stage.blocks),
                "requests": stage.planned,
            }
            for stage in self.stages
        ]
        return {
            "seed": self.seed,
            "arms": list(self.arms),
            "cases": len(self.cases),
            "stages": stages,
        }


def _total(counts: list[int | None]) -> int | None:
    known = [c for c in counts if c is not None]
    return sum(known) if len(known) == len(counts) else None
