"""Taking over the baseline's quality answers of an earlier run; its times never.

A new candidate is often held against a baseline that was asked the same questions
yesterday. Answers of the same route to the same questions, sampled the same way, are
as good as new ones, so they are copied into the new run. A few cases are asked again
all the same (the control of the first blocks): if those answers differ more often than
the earlier run's own control did, the baseline is no longer what it was, and parity
fails.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from routeproof.errors import ConfigError
from routeproof.jobs.gathering.gathered import file_digest, read_proof
from routeproof.proof.proof import Proof
from routeproof.proof.workload import WorkloadSpec
from routeproof.records.manifest import Manifest
from routeproof.records.outcome import SERVED
from routeproof.records.store import RunFolder
from routeproof.records.taken_over import NewName, taken_over
from routeproof.routes.inventory import Inventory
from routeproof.runs.blocks import CONTROL, Plan
from routeproof.workloads.case import Case
from routeproof.workloads.cases import read_cases

NOTE = "reused_baseline"
"""Key under which the manifest's notes tell what was taken over."""
ASKED_AGAIN = 16
"""Cases of which the control is asked again, at least."""
MUST_BE_KNOWN = ("model", "revision", "engine.name", "engine.version")
"""Fields without which nobody can say that a baseline is the same."""

Place = tuple[str, str, str, int]
"""Arm, level, case and trial."""


class Reused(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What was taken over, as it stands in the manifest.

    Attributes:
        run_id, measured: The earlier run and when it began.
        requests: Records taken over, of the baseline and its control.
        records: SHA-256 of the parts they came from.
    """

    run_id: str
    measured: str
    requests: int
    records: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Asking:
    """What the new run is about to send, and to which baseline."""

    proof: Proof
    plan: Plan
    baseline: Inventory


def refuse_other(source: Path, asking: Asking) -> None:
    """Check that the answers of an earlier run would be the answers of today.

    Raises:
        ConfigError: Something differs, named exactly.
        StoredRunError: The earlier run cannot be read.
    """
    earlier = RunFolder.open(source)
    _refuse(source, _differences(earlier, earlier.read_manifest(), asking))


def reuse(source: Path, folder: RunFolder, asking: Asking, *, now_s: float) -> Reused:
    """Copy the quality answers of an unchanged baseline into a new run.

    ``refuse_other`` says beforehand whether they may be copied.

    Args:
        source: The earlier run.
        folder: The new run, without records yet.
        asking: Its plan, proof and baseline.
        now_s: Wall-clock time at which the new run begins; what is taken over lies
            before it on the run's clock.

    Returns:
        What was taken over.

    Raises:
        ConfigError: It holds no answer that is asked for.
        StoredRunError: The earlier run cannot be read.
    """
    earlier = RunFolder.open(source)
    manifest = earlier.read_manifest()
    names = _new_names(earlier, asking.plan)
    _refuse(source, () if names else ("it holds no served quality answer to reuse",))
    taken, digests = 0, []
    for path in earlier.part_paths():
        zero_s = _zero_s(earlier)
        part = taken_over(path, names, shift_s=zero_s - now_s)
        if part.n:
            folder.write_records(part.columns, part.storage)
            digests.append(file_digest(path) or "")
            taken += part.n
    return Reused(
        run_id=manifest.run_id,
        measured=manifest.created_wall,
        requests=taken,
        records=tuple(digests),
    )


def _refuse(source: Path, differences: Sequence[str]) -> None:
    if differences:
        raise ConfigError(
            f"the baseline answers of {source} cannot be reused: "
            + "; ".join(differences[:5]),
            key="--reuse-baseline",
            hint="leave the option out: the baseline is then asked again",
        )


def _differences(
    earlier: RunFolder, manifest: Manifest, asking: Asking
) -> tuple[str, ...]:
    """Why the earlier answers would not be the answers of today; empty if none."""
    proof = read_proof(earlier, manifest)
    if proof is None or manifest.route_diff is None:
        return ("it is no qualification: it has no proof or no routes",)
    before = msgspec.convert(manifest.route_diff["baseline"], Inventory)
    return (
        *_other_workload(proof.workload, asking.proof.workload),
        *_other_cases(read_cases(earlier.cases_path), asking.plan.cases),
        *_other_route(before, asking.baseline),
    )


def _other_workload(before: WorkloadSpec, now: WorkloadSpec) -> list[str]:
    """What of the workload decides a quality answer and differs."""
    pairs = {
        "sampling": (before.sampling, now.sampling),
        "trials": (before.trials, now.trials),
        "seed": (before.seed, now.seed),
        "stream": (before.stream, now.stream),
        "load.quality": (before.load.quality, now.load.quality),
        "load.cache": (before.load.cache, now.load.cache),
    }
    return [
        f"workload.{name} was {_words(old)} and is {_words(new)}"
        for name, (old, new) in pairs.items()
        if old != new
    ]


def _words(value: object) -> str:
    return msgspec.json.encode(value, order="sorted").decode()


def _other_cases(before: Sequence[Case], now: Sequence[Case]) -> list[str]:
    known = {case.id: case for case in before}
    new = [case.id for case in now if case.id not in known]
    gone = set(known) - {case.id for case in now}
    changed = [c.id for c in now if c.id in known and known[c.id] != c]
    found = []
    if changed:
        found.append(f"{len(changed)} cases were changed, such as {changed[0]}")
    if new:
        found.append(f"{len(new)} cases are new, such as {new[0]}")
    if gone:
        found.append(f"{len(gone)} cases are gone, such as {min(gone)}")
    return found


def _other_route(before: Inventory, now: Inventory) -> list[str]:
    if before.digest != now.digest:
        names = sorted({f.name for f in (*before.fields, *now.fields)})
        changed = [n for n in names if before.value(n) != now.value(n)]
        what = changed[0] if changed else "its digest"
        old, new = (each.value(what) or "not known" for each in (before, now))
        return [f"the baseline is another route: {what} was {old} and is {new}"]
    unknown = [name for name in MUST_BE_KNOWN if now.value(name) is None]
    if unknown:
        return [
            f"nobody says what the baseline's {', '.join(unknown)} is, so it cannot be "
            "told to be the same"
        ]
    return []


def _zero_s(earlier: RunFolder) -> float:
    """Wall-clock time of zero on the earlier run's clock."""
    for part in earlier.parts(only=("wall_s", "intended_s")):
        wall, due = part.number("wall_s"), part.number("intended_s")
        return float(wall.values[0] - due.values[0])
    return 0.0


def _new_names(earlier: RunFolder, plan: Plan) -> dict[str, NewName]:
    """Old request ids to the names the same requests have in the new plan."""
    wanted = _places(plan)
    names: dict[str, NewName] = {}
    taken: set[Place] = set()
    columns = ("request_id", "arm", "phase", "level", "case_id", "trial", "outcome")
    for part in earlier.parts(only=columns):
        keep = part.is_in("phase", "quality") & part.is_in("outcome", SERVED)
        some = part.where(keep)
        keys = zip(
            some.text("arm").tolist(),
            some.text("level").tolist(),
            some.text("case_id").tolist(),
            some.number("trial").values.astype(int).tolist(),
            strict=True,
        )
        for old, place in zip(some.text("request_id").tolist(), keys, strict=True):
            if place in wanted and place not in taken:
                names[old] = wanted[place]
                taken.add(place)
    return names


def _places(plan: Plan) -> Mapping[Place, NewName]:
    """Where the new plan asks the baseline; the first controls are asked again."""
    found: dict[Place, NewName] = {}
    again: set[str] = set()
    for stage in plan.stages:
        for block in stage.blocks:
            if block.phase != "quality" or block.arm == "candidate":
                continue
            is_again = block.arm == CONTROL and len(again) < ASKED_AGAIN
            for planned in block.requests():
                case = plan.cases[planned.case].id
                if is_again:
                    again.add(case)
                    continue
                place = (block.arm, block.level, case, planned.trial)
                found[place] = NewName(planned.request_id, block.number)
    return found
