"""A change that claimed to lose nothing and was shown to: the rest of the cases.

A spot check asks a sample for equality. Where it finds another route, equality is no
longer the question: the change is judged as lossy, by the quality of all its answers.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

import msgspec

from routeproof.gates.result import GateResult
from routeproof.gates.same_texts import reclassed
from routeproof.proof.policy import PolicySpec
from routeproof.records.manifest import Manifest
from routeproof.records.store import RunFolder
from routeproof.runs.blocks import Plan
from routeproof.runs.plan import build_plan
from routeproof.workloads.case import Case
from routeproof.workloads.cases import write_cases

NOTE = "reclassed"
"""Note of the manifest: why the change is judged as lossy."""

FURTHER = 1_000_000
"""Added to the numbers of blocks and groups, so that no request id occurs twice."""


def judged_as_lossy(policy: PolicySpec, manifest: Manifest) -> bool:
    """Whether equality is shown and no longer asked for.

    So it is once a spot check has found the change out and all cases were sent, and
    for who asks for the full plan.
    """
    return policy.plan == "full" or NOTE in manifest.notes


def is_reclassed(folder: RunFolder) -> bool:
    """Whether a run has been found out already, as one that is resumed may have."""
    return folder.manifest_path.exists() and NOTE in folder.read_manifest().notes


def the_rest(
    plan: Plan,
    folder: RunFolder,
    cases: tuple[Sequence[Case], Sequence[Case]],
    gate: GateResult,
    say: Callable[[str], None],
) -> Plan | None:
    """What is still to be sent after a spot check; ``None`` when nothing is.

    Args:
        plan: Of the spot check.
        folder: Learns that all cases are sent from here on, and why.
        cases: Those of the spot check, and those it left out.
        gate: What the spot check says of the answers.
        say: Is told.
    """
    chosen, left_out = cases
    why = next(iter(reclassed(gate.checks)), None)
    if why is not None:
        say(f"{why}; sending the other {len(left_out)} cases")
        manifest = folder.read_manifest()
        notes = {**manifest.notes, NOTE: why}
        folder.write_manifest(msgspec.structs.replace(manifest, notes=notes))
        write_cases((*chosen, *left_out), folder.cases_path)
    return rest_of(plan, left_out) if is_reclassed(folder) else None


def rest_of(plan: Plan, cases: Sequence[Case]) -> Plan:
    """The quality stage of the cases that a spot check left out."""
    made = build_plan(
        cases, plan.workload, arms=plan.arms, phases=("quality",), seed=plan.seed
    )
    stages = tuple(
        replace(
            stage,
            blocks=tuple(
                replace(
                    block,
                    number=block.number + FURTHER,
                    group=block.group + FURTHER,
                )
                for block in stage.blocks
            ),
        )
        for stage in made.stages
    )
    return replace(made, stages=stages)
