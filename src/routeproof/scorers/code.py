"""Code that runs: an answer's program against the tests of its case.

Unlike the scorers in the table this one needs the world: a sandbox. It is given to
``score_records`` as a batch scorer.
"""

from collections.abc import Sequence
from types import TracebackType

from routeproof.scorers.answered import (
    ANSWERED,
    option,
    reference,
    score,
    unparseable,
    unscored,
)
from routeproof.scorers.program import Task, TaskProblem, extract_program, read_task
from routeproof.scorers.reasoning import strip_reasoning
from routeproof.scorers.sandbox.pool import Job, Pool, Ran
from routeproof.scorers.sandbox.self_test import SelfTest, choose_tier
from routeproof.scorers.sandbox.tiers import Limits, Tier
from routeproof.scorers.score import Score, ScoreClass, ScoredAnswer
from routeproof.workloads.case import Case

VERSION = 1
FACTOR = 10.0
FLOOR_S = 4.0
UNKNOWN_S = 10.0
"""Time limit of a program: the larger of 4 s and ten times what the reference solution
takes here and now; 10 s where there is no reference solution."""

OUR_FAULT = frozenset({"infra", "not_confined", "test_error"})


class CodeScorer:
    """Runs the programs of answers. Use it in a ``with`` block.

    Attributes:
        tested: The tier in use and what its self-test found, for the report.
    """

    def __init__(self, *, tier: Tier | None = None, workers: int = 0) -> None:
        """Choose a tier and start the cells.

        Args:
            tier: ``None`` for the strongest that holds; a weaker one must be named.
            workers: Programs at a time; the CPUs of this process when 0.

        Raises:
            ConfigError: No tier holds here, or this is not Linux.
        """
        self.tested: SelfTest = choose_tier(tier)
        self._pool = Pool(self.tested.tier, workers=workers)
        self._limits: dict[str, Limits | str] = {}

    def __enter__(self) -> "CodeScorer":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._pool.__exit__(kind, error, trace)

    def __call__(self, asked: Sequence[tuple[Case, ScoredAnswer]]) -> list[Score]:
        """A score per (case, answer), in order; programs of all arms run mixed."""
        tasks = _read_tasks(asked)
        self._calibrate(tasks)
        scores: list[Score | None] = []
        jobs: list[tuple[int, Job, str]] = []
        for case, answer in asked:
            found = self._prepare(case, answer, tasks[case.id])
            if isinstance(found, Score):
                scores.append(found)
            else:
                jobs.append((len(scores), *found))
                scores.append(None)
        ran = self._pool.run([job for _, job, _ in jobs])
        for (at, _, how), one in zip(jobs, ran, strict=True):
            where = f"{self.tested.tier}: {how}"
            scores[at] = _score(one, where, asked[at][1])
        return [one for one in scores if one is not None]

    def _calibrate(self, tasks: dict[str, Task | str]) -> None:
        """Run each case's reference solution: it must pass, and it sets the time."""
        new = {
            name: task
            for name, task in tasks.items()
            if isinstance(task, Task) and name not in self._limits
        }
        jobs = [
            _job(task, task.solution, Limits(wall_s=UNKNOWN_S))
            for task in new.values()
            if task.solution is not None
        ]
        ran = iter(self._pool.run(jobs))
        for name, task in new.items():
            if task.solution is None:
                self._limits[name] = Limits(wall_s=UNKNOWN_S)
                continue
            own = next(ran)
            if own.outcome == "passed":
                self._limits[name] = Limits(wall_s=max(FLOOR_S, FACTOR * own.wall_s))
            else:
                self._limits[name] = f"reference solution {own.outcome}: {own.detail}"

    def _prepare(
        self, case: Case, answer: ScoredAnswer, task: Task | str
    ) -> Score | tuple[Job, str]:
        if answer.outcome not in ANSWERED:
            return score("failed", None, None, f"request ended {answer.outcome}")
        if answer.outcome == "refused":
            return score("refused", 0.0, None, "content filter")
        if isinstance(task, str):
            return unscored(task)
        limits = self._limits[case.id]
        if isinstance(limits, str):
            return unscored(limits)
        text, how = strip_reasoning(answer.text, case.options.get("reasoning"))
        if not text.strip():
            is_cut = answer.outcome == "truncated"
            return score("truncated" if is_cut else "empty", 0.0, None, how)
        program, rule = extract_program(text, task)
        if program is None:
            is_cut = answer.outcome == "truncated"
            return score("truncated", 0.0, None, rule) if is_cut else unparseable(rule)
        wall_s = option(case, "code", "wall_s")
        if isinstance(wall_s, int | float) and wall_s > 0:
            limits = Limits(wall_s=float(wall_s))
        return _job(task, program, limits), rule


def _read_tasks(asked: Sequence[tuple[Case, ScoredAnswer]]) -> dict[str, Task | str]:
    tasks: dict[str, Task | str] = {}
    for case, _ in asked:
        if case.id in tasks:
            continue
        try:
            tasks[case.id] = read_task(reference(case, "code"))
        except TaskProblem as problem:
            tasks[case.id] = str(problem)
    return tasks


def _job(task: Task, program: str | None, limits: Limits) -> Job:
    return Job(program or "", task.tests, task.entry_points, task.context, limits)


def _score(ran: Ran, where: str, answer: ScoredAnswer) -> Score:
    detail = f"{where}; {ran.outcome}" + (f": {ran.detail}" if ran.detail else "")
    if ran.signal:
        detail += f" (signal {ran.signal})"
    if ran.outcome in OUR_FAULT:
        return unscored(detail)
    if ran.outcome == "passed":
        class_: ScoreClass = "correct"
    else:
        class_ = "timed_out" if ran.outcome == "timed_out" else "wrong"
    if answer.outcome == "truncated":
        class_ = "truncated"
    return score(class_, float(ran.outcome == "passed"), None, detail)
