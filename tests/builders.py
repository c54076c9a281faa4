"""Run folders with good defaults: real files, written by the real store.

A run is described by how each arm behaves; everything else (pairs, blocks, times) is
laid out as the planner does it: blocks of a few cases, the arms in turns.
"""

from dataclasses import dataclass, field, replace

import msgspec
import numpy as np
from record_cases import a_manifest, a_record

from routeproof.proof.policy import (
    PerformanceSpec,
    PolicySpec,
    QualityGateSpec,
    RollbackSpec,
)
from routeproof.proof.proof import Proof
from routeproof.proof.route import (
    EngineSpec,
    LaunchSpec,
    RouteSpec,
    SpeculationSpec,
)
from routeproof.proof.workload import ArrivalSpec, LoadSpec, WorkloadSpec
from routeproof.records.manifest import ClientHealth, Threshold
from routeproof.records.store import RunFolder
from routeproof.routes.inventory import Change, Field, Inventory, RouteDiff
from routeproof.workloads.case import Case
from routeproof.workloads.cases import write_cases

CLASSES = ("factual_qa", "arithmetic", "copy_edit")
SENTENCE = "The answer to this question is the number {}."


def a_case(number, **changes):
    """A case whose right answer is its own number."""
    given = {
        "id": f"case-{number:05d}",
        "class_": CLASSES[number % len(CLASSES)],
        "messages": ({"role": "user", "content": f"Which number follows {number}?"},),
        "reference": str(number),
        "scorers": ("contains",),
        **changes,
    }
    return Case(**given)


@dataclass(frozen=True)
class Behaviour:
    """How one arm answers.

    Attributes:
        wrong: Numbers of the cases it gets wrong.
        speed: Its times are divided by this.
        text: From the case's number to the whole text; overrides right and wrong.
        outcome: From the case's number to how the request ends.
        tokens: Output tokens of an answer.
        jitter: Spread of the times, as a share.
        failing_phases: Phases in which ``outcome`` applies; all when empty.
        changes: Further record fields, the same for every request.
    """

    wrong: frozenset = frozenset()
    speed: float = 1.0
    text: object = None
    outcome: object = None
    tokens: int = 40
    jitter: float = 0.05
    failing_phases: tuple = ()
    changes: dict = field(default_factory=dict)

    def answer(self, number, phase):
        """Fields of the record of one request."""
        applies = not self.failing_phases or phase in self.failing_phases
        outcome = self.outcome(number) if self.outcome and applies else "completed"
        if outcome not in ("completed", "truncated", "empty"):
            return {
                "outcome": outcome,
                "text": None,
                "chunk_s": (),
                "http_status": 200 if outcome.startswith("stream") else None,
                "error": "engine is dead",
            }
        if outcome == "empty":
            return {"outcome": "empty", "text": "", "chunk_s": ()}
        if self.text is not None:
            text = self.text(number)
        else:
            text = SENTENCE.format("unknown" if number in self.wrong else number)
        reason = "length" if outcome == "truncated" else "stop"
        return {"outcome": outcome, "text": text, "finish_reason": reason}


SAME = Behaviour()


def a_proof(**changes):
    """A proof of a lossy change with a drilled way back and a modest gain asked."""
    base = RouteSpec(
        model="tiny",
        revision="5b2c1d",
        engine=EngineSpec(name="vllm", version="0.32.0"),
        weights="bf16",
        kv_cache="bf16",
        launch=LaunchSpec(command=("serve",)),
    )
    given = {
        "baseline": base,
        "candidate": msgspec.structs.replace(
            base, kv_cache="fp8_e4m3", changes=("kv_cache",)
        ),
        "workload": WorkloadSpec(
            load=LoadSpec(latency=ArrivalSpec(concurrency=(1,)), block_size=8)
        ),
        "quality": (QualityGateSpec(metric="contains", tolerance=0.03),),
        "performance": PerformanceSpec(),
        "policy": PolicySpec(),
        "rollback": RollbackSpec(drilled="2026-11-29 in 3.1 s"),
        **changes,
    }
    return Proof(**given)


def an_inventory(**values):
    """Every field read back, so that nothing caps the verdict."""
    known = {
        "model": "tiny",
        "revision": "5b2c1d",
        "engine.name": "vllm",
        "engine.version": "0.32.0",
        "weights": "bf16",
        "kv_cache": "bf16",
        "hardware.device": "cpu",
        **values,
    }
    fields = tuple(
        Field(name=name, value=value, known="read_back", read_back=value)
        for name, value in sorted(known.items())
    )
    return Inventory(fields=fields, digest="d" * 64)


def a_route_diff(**changes):
    """A declared change of the KV cache."""
    given = {
        "baseline": an_inventory(),
        "candidate": an_inventory(kv_cache="fp8_e4m3"),
        "changes": (
            Change(
                field="kv_cache",
                baseline="bf16",
                candidate="fp8_e4m3",
                change_class="lossy",
                intended=True,
                why="rounds keys and values",
            ),
        ),
        "change_class": "lossy",
        "is_speculative": False,
        **changes,
    }
    return RouteDiff(**given)


def a_speculative_diff(change_class="lossless"):
    """A declared draft-free speculation."""
    return a_route_diff(
        candidate=an_inventory(**{"speculation.method": "ngram"}),
        changes=(
            Change(
                field="speculation.method",
                baseline="none",
                candidate="ngram",
                change_class=change_class,
                intended=True,
                why="drafts are verified",
            ),
        ),
        change_class=change_class,
        is_speculative=True,
    )


SPECULATIVE = SpeculationSpec(method="ngram", draft_tokens=4)


def healthy(**changes):
    """A client that kept up."""
    given = {
        "valid": True,
        "checks": (Threshold(name="loop_lag_p99_s", value=0.001, limit=0.01, ok=True),),
        **changes,
    }
    return ClientHealth(**given)


@dataclass(frozen=True)
class Plan:
    """What is sent: (phase, level, passes over the cases), arms, cases, trials."""

    cases: tuple = tuple(a_case(i) for i in range(160))
    stages: tuple = (("quality", "c1", 1), ("latency", "c1", 1))
    arms: tuple = ("baseline", "candidate", "control")
    trials: int = 1
    block_size: int = 8
    drop: frozenset = frozenset()


def a_run(
    path,
    *,
    candidate=SAME,
    baseline=SAME,
    plan=None,
    proof=None,
    route_diff=None,
    health=None,
    seed=1,
):
    """Write a run folder and return its path.

    ``Plan.drop`` holds (arm, phase, case number) of requests that never happened.
    """
    plan, proof = plan or Plan(), proof or a_proof()
    folder = RunFolder.create(path)
    arms = {"baseline": baseline, "control": baseline, "candidate": candidate}
    folder.append(_records(plan, {arm: arms[arm] for arm in plan.arms}, seed))
    folder.flush()
    write_cases(plan.cases, folder.cases_path)
    folder.write_manifest(
        a_manifest(
            proof=msgspec.to_builtins(proof),
            fingerprint="f" * 64,
            route_diff=msgspec.to_builtins(route_diff or a_route_diff()),
            health=health or healthy(),
            finished=True,
        )
    )
    return path


def _records(plan, arms, seed):
    rng = np.random.default_rng(seed)
    clock, block = 0.0, 0
    for phase, level, passes in plan.stages:
        streams = max(1, int(level[1:])) if level.startswith("c") else 1
        for turn in range(passes * plan.trials):
            groups = range(0, len(plan.cases), plan.block_size)
            for group in groups:
                chosen = range(group, min(group + plan.block_size, len(plan.cases)))
                order = (
                    list(arms)
                    if (group // plan.block_size) % 2 == 0
                    else list(arms)[::-1]
                )
                drift = 1 + 0.1 * rng.standard_normal() ** 2
                for arm in order:
                    block += 1
                    free = [clock] * streams
                    for slot, number in enumerate(chosen):
                        if (arm, phase, number) in plan.drop:
                            continue
                        at = free[slot % streams]
                        record, end = _record(
                            plan.cases[number],
                            number,
                            arms[arm],
                            at,
                            drift,
                            rng,
                            {
                                "arm": arm,
                                "phase": phase,
                                "level": level,
                                "block": block,
                                "trial": turn,
                            },
                        )
                        free[slot % streams] = end
                        yield record
                    clock = max(free) + 0.01


def _record(case, number, behaviour, at, drift, rng, key):
    noise = 1 + behaviour.jitter * abs(rng.standard_normal())
    unit = drift * noise / behaviour.speed
    fields = behaviour.answer(number, key["phase"])
    first, gap = at + 0.1 * unit, 0.01 * unit
    count = behaviour.tokens
    end = first + gap * (count - 1) + 0.001
    chunks = tuple(first + gap * i for i in range(count))
    given = {
        "request_id": "/".join(str(v) for v in (*key.values(), case.id)),
        "case_id": case.id,
        "intended_s": at,
        "dispatched_s": at,
        "sent_s": at,
        "first_byte_s": at + 0.05 * unit,
        "end_s": end,
        "chunk_s": chunks,
        "first_visible_s": first,
        "http_status": 200,
        "finish_reason": "stop",
        "prompt_tokens": 20 + number % 7,
        "output_tokens": count,
        **key,
        **fields,
        **behaviour.changes,
    }
    if not given["chunk_s"]:
        given |= {"first_visible_s": None, "output_tokens": None}
    return a_record(**given), end


def with_(thing, **changes):
    """A copy with some fields changed, of a struct or a dataclass."""
    if isinstance(thing, msgspec.Struct):
        return msgspec.structs.replace(thing, **changes)
    return replace(thing, **changes)
