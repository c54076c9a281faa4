"""The main job: run a proof and judge it."""

import asyncio
import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec
import uvloop

from routeproof.engines.embedded import Progress as Download
from routeproof.errors import ConfigError, EngineError, StoredRunError
from routeproof.gates.result import Status
from routeproof.jobs.agreed import check_questions
from routeproof.jobs.drill_evidence import keep_drill
from routeproof.jobs.environment import environment, versions
from routeproof.jobs.judge import judge
from routeproof.jobs.route_checks import RouteChecks, check_routes
from routeproof.jobs.stand_up import Routes, Standing, stand_up
from routeproof.proof.file import load_proof
from routeproof.proof.proof import Proof
from routeproof.records.manifest import Manifest, Threshold
from routeproof.records.record import Arm, Phase
from routeproof.records.store import RunFolder
from routeproof.reports.judgement import Judgement
from routeproof.routes.lock import FILE_NAME as LOCK_NAME
from routeproof.runs.blocks import Plan
from routeproof.runs.conduct import Conducted, Progress, conduct
from routeproof.runs.plan import build_plan
from routeproof.runs.request import Target
from routeproof.runs.selftest import self_test
from routeproof.workloads.case import Case
from routeproof.workloads.cases import load_cases, write_cases
from routeproof.workloads.fingerprint import fingerprint
from routeproof.workloads.replay import load_traces, trace_digests

QUALITY: tuple[Phase, ...] = ("quality",)
SPEED: tuple[Phase, ...] = ("latency", "sweep", "soak")


@dataclass(frozen=True, slots=True)
class Listener:
    """Who is told while the run goes on; both may be ``None``."""

    download: Download | None = None
    requests: Callable[[Progress], None] | None = None
    words: Callable[[str], None] | None = None

    def say(self, text: str) -> None:
        """Pass a sentence on."""
        if self.words is not None:
            self.words(text)


@dataclass(frozen=True, slots=True)
class Options:
    """How a proof is run.

    Attributes:
        keep_going: Measure speed although quality failed.
        has_control: Run the baseline against itself too (A/A).
        resume: Go on with the run in the folder.
    """

    keep_going: bool = False
    has_control: bool = True
    resume: bool = False


def qualify(
    proof_path: Path,
    out: Path,
    *,
    options: Options | None = None,
    listener: Listener | None = None,
) -> Judgement:
    """Run a proof: quality first, speed only if quality did not fail, then judge.

    Args:
        proof_path: The proof file.
        out: The run folder; must not hold a run yet, unless it is resumed.
        options: How to run.
        listener: Who is told while it runs.

    Returns:
        The judgement, also stored as ``judgement.json`` in the folder.

    Raises:
        ConfigError: The proof, an endpoint or the workload is wrong, or the routes
            may not be compared.
        EngineError: The baseline did not start or died. (A candidate that dies is
            evidence: it is judged.)
        MeasurementError: More requests failed than the workload allows.
        StoredRunError: The folder cannot be used.
    """
    proof = load_proof(proof_path, environ=os.environ)
    base = proof_path.parent
    cases = load_cases(proof.workload, base)
    check_questions(proof, cases)
    run = _Run(
        proof,
        cases,
        options or Options(),
        listener or Listener(),
        base,
    )
    folder = run.open(proof_path, out)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(run.conduct(folder))
    return judge(folder.path)


@dataclass(frozen=True, slots=True)
class _Run:
    proof: Proof
    cases: tuple[Case, ...]
    options: Options
    listener: Listener
    base: Path

    def open(self, proof_path: Path, out: Path) -> RunFolder:
        """The run folder, made or found, with proof and cases in it."""
        text = proof_path.read_bytes()
        if self.options.resume:
            folder = RunFolder.open(out)
            if folder.proof_path.exists() and folder.proof_path.read_bytes() != text:
                raise ConfigError(
                    f"differs from the proof that was run in {out}",
                    path=proof_path,
                    hint=f"resume with {folder.proof_path}, or start a new run",
                )
        else:
            folder = RunFolder.create(out)
        folder.proof_path.write_bytes(text)
        keep_drill(self.proof, proof_path.parent, folder.path)
        write_cases(self.cases, folder.cases_path)
        return folder

    async def conduct(self, folder: RunFolder) -> None:
        """Stand the routes up, refuse unfair pairs, send stage after stage."""
        logs = folder.log_path("baseline").parent
        async with stand_up(
            self.proof, logs=logs, progress=self.listener.download
        ) as routes:
            routes.refuse_unfair()
            plan = self._plan()
            checks = await self._checked(routes)
            self._note(folder, routes, plan, checks)
            with _deaths_noted(routes, folder):
                await self._stages(plan, routes, folder)
        manifest = folder.read_manifest()
        folder.write_manifest(msgspec.structs.replace(manifest, finished=True))

    async def _checked(self, routes: Routes) -> RouteChecks:
        """Ask what both routes accept; a workload that one refuses is unfair."""
        self.listener.say("asking both routes what they accept")
        checks = await check_routes(
            routes,
            self.cases,
            self.proof.workload.sampling,
            lock_path=self.base / LOCK_NAME,
        )
        unfair = checks.unfair_cases()
        if unfair:
            what, why = next(iter(unfair.items()))
            raise ConfigError(
                f"only one route answers requests of this workload ({what}): {why}",
                key="workload.cases",
                hint="leave these request fields out for both routes, or route such "
                "requests around the candidate and leave their cases out",
            )
        return checks

    async def _stages(self, plan: Plan, routes: Routes, folder: RunFolder) -> None:
        before = await self._tested(plan)
        if await self._send(plan, QUALITY, routes, folder, before) is None:
            return
        if self._has(plan, SPEED) and not self.options.keep_going:
            result = judge(folder.path).gate("correctness")
            if result.status is Status.FAILED:
                self.listener.say(
                    f"quality failed: {result.reason}; speed is not measured "
                    "(--keep-going measures it all the same)"
                )
                return
        await self._send(plan, SPEED, routes, folder, before)

    async def _tested(self, plan: Plan) -> tuple[Threshold, ...]:
        """The client against a mock, at the highest concurrency of the plan."""
        streams = [b.concurrency or 16 for s in plan.stages for b in s.blocks]
        self.listener.say("testing the load client against a mock")
        return await self_test(max(streams))

    async def _send(
        self,
        plan: Plan,
        phases: Sequence[Phase],
        routes: Routes,
        folder: RunFolder,
        before: tuple[Threshold, ...],
    ) -> Conducted | None:
        """Send the stages of some phases; ``None`` when the candidate died."""
        stages = tuple(s for s in plan.stages if s.phase in phases)
        part = replace(plan, stages=stages)
        sending = asyncio.ensure_future(
            conduct(
                part,
                _targets(routes),
                folder,
                progress=self.listener.requests,
                before=before,
            )
        )
        waited: list[asyncio.Future[Any]] = [sending]
        for standing in (routes.baseline, routes.candidate):
            if standing.running is not None:
                waited.append(standing.running.ended)
        try:
            await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
            if sending.done():
                return sending.result()
        finally:
            if not sending.done():
                sending.cancel()
                await asyncio.wait([sending])
        baseline = routes.baseline.running
        if baseline is not None and baseline.ended.done():
            raise baseline.died("baseline")
        self.listener.say("the candidate's engine died; what was measured is judged")
        return None

    def _plan(self) -> Plan:
        arms: tuple[Arm, ...] = ("baseline", "candidate")
        if self.options.has_control:
            arms = (*arms, "control")
        workload = self.proof.workload
        traces = load_traces(workload, self.base)
        return build_plan(self.cases, workload, arms=arms, traces=traces)

    @staticmethod
    def _has(plan: Plan, phases: Sequence[Phase]) -> bool:
        return any(stage.phase in phases for stage in plan.stages)

    def _note(
        self, folder: RunFolder, routes: Routes, plan: Plan, checks: RouteChecks
    ) -> None:
        """Write the manifest; a resumed run must be the same workload."""
        workload = self.proof.workload
        digests = trace_digests(workload, self.base)
        mark = fingerprint(self.cases, workload, trace_digests=digests)
        found = msgspec.structs.replace(routes.found, workload_fingerprint=mark)
        if folder.manifest_path.exists():
            self._check_same(folder.read_manifest(), mark, found.candidate.digest)
            return
        for arm, standing in (
            ("baseline", routes.baseline),
            ("candidate", routes.candidate),
        ):
            _keep_answers(folder, arm, standing)
        folder.write_manifest(
            Manifest(
                run_id=folder.path.name,
                created_wall=datetime.now().astimezone().isoformat(timespec="seconds"),
                versions=versions(),
                proof=msgspec.to_builtins(self.proof),
                fingerprint=mark,
                route_diff=msgspec.to_builtins(found),
                plan={
                    "seed": plan.seed,
                    "arms": list(plan.arms),
                    "stages": [
                        {"phase": s.phase, "level": s.level, "requests": s.planned}
                        for s in plan.stages
                    ],
                },
                engines={
                    "baseline": _engine(routes.baseline),
                    "candidate": _engine(routes.candidate),
                },
                environment=environment(),
                notes={"route_checks": msgspec.to_builtins(checks)},
            )
        )

    @staticmethod
    def _check_same(manifest: Manifest, mark: str, candidate: str) -> None:
        if manifest.fingerprint != mark:
            raise StoredRunError(
                "the workload is not the one this run was begun with "
                f"({str(manifest.fingerprint)[:12]} and {mark[:12]})",
                hint="restore the cases, or start a new run",
            )
        before = ((manifest.route_diff or {}).get("candidate") or {}).get("digest")
        if before is not None and before != candidate:
            raise StoredRunError(
                "the candidate is not the route this run was begun with "
                f"({before[:12]} and {candidate[:12]})",
                hint="bring the same route up again, or start a new run",
            )


def _targets(routes: Routes) -> dict[Arm, Target]:
    return {
        "baseline": _target(routes.baseline),
        "candidate": _target(routes.candidate),
    }


def _target(standing: Standing) -> Target:
    return Target(
        endpoint=standing.endpoint,
        model=standing.model,
        adapter=standing.adapter,
        pid=None if standing.running is None else standing.running.pid,
    )


def _keep_answers(folder: RunFolder, arm: str, standing: Standing) -> None:
    place = folder.probe_path(arm)
    place.mkdir(parents=True, exist_ok=True)
    for path, body in standing.read_back.raw.items():
        name = path.strip("/").replace("/", "_").replace("?", "_") or "root"
        (place / f"{name}.txt").write_text(body, encoding="utf-8")


@contextlib.contextmanager
def _deaths_noted(routes: Routes, folder: RunFolder) -> Iterator[None]:
    """Write into the manifest which launched engine died before it was stopped."""
    try:
        yield
    finally:
        arms = (("baseline", routes.baseline), ("candidate", routes.candidate))
        dead = {
            arm: standing.running.died(arm)
            for arm, standing in arms
            if standing.running is not None and standing.running.ended.done()
        }
        if dead:
            _note_deaths(folder, dead)


def _note_deaths(folder: RunFolder, dead: dict[str, EngineError]) -> None:
    manifest = folder.read_manifest()
    engines = {
        arm: {**facts, "died": dead[arm].log_tail} if arm in dead else facts
        for arm, facts in manifest.engines.items()
    }
    folder.write_manifest(msgspec.structs.replace(manifest, engines=engines))


def _engine(standing: Standing) -> dict[str, object]:
    return {
        "name": standing.read_back.engine,
        "launched": standing.running is not None,
        "capabilities": dict(standing.read_back.capabilities),
        "cannot_tell": list(standing.read_back.cannot_tell),
    }
