"""How many requests `--until-decided` spends, and how often it is wrong.

    python benchmarks/until_decided.py                                # print
    python benchmarks/until_decided.py --write docs/until-decided.md  # into the page

First table: routes of the zoo, played once each over all of its cases, then stopped in
many random orders by the code that stops a real run. Second table: truths at the edge,
where each run draws its own cases.
"""

import argparse
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from zoo import zoo_rows, zoo_workload

from routeproof.gates.in_order import Order
from routeproof.gates.measure_quality import Answers, quality_rows, standings
from routeproof.gates.slices import case_facts
from routeproof.jobs.gathering.evidence_of import agreed_of
from routeproof.jobs.gathering.gathered import scores_of
from routeproof.jobs.planning.questions import pairs_of
from routeproof.jobs.virtual.run import Baseline, virtual_run
from routeproof.metrics.requests import gather
from routeproof.metrics.score_table import score_table
from routeproof.proof.policy import QualityGateSpec, UntilDecidedSpec
from routeproof.proof.workload import ArrivalSpec, LoadSpec
from routeproof.records.store import RunFolder
from routeproof.runs.plan import build_plan
from routeproof.simulator.route import Quality
from routeproof.stats.until_decided import StoppingRule, stop_paths
from routeproof.workloads.drawn import drawn_order

ALPHA = 0.05
TOLERANCE = 0.03
ARMS = 3
COLUMNS = ("arm", "phase", "level", "case_id")
SPEC = UntilDecidedSpec()
SCRIPTED = 0.67
"""Share of the zoo's cases whose answer a route's accuracy decides."""


@dataclass(frozen=True)
class Row:
    """One line of the first table; shares over the random orders."""

    route: str
    cases: float
    share: float
    certified: float
    harmed: float
    loss: float
    fixed: str


def routes() -> Iterator[tuple[str, object, str]]:
    """Routes of the zoo, and two that lose an exact share of the cases."""
    known = {row.name: row.candidate for row in zoo_rows.HARMLESS}
    for name, what in (
        ("same_route", "the same route"),
        ("exact_chain", "exact speculation"),
        ("near_ties_some", "25 % near ties, as right"),
        ("flips_both_ways", "2 % of the verdicts drawn anew"),
        ("better_answers", "three points better"),
    ):
        yield name, known[name], what
    base = known["same_route"]
    for points in (5, 10):
        quality = Quality(default_accuracy=0.93 - points / 100 / SCRIPTED)
        lossy = msgspec.structs.replace(base, quality=quality)
        yield f"loses_{points}_points", lossy, f"a loss of {points} points"
    for name in ("quantization_noise_strong", "schema_broken"):
        yield name, zoo_rows.fault_row(name).candidate, "a fault of the zoo"


def played(orders: int) -> Iterator[Row]:
    """Play every route once, then stop it in many orders."""
    proof, cases = zoo_workload.answers_proof(), zoo_workload.answer_cases()
    load = LoadSpec(quality=ArrivalSpec(concurrency=(8,)), latency=None, block_size=8)
    workload = msgspec.structs.replace(proof.workload, load=load, classes_required={})
    asked = (QualityGateSpec(metric="headline", tolerance=TOLERANCE),)
    policy = msgspec.structs.replace(proof.policy, until_decided=SPEC)
    proof = msgspec.structs.replace(
        proof, workload=workload, quality=asked, policy=policy
    )
    beside = Baseline.play(proof, cases, zoo_rows.BASELINE)
    with tempfile.TemporaryDirectory() as scratch:
        for name, route, what in routes():
            one = zoo_workload.with_speculation(proof, route.speculation)
            run = virtual_run(Path(scratch) / name, one, beside, route)
            yield _stopped(run, proof, cases, f"{what} (`{name}`)", orders)


def _stopped(run: RunFolder, proof, cases, what: str, orders: int) -> Row:
    agreed = agreed_of(proof)
    requests = gather(run.parts(only=COLUMNS))
    table, facts = score_table(scores_of(run, cases)), case_facts(cases, {}, {})
    used, decisions = [], []
    for seed in range(orders):
        drawn = drawn_order(cases, seed)
        order = Order.of(SPEC, drawn, requests, trials=1)
        answers = Answers(
            table=table, requests=requests, facts=facts, agreed=agreed, order=order
        )
        rows = [row for each in standings(answers) for row in each.rows]
        decision = {row.answer.decision for row in rows}
        after = [row.settled_after or len(cases) for row in rows]
        harmed = [
            n
            for n, row in zip(after, rows, strict=True)
            if row.answer.decision == "harmed"
        ]
        need = min(harmed) if harmed else max(after)
        used.append(_round_up(need, proof, drawn))
        decisions.append(
            "harmed" if harmed else "certified" if decision == {"certified"} else ""
        )
    fixed = Answers(table=table, requests=requests, facts=facts, agreed=agreed)
    answered = next(r.answer for r in quality_rows(fixed) if r.question == "headline")
    mean = float(np.mean(used))
    return Row(
        route=what,
        cases=mean,
        share=mean / len(cases),
        certified=decisions.count("certified") / orders,
        harmed=decisions.count("harmed") / orders,
        loss=-answered.estimate,
        fixed=_fixed(fixed),
    )


def _fixed(answers: Answers) -> str:
    """What the fixed plan says of all cases."""
    rows = [r for r in quality_rows(answers) if r.is_required and r.answer]
    found = {row.answer.decision for row in rows}
    return "harmed" if "harmed" in found else "/".join(sorted(found))


def _round_up(cases: int, proof, drawn) -> int:
    """Cases sent when a question is settled after so many: whole rounds only."""
    from routeproof.jobs.qualifying.until_decided import _rounds

    plan = build_plan(drawn, proof.workload, phases=("quality",), trials_together=True)
    due = _rounds(plan, SPEC.floor)
    sent = 0
    for block in plan.stages[0].blocks:
        if block.arm == "candidate" and block.phase == "quality":
            sent += block.count or 0
        if block.number in due and sent >= cases:
            return sent
    return sent


def at_the_edge(paths: int) -> Iterator[tuple[str, str, float, float, float]]:
    """Truth, promise, measured rate, its error, share of the ceiling used."""
    rng = np.random.default_rng(20261201)
    rule = StoppingRule(tolerance=TOLERANCE, alpha=ALPHA, floor=SPEC.floor, ceiling=500)
    for what, losses, gains, wrong in (
        ("loses exactly the tolerance, no gains", 0.03, 0.0, "certified"),
        ("loses exactly the tolerance, 2 % gains", 0.05, 0.02, "certified"),
        ("loses exactly the tolerance, 5 % gains", 0.08, 0.05, "certified"),
        ("no loss, 2 % flips", 0.01, 0.01, "harmed"),
        ("no loss, 10 % flips", 0.05, 0.05, "harmed"),
    ):
        u = rng.random((paths, rule.ceiling))
        x = np.where(u < losses, -1.0, np.where(u < losses + gains, 1.0, 0.0))
        seen = stop_paths(x, rule)
        rate = float(getattr(seen, wrong).mean())
        error = (rate * (1 - rate) / paths) ** 0.5
        used = float(seen.used.mean()) / rule.ceiling
        yield what, f"{wrong} at most 5 %", rate, error, used


def table(orders: int, paths: int) -> Iterator[str]:
    """Both tables as Markdown."""
    n = len(zoo_workload.answer_cases())
    planned = {flips: pairs_of(flips, TOLERANCE, ALPHA, 0.8) for flips in (0.02, 0.05)}
    yield (
        f"Tolerance 3 points, alpha 5 %, {n} cases as ceiling ({planned[0.02]} are "
        f"planned for 2 % flips, {planned[0.05]} for 5 %), floor {SPEC.floor}; "
        f"{orders} random orders of each route."
    )
    yield ""
    yield (
        "| route | loss over all cases | cases sent | share of all cases | "
        "certified | harmed | all cases say |"
    )
    yield "|---|---:|---:|---:|---:|---:|---|"
    for row in played(orders):
        yield (
            f"| {row.route} | {row.loss * 100 + 0.0:+.1f} points | {row.cases:.0f} "
            f"| {row.share:.0%} | {row.certified:.0%} | {row.harmed:.0%} "
            f"| {row.fixed} |"
        )
    yield ""
    yield "| truth simulated | promise | measured | cases used |"
    yield "|---|---|---:|---:|"
    for what, promise, rate, error, used in at_the_edge(paths):
        yield f"| {what} | {promise} | {rate:.1%} ± {error:.1%} | {used:.0%} |"


def main() -> None:
    """Print the tables, or write them between the marks of a page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--orders", type=int, default=100)
    parser.add_argument("--paths", type=int, default=4000)
    parser.add_argument("--write", type=Path)
    given = parser.parse_args()
    lines = []
    for line in table(given.orders, given.paths):
        print(line, flush=True)
        lines.append(line)
    if given.write:
        begin, end = "<!-- until decided: start -->", "<!-- until decided: end -->"
        page = given.write.read_text()
        head, _, rest = page.partition(begin)
        _, _, tail = rest.partition(end)
        body = "\n".join(lines)
        given.write.write_text(f"{head}{begin}\n{body}\n{end}{tail}")


if __name__ == "__main__":
    main()
