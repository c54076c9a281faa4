"""Cells and the jobs they run: the side of the sandbox that routeproof itself is on."""

import os
import select
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from queue import SimpleQueue
from types import TracebackType
from typing import Any

from routeproof.scorers.sandbox.tiers import Limits, Tier
from routeproof.scorers.sandbox.wire import WireError, receive, send

_SOURCES = str(Path(__file__).parents[3])
GRACE_S = 10.0
"""A cell that says nothing for this long after a job's own time is given up."""


@dataclass(frozen=True, slots=True)
class Job:
    """A program and its tests.

    Attributes:
        program: Source under test.
        tests: Source that calls it; one that defines ``check`` gets the first entry
            point.
        entry_points: Functions of the program that the tests may call.
        context: Source the tests rely on, such as helpers of the prompt; trusted.
    """

    program: str
    tests: str
    entry_points: tuple[str, ...]
    context: str = ""
    limits: Limits = field(default_factory=Limits)


@dataclass(frozen=True, slots=True)
class Ran:
    """What became of a job.

    Attributes:
        outcome: ``passed``; ``failed``, ``raised``, ``load_failed``, ``died``,
            ``unreadable``, ``timed_out`` (the program's doing); ``test_error``
            (the tests'); ``not_confined``, ``infra`` (ours).
        signal: That ended the program; 0 for none.
    """

    outcome: str
    detail: str
    wall_s: float
    signal: int = 0


def cell_command(code: str) -> list[str]:
    """Command of an interpreter with the standard library and this package alone."""
    start = f"import sys; sys.path.append({_SOURCES!r}); {code}"
    return [sys.executable, "-s", "-S", "-P", "-B", "-c", start]


class _Cell:
    def __init__(self, is_apart: bool) -> None:
        code = f"from routeproof.scorers.sandbox.cell import main; main({is_apart})"
        self._process = subprocess.Popen(
            cell_command(code),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={"PYTHONHASHSEED": "0"},
            cwd="/",
        )
        assert self._process.stdin is not None and self._process.stdout is not None
        self._asks = self._process.stdin.fileno()
        self._replies = self._process.stdout.fileno()

    def run(self, job: Job, tier: Tier) -> dict[str, Any]:
        """One job's result.

        Raises:
            WireError: The cell has gone, or says nothing in time.
        """
        limits = asdict(job.limits)
        send(self._asks, {"program": job.program, "tier": tier, "limits": limits})
        tests = {
            "tests": job.tests,
            "context": job.context,
            "entry_points": job.entry_points,
        }
        send(self._asks, tests)
        wait_s = job.limits.wall_s + GRACE_S
        if not select.select([self._replies], [], [], wait_s)[0]:
            raise WireError("the cell says nothing")
        return receive(self._replies)

    def end(self) -> None:
        """Kill the cell; what it started dies with it."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()


class Pool:
    """Cells that run jobs at one tier, some at a time. Use it in a ``with`` block."""

    def __init__(self, tier: Tier, *, workers: int = 0, is_apart: bool = False) -> None:
        """Start the cells.

        Args:
            tier: How strongly each program is held.
            workers: Programs at a time; as many as this process may use CPUs when 0.
            is_apart: Put each cell into a throw-away namespace of its own, for the
                self-test.
        """
        self.tier = tier
        self._is_apart = is_apart
        count = workers or len(os.sched_getaffinity(0))
        self._idle: SimpleQueue[_Cell] = SimpleQueue()
        self._threads = ThreadPoolExecutor(count, thread_name_prefix="sandbox")
        for _ in range(count):
            self._idle.put(_Cell(is_apart))
        self._count = count

    def __enter__(self) -> "Pool":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._threads.shutdown(cancel_futures=True)
        for _ in range(self._count):
            self._idle.get().end()

    def run(self, jobs: Sequence[Job]) -> list[Ran]:
        """Run jobs, results in their order.

        One that timed out or met trouble of ours is run once more, alone.
        """
        first = list(self._threads.map(self._run_one, jobs))
        return [
            self._run_one(job) if ran.outcome in ("timed_out", "infra") else ran
            for job, ran in zip(jobs, first, strict=True)
        ]

    def _run_one(self, job: Job) -> Ran:
        cell = self._idle.get()
        try:
            told = cell.run(job, self.tier)
        except WireError as error:
            cell.end()
            cell = _Cell(self._is_apart)
            return Ran("infra", str(error), 0.0)
        finally:
            self._idle.put(cell)
        return Ran(
            outcome=str(told["outcome"]),
            detail=str(told["detail"]),
            wall_s=float(told["wall_s"]),
            signal=int(told["signal"]),
        )
