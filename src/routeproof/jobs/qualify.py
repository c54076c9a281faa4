"""The main job: run a proof and judge it."""

import asyncio
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec
import uvloop

from routeproof.errors import ConfigError, StoredRunError
from routeproof.gates.result import Status
from routeproof.jobs.gathering.acceptance_past import keep_reference
from routeproof.jobs.gathering.agreed import check_questions
from routeproof.jobs.gathering.drill_evidence import keep_drill
from routeproof.jobs.gathering.evidence_of import agreed_of
from routeproof.jobs.gathering.full_suite import is_reclassed, the_rest
from routeproof.jobs.gathering.judges import ask_judges
from routeproof.jobs.gathering.reuse import NOTE as REUSE_NOTE
from routeproof.jobs.gathering.reuse import Asking, refuse_other, reuse
from routeproof.jobs.judge import judge
from routeproof.jobs.qualifying.engine_papers import (
    CHECKS_NOTE,
    deaths_noted,
    engine_facts,
    keep_answers,
    note_checks,
)
from routeproof.jobs.qualifying.environment import environment, versions
from routeproof.jobs.qualifying.lossless_probe import probe_routes
from routeproof.jobs.qualifying.route_checks import RouteChecks, check_routes
from routeproof.jobs.qualifying.run_options import (
    Listener,
    Options,
    as_begun,
    opened,
    with_options,
)
from routeproof.jobs.qualifying.spot_check import (
    change_class_of,
    is_spot_check,
    spot_checked,
)
from routeproof.jobs.qualifying.stand_up import Routes, stand_up
from routeproof.jobs.qualifying.targets import targets
from routeproof.jobs.qualifying.until_decided import UntilDecided
from routeproof.proof.file import load_proof
from routeproof.proof.proof import Proof
from routeproof.records.manifest import Manifest, Threshold
from routeproof.records.record import Arm, Phase
from routeproof.records.store import RunFolder
from routeproof.reports.judgement import Judgement
from routeproof.routes.lock import FILE_NAME as LOCK_NAME
from routeproof.runs.blocks import Plan
from routeproof.runs.conduct import Conducted, conduct
from routeproof.runs.expected import expected_streams
from routeproof.runs.plan import build_plan
from routeproof.runs.request import Target
from routeproof.runs.selftest import self_test
from routeproof.workloads.case import Case
from routeproof.workloads.cases import load_cases, write_cases
from routeproof.workloads.drawn import drawn_order
from routeproof.workloads.fingerprint import fingerprint
from routeproof.workloads.replay import load_traces, trace_digests

__all__ = ["Listener", "Options", "qualify"]

QUALITY: tuple[Phase, ...] = ("quality",)
SPEED: tuple[Phase, ...] = ("latency", "sweep", "soak")


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
    options = options or Options()
    proof = load_proof(proof_path, environ=os.environ)
    base = proof_path.parent
    cases = load_cases(proof.workload, base)
    check_questions(proof, cases)
    asked = with_options(proof, options)
    if options.reuse_baseline is not None:
        RunFolder.open(options.reuse_baseline).read_manifest()
    folder = opened(proof_path, out, is_resumed=options.resume)
    asked = as_begun(folder, proof, asked)
    run = _Run(asked, cases, options, listener or Listener(), base)
    run.keep(folder, proof_path)
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
    spot_check_of: int | None = None
    left_out: tuple[Case, ...] = ()

    @property
    def sent(self) -> tuple[Case, ...]:
        """The cases in the order in which they are sent."""
        if self.proof.policy.until_decided is None:
            return self.cases
        return drawn_order(self.cases, self.proof.workload.seed)

    def keep(self, folder: RunFolder, proof_path: Path) -> None:
        """Put proof and cases into the run folder."""
        folder.proof_path.write_bytes(proof_path.read_bytes())
        keep_drill(self.proof, proof_path.parent, folder.path)
        keep_reference(self.proof, proof_path.parent, folder.path)
        write_cases(self.sent, folder.cases_path)

    @property
    def keeps_going(self) -> bool:
        """Whether to measure speed although quality failed."""
        return self.options.keep_going or self.proof.policy.keep_going

    async def conduct(self, folder: RunFolder) -> None:
        """Stand the routes up, refuse unfair pairs, send stage after stage."""
        logs = folder.log_path("baseline").parent
        async with stand_up(
            self.proof, logs=logs, progress=self.listener.download
        ) as routes:
            routes.refuse_unfair()
            await self._spot_checked(routes, folder)._sent(routes, folder)
        manifest = folder.read_manifest()
        folder.write_manifest(msgspec.structs.replace(manifest, finished=True))

    def _spot_checked(self, routes: Routes, folder: RunFolder) -> "_Run":
        """The run with the cases that the class of the change needs."""
        workload = self.proof.workload
        change = change_class_of(routes.found, self.proof.candidate.changes)
        if not is_spot_check(self.proof.policy, change):
            return self
        chosen = spot_checked(self.cases, agreed_of(self.proof), seed=workload.seed)
        if len(chosen) < len(self.cases):
            self.listener.say(
                f"the change is {change}: a spot check of "
                f"{len(chosen)} of {len(self.cases)} cases (`policy: {{plan: full}}` "
                "sends all)"
            )
        left_out = tuple(case for case in self.cases if case not in chosen)
        if not is_reclassed(folder):
            write_cases(chosen, folder.cases_path)
        return replace(
            self, cases=chosen, spot_check_of=len(self.cases), left_out=left_out
        )

    async def _sent(self, routes: Routes, folder: RunFolder) -> None:
        """Ask, note and send everything over standing routes."""
        plan = self._plan()
        asking = Asking(self.proof, plan, routes.found.baseline)
        if self.options.reuse_baseline is not None:
            refuse_other(self.options.reuse_baseline, asking)
        checks = await self._checked(routes)
        self._note(folder, routes, plan, checks)
        self._reuse(folder, asking)
        with deaths_noted(routes, folder):
            if self.options.has_probes:
                self.listener.say("asking both routes the same small questions")
                ended = await probe_routes(routes, folder, checks)
                if ended:
                    note_checks(folder, checks.with_ending(ended))
            await self._stages(plan, routes, folder)

    def _reuse(self, folder: RunFolder, asking: Asking) -> None:
        """Take over the baseline's answers, once."""
        source, manifest = self.options.reuse_baseline, folder.read_manifest()
        if source is None or REUSE_NOTE in manifest.notes:
            return
        if folder.part_paths():
            raise StoredRunError(
                f"{folder.path} was begun without reusing a baseline",
                hint="start a new run to reuse answers",
            )
        taken = reuse(source, folder, asking, now_s=time.time())
        notes = {**manifest.notes, REUSE_NOTE: msgspec.to_builtins(taken)}
        folder.write_manifest(msgspec.structs.replace(manifest, notes=notes))
        self.listener.say(
            f"{taken.requests} baseline answers are taken over from {taken.run_id}"
        )

    async def _checked(self, routes: Routes) -> RouteChecks:
        """Ask what both routes accept; a workload that one refuses is unfair."""
        self.listener.say("asking both routes what they accept")
        checks = await check_routes(
            routes,
            self.cases,
            self.proof.workload.sampling,
            lock_path=None if self.options.is_relocked else self.base / LOCK_NAME,
            has_features=self.options.has_features,
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
        before = await self._tested(plan, targets(routes, folder)["baseline"])
        if await self._send(plan, QUALITY, routes, folder, before) is None:
            return
        await asyncio.to_thread(
            ask_judges, folder, self.proof, self.cases, os.environ, self.listener.say
        )
        if self.left_out:
            gate = judge(folder.path).gate("correctness")
            sample = (self.cases, self.left_out)
            further = the_rest(plan, folder, sample, gate, self.listener.say)
            if further is not None:
                await self._send(further, QUALITY, routes, folder, before)
        if self._has(plan, SPEED) and not self.keeps_going:
            result = judge(folder.path).gate("correctness")
            if result.status is Status.FAILED:
                self.listener.say(
                    f"quality failed: {result.reason}; speed is not measured "
                    "(--keep-going measures it all the same)"
                )
                return
        await self._send(plan, SPEED, routes, folder, before)

    async def _tested(self, plan: Plan, baseline: Target) -> tuple[Threshold, ...]:
        """The client against a mock, with as many streams as the plan will have."""
        expected = await expected_streams(plan, baseline)
        self.listener.say(
            f"testing the load client against a mock: {expected.streams} streams "
            f"({expected.why})"
        )
        return await self_test(expected.streams)

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
        until = None
        if phases == QUALITY and self.proof.policy.until_decided is not None:
            until = UntilDecided(
                part,
                folder,
                agreed_of(self.proof),
                keep_going=self.keeps_going,
                say=self.listener.say,
            )
            await until.look()
        sending = asyncio.ensure_future(
            conduct(
                part,
                targets(routes, folder),
                folder,
                progress=self.listener.requests,
                before=before,
                until=until,
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
        return build_plan(
            self.sent,
            workload,
            arms=arms,
            traces=traces,
            trials_together=self.proof.policy.until_decided is not None,
        )

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
            keep_answers(folder, arm, standing)
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
                    "spot_check_of": self.spot_check_of,
                    "stages": [
                        {"phase": s.phase, "level": s.level, "requests": s.planned}
                        for s in plan.stages
                    ],
                },
                engines={
                    "baseline": engine_facts(routes.baseline),
                    "candidate": engine_facts(routes.candidate),
                },
                environment=environment(),
                notes={CHECKS_NOTE: msgspec.to_builtins(checks)},
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
