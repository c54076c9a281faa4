"""Playing one row of the zoo: a run folder, a judgement, and what it says."""

import shutil
import time
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from zoo import zoo_rows, zoo_workload

from routeproof.jobs.judge import judge
from routeproof.jobs.virtual.run import Baseline, virtual_run

NO_VERDICT = frozenset({"client_saturated"})
BAD = frozenset({"failed"})
OPEN = frozenset({"inconclusive", "not_measured"})


@dataclass(frozen=True)
class Outcome:
    """What the gates said of a row.

    ``failed``: gate and check name of every failed check. ``detected``: the right gate
    failed by a check that is the right reason.
    """

    name: str
    family: str
    decision: str
    headline: str
    failed: tuple[tuple[str, str], ...]
    open: tuple[tuple[str, str], ...]
    reasons: tuple[str, ...]
    detected: bool
    seen: bool
    seconds: float


@lru_cache
def baseline(kind):
    proof, cases = (make() for make in zoo_workload.PROOFS[kind])
    route = zoo_rows.DIALECTS.get(kind, zoo_rows.BASELINE)
    if kind.startswith("sampled"):
        route = zoo_rows.TOY
    return proof, Baseline.play(proof, cases, route)


def play(row, folder: Path) -> Outcome:
    started = time.perf_counter()
    proof, beside = baseline(row.proof)
    proof = zoo_workload.with_speculation(
        proof, row.candidate.speculation, harmless=row.gate is None
    )
    shutil.rmtree(folder, ignore_errors=True)
    run = virtual_run(folder, proof, beside, row.candidate, faults=row.run)
    found = judge(run.path)
    shutil.rmtree(folder, ignore_errors=True)
    failed, unsure, reasons = [], [], []
    for gate in found.gates:
        # Some findings are a flag and no check: no verdict is given then.
        failed += [(gate.gate, f"flag:{f}") for f in gate.flags if f in NO_VERDICT]
        for check in gate.checks:
            if check.status in BAD:
                failed.append((gate.gate, check.name))
                reasons.append(f"{gate.gate}: {check.reason}")
            elif check.status in OPEN:
                unsure.append((gate.gate, check.name))
    told = [*failed, *(unsure if row.may_stay_open else ())]
    right = [f for f in told if is_right(row, f)]
    if row.may_stay_open:
        right = right if found.verdict.decision != "adopt" else []
        named = [g.gate for g in found.gates if g.status in OPEN]
        right += [
            (g, "") for g in named if "acceptance" in row.checks and g == row.gate
        ]
    return Outcome(
        row.name,
        row.family,
        found.verdict.decision,
        found.headline,
        tuple(failed),
        tuple(unsure),
        tuple(reasons),
        bool(right),
        bool(failed),
        time.perf_counter() - started,
    )


def plain(row, found):
    """A row and what became of it, as plain data."""
    right = [f for f in (*found.failed, *found.open) if is_right(row, f)]
    by = f"{right[0][0]}: {right[0][1]}" if found.detected and right else None
    return {
        "name": row.name,
        "family": row.family,
        "reference": row.reference,
        "what": row.what,
        "strength": row.strength,
        "harmless": row.gate is None,
        "decision": str(found.decision),
        "detected": found.detected,
        "by": by,
        "failed": [f"{gate}: {check}" for gate, check in found.failed],
        "seconds": found.seconds,
    }


def is_right(row, found):
    """Whether a check is the right reason: its gate, and how its name begins."""
    gate, check = found
    for start in row.checks:
        wanted, _, name = start.rpartition("/")
        if gate == (wanted or row.gate) and check.startswith(name):
            return True
    return False
