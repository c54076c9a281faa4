"""What the tolerances of a proof need and cost, before anything is sent."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from routeproof.gates.evidence import Agreed
from routeproof.gates.questions import Question, questions
from routeproof.gates.slices import case_facts
from routeproof.jobs.gathering.evidence_of import agreed_of
from routeproof.jobs.planning.costs import (
    RequestCost,
    assumed_cost,
    measured_cost,
    stage_costs,
)
from routeproof.jobs.planning.questions import (
    FLIPS,
    bounds_of,
    pairs_of,
    question_plan,
)
from routeproof.jobs.planning.shapes import EarlyStop, ProofPlan, TolerancePrice
from routeproof.jobs.qualifying.probe_requests import PROBES, TOKENS
from routeproof.jobs.qualifying.run_options import Options, with_options
from routeproof.jobs.qualifying.spot_check import (
    change_class_of,
    is_spot_check,
    spot_checked,
)
from routeproof.proof.file import load_proof
from routeproof.proof.policy import UntilDecidedSpec
from routeproof.proof.proof import Proof
from routeproof.routes.diff import diff
from routeproof.routes.inventory import take_inventory
from routeproof.routes.resolve import resolve
from routeproof.runs.plan import build_plan
from routeproof.stats.until_decided import StoppingRule, simulate
from routeproof.workloads.case import Case
from routeproof.workloads.cases import load_cases
from routeproof.workloads.replay import load_traces

LADDER = (0.01, 0.02, 0.03, 0.05)
"""Tolerances whose price is always shown."""
GRADED_SD = 0.15
"""Standard deviation assumed of a graded score's difference between the arms."""
_ARMS = 3
_PATHS = 200


def plan(
    proof: Proof | Path,
    *,
    base: Path = Path(),
    like: Path | None = None,
    answer_tokens: float | None = None,
    tokens_per_s: float | None = None,
    graded_sd: float = GRADED_SD,
    options: Options | None = None,
) -> ProofPlan:
    """Plan a proof: cases, trials, tokens and minutes per tolerance.

    Args:
        proof: The proof, or its file.
        base: Folder that paths in the proof are relative to; a file's own otherwise.
        like: A run folder to take the cost of a request from.
        answer_tokens: Output tokens of an answer, where no run tells.
        tokens_per_s: Output tokens per second of one stream, where no run tells.
        graded_sd: Standard deviation assumed of graded differences.
        options: Those ``qualify`` would get: stopping early, a soak.

    Raises:
        ConfigError: The proof or the workload is wrong.
        StoredRunError: ``like`` cannot be read.
    """
    if isinstance(proof, Path):
        base, proof = proof.parent, load_proof(proof)
    proof = with_options(proof, options or Options())
    agreed = agreed_of(proof)
    cases, notes = _sent(proof, load_cases(proof.workload, base), agreed)
    cost = None if like is None else measured_cost(like)
    if cost is None and like is not None:
        notes.append(f"{like} does not tell what requests cost")
    cost = cost or assumed_cost(
        cases, answer_tokens=answer_tokens, tokens_per_s=tokens_per_s
    )
    asked = [q for q in questions(agreed, case_facts(cases, {}, {})) if q.is_required]
    traces = load_traces(proof.workload, base)
    stages = stage_costs(build_plan(cases, proof.workload, traces=traces), cost)
    if proof.workload.trials > 1:
        notes.append(
            "trials of one case are averaged: more of them only take away the noise "
            "of sampling, more cases take away both"
        )
    notes.append(
        f"not in these figures: some {PROBES} probes of at most {TOKENS} tokens before "
        "the first stage; `qualify --no-probes` leaves them out"
    )
    return ProofPlan(
        cases=len(cases),
        trials=proof.workload.trials,
        alpha=agreed.policy.alpha,
        power=agreed.policy.power,
        questions=tuple(question_plan(q, cases, agreed, graded_sd) for q in asked),
        prices=_prices(asked, proof, cost),
        stages=stages,
        cost=cost,
        until_decided=_early(asked, len(cases), agreed),
        bounds=tuple(bounds_of(q, cases, agreed) for q in asked if q.tolerance > 0),
        stops_early=agreed.policy.until_decided is not None,
        graded_sd=graded_sd,
        notes=tuple(notes),
    )


def _sent(
    proof: Proof, cases: tuple[Case, ...], agreed: Agreed
) -> tuple[tuple[Case, ...], list[str]]:
    """The cases a run would send, as far as the file tells the class of the change."""
    baseline, candidate = resolve(proof)
    found = diff(
        take_inventory(baseline, None), take_inventory(candidate, None), candidate
    )
    change = change_class_of(found, proof.candidate.changes)
    if not is_spot_check(agreed.policy, change):
        return cases, []
    chosen = spot_checked(cases, agreed, seed=proof.workload.seed)
    if len(chosen) == len(cases):
        return cases, []
    why = f"the declared change is {change}: a spot check of {len(chosen)} of "
    return chosen, [
        f"{why}{len(cases)} cases is sent; `policy: {{plan: full}}` has all"
    ]


def _prices(
    asked: Sequence[Question], proof: Proof, cost: RequestCost
) -> tuple[TolerancePrice, ...]:
    declared = {q.tolerance for q in asked if q.tolerance > 0}
    policy, workload = proof.policy, proof.workload
    at_once = max(workload.load.quality.concurrency, default=1)
    prices = []
    for tolerance in sorted(declared | set(LADDER)):
        for flips in FLIPS:
            cases = pairs_of(flips, tolerance, policy.alpha, policy.power)
            requests = cases * workload.trials * _ARMS
            prices.append(
                TolerancePrice(
                    tolerance=tolerance,
                    flips=flips,
                    cases=cases,
                    requests=requests,
                    tokens=round(requests * (cost.prompt_tokens + cost.output_tokens)),
                    minutes=requests * cost.duration_s / at_once / 60,
                )
            )
    return tuple(prices)


_ROUTES: Mapping[str, tuple[float, float]] = {
    "the same route, no flips": (0.0, 0.0),
    "the same route, 1 % flips": (0.005, 0.005),
    "a loss of 5 points": (0.06, 0.01),
}


def _early(
    asked: Sequence[Question], ceiling: int, agreed: Agreed
) -> tuple[EarlyStop, ...]:
    """The stopping rule on the question over the whole workload, if there is one."""
    whole = [q for q in asked if not q.slice and q.tolerance > 0]
    floor = (agreed.policy.until_decided or UntilDecidedSpec()).floor
    if not whole or agreed.trials > 1 or ceiling < floor:
        return ()
    tolerance = min(q.tolerance for q in whole)
    rule = StoppingRule(
        tolerance=tolerance, alpha=agreed.policy.alpha, floor=floor, ceiling=ceiling
    )
    stops = []
    for route, (losses, gains) in _ROUTES.items():
        seen = simulate(rule, losses=losses, gains=gains, paths=_PATHS, seed=0)
        stops.append(
            EarlyStop(
                route=route,
                tolerance=tolerance,
                floor=floor,
                ceiling=ceiling,
                used_share=float(seen.used.mean()) / ceiling,
                certified_share=float(seen.certified.mean()),
                harmed_share=float(seen.harmed.mean()),
            )
        )
    return tuple(stops)
