"""A run against an earlier one of the same proof: has the candidate drifted?"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from routeproof.gates.evidence import Agreed
from routeproof.gates.facts import QualityRow
from routeproof.gates.measure_quality import Answers, quality_phase, quality_rows
from routeproof.jobs.comparing.accepted import acceptance_drift
from routeproof.jobs.comparing.merged import (
    merged_requests,
    merged_scores,
    same_scorers,
)
from routeproof.jobs.comparing.speed import gains, numbers
from routeproof.jobs.gathering.evidence_of import facts_of
from routeproof.jobs.gathering.gathered import Gathered, gather_run
from routeproof.jobs.report import load_judgement
from routeproof.metrics.pairs import pair_arms
from routeproof.metrics.requests import Requests
from routeproof.metrics.score_table import score_table
from routeproof.records.columns import Bools, Floats
from routeproof.reports.comparison import (
    AcceptanceMoved,
    Comparison,
    FieldMoved,
    GainMoved,
    Side,
    Status,
)
from routeproof.reports.judgement import Judgement
from routeproof.stats.clusters import case_differences
from routeproof.stats.multiplicity import holm
from routeproof.stats.paired_graded import graded_non_inferiority

ACCEPTANCE_TOLERANCE = 0.05
"""Loss of acceptance that is let pass: five points cost a few percent of speed."""


def compare(then: Path, now: Path) -> Comparison:
    """Compare the candidate of a run with the candidate of an earlier run.

    Answers are paired by case and trial, so that a drift of a point can be seen where
    two verdicts are the same. Speed is set beside the baseline's own: the runs lie
    apart in time.

    Args:
        then: Folder of the earlier run; both must have been judged.
        now: Folder of the later run.

    Raises:
        StoredRunError: A run cannot be read or has not been judged.
    """
    judged = load_judgement(then), load_judgement(now)
    runs = gather_run(then), gather_run(now)
    problems = _problems(runs, judged)
    is_same_work = judged[0].provenance.workload_fingerprint == (
        judged[1].provenance.workload_fingerprint
    )
    agreed = judged[1].evidence.agreed
    quality = _drift(runs, agreed, "candidate") if is_same_work else ()
    acceptance = tuple(_acceptance(runs, agreed)) if is_same_work else ()
    drifts = acceptance_drift(*runs) if is_same_work else ()
    speed = tuple(gains(runs, agreed)) if is_same_work else ()
    worse = [
        *_worse(quality, acceptance, speed, agreed),
        *(
            f"{each.metric.replace('_', ' ')}, {each.where}: fell by "
            f"{-each.change:.1%} since then"
            for each in drifts
            if each.fell
        ),
    ]
    status, reasons = _result(quality, worse, is_same_work)
    return Comparison(
        then=_side(judged[0]),
        now=_side(judged[1]),
        status=status,
        reasons=reasons,
        problems=problems,
        routes=tuple(_route_changes(*judged)),
        quality=quality,
        control=_drift(runs, agreed, "baseline") if is_same_work else (),
        acceptance=acceptance,
        drifts=drifts,
        speed=speed,
        numbers=tuple(numbers(*judged)),
    )


def _side(judgement: Judgement) -> Side:
    run = judgement.provenance
    return Side(
        run_id=run.run_id,
        started_at=run.started_at,
        decision=judgement.verdict.decision.value,
        candidate_digest=run.candidate_digest,
    )


def _problems(
    runs: tuple[Gathered, Gathered], judged: tuple[Judgement, Judgement]
) -> tuple[str, ...]:
    then, now = (judgement.provenance for judgement in judged)
    found = []
    if then.workload_fingerprint != now.workload_fingerprint:
        found.append(
            "the workloads differ "
            f"({str(then.workload_fingerprint)[:12]} and "
            f"{str(now.workload_fingerprint)[:12]}): answers cannot be paired"
        )
    if then.measurement_version != now.measurement_version:
        found.append(
            f"measured by versions {then.measurement_version} and "
            f"{now.measurement_version}: judge the earlier run again"
        )
    if then.baseline_digest != now.baseline_digest:
        found.append("the baseline is not the route it was")
    changed = same_scorers(*runs)
    if changed:
        found.append(f"scored by other versions: {', '.join(changed)}")
    return tuple(found)


def _route_changes(then: Judgement, now: Judgement) -> Iterator[FieldMoved]:
    if then.evidence.routes is None or now.evidence.routes is None:
        return
    sides = [
        {field.name: field.value for field in routes.candidate.fields}
        for routes in (then.evidence.routes, now.evidence.routes)
    ]
    for name in sorted(sides[0].keys() | sides[1].keys()):
        before, after = sides[0].get(name), sides[1].get(name)
        if before != after:
            yield FieldMoved(field=name, then=before, now=after)


def _drift(
    runs: tuple[Gathered, Gathered], agreed: Agreed, arm: str
) -> tuple[QualityRow, ...]:
    """One arm now against the same arm then, by every question of the proof."""
    then, now = runs
    if then.scores is None or now.scores is None:
        return ()
    answers = Answers(
        table=score_table(merged_scores(then.scores, now.scores, arm=arm)),
        requests=merged_requests(then.requests, now.requests, arm=arm),
        facts=facts_of(now),
        agreed=agreed,
        seed=now.proof.workload.seed if now.proof else 0,
    )
    return quality_rows(answers)


def _acceptance(
    runs: tuple[Gathered, Gathered], agreed: Agreed
) -> Iterator[AcceptanceMoved]:
    both = merged_requests(runs[0].requests, runs[1].requests, arm="candidate")
    pairs = pair_arms(both, phase=quality_phase(both), other="candidate")
    rate, known = _rates(both)
    if not pairs.n or not known[pairs.left].any() or not known[pairs.right].any():
        return
    case = both.label("case_id")
    classes = {each.id: each.class_ for each in runs[1].cases}
    of_case = [classes.get(name, "") for name in case.names]
    kinds = np.array([of_case[code] for code in case.codes[pairs.left]])
    everything = np.ones(pairs.n, dtype=np.bool_)
    groups = [("all", everything), *((k, kinds == k) for k in sorted(set(kinds)) if k)]
    for name, keep in groups:
        left, right = pairs.left[keep], pairs.right[keep]
        usable = known[left] & known[right]
        left, right = left[usable], right[usable]
        if left.size:
            yield _moved(name, case.codes[left], rate[left], rate[right], agreed)


def _rates(requests: Requests) -> tuple[Floats, Bools]:
    """Accepted / drafted tokens of each request, where anything was drafted."""
    drafted, accepted = requests.number("drafted"), requests.number("accepted")
    known = drafted.known & accepted.known & (drafted.values > 0)
    rate = np.divide(
        accepted.values, drafted.values, out=np.zeros(requests.n), where=known
    )
    return np.clip(rate, 0.0, 1.0), known


def _moved(
    name: str, case: Floats, then: Floats, now: Floats, agreed: Agreed
) -> AcceptanceMoved:
    everywhere = np.ones(case.size, dtype=np.bool_)
    differences = case_differences(
        case=case,
        baseline=then,
        candidate=now,
        baseline_known=everywhere,
        candidate_known=everywhere,
    )
    found = graded_non_inferiority(
        differences, tolerance=ACCEPTANCE_TOLERANCE, alpha=agreed.policy.alpha
    )
    return AcceptanceMoved(
        where=str(name),
        requests=int(case.size),
        then=float(then.mean()),
        now=float(now.mean()),
        answer=found.mean,
    )


def _worse(
    quality: tuple[QualityRow, ...],
    acceptance: tuple[AcceptanceMoved, ...],
    speed: tuple[GainMoved, ...],
    agreed: Agreed,
) -> list[str]:
    """What is shown to be worse than it was, one sentence each."""
    found = [
        f"{row.question}: the candidate is worse than it was"
        for row in quality
        if row.is_required and row.answer is not None
        if row.answer.decision == "harmed"
    ]
    found += [
        f"acceptance, {where}: lower than it was"
        for where in _lower_acceptance(acceptance, agreed.policy.alpha)
    ]
    slower = agreed.performance.worse_tolerance_ratio
    found += [
        f"{each.metric}, {each.where}: {each.ratio:.2f} times as long beside the "
        "baseline as it was"
        for each in speed
        if each.interval is not None and each.ratio is not None
        if each.interval.low is not None and each.interval.low > slower
    ]
    return found


def _lower_acceptance(
    acceptance: tuple[AcceptanceMoved, ...], alpha: float
) -> list[str]:
    """Where acceptance fell; classes only after Holm over all of them."""
    answers = {each.where: each.answer for each in acceptance if each.answer}
    overall = answers.pop("all", None)
    lower = ["all"] if overall is not None and overall.decision == "harmed" else []
    known = [
        1.0 if a.harm_p_value is None else a.harm_p_value for a in answers.values()
    ]
    corrected = holm(known)
    return lower + [
        where
        for (where, answer), p in zip(answers.items(), corrected, strict=True)
        if answer.decision == "harmed" and p <= alpha
    ]


def _result(
    quality: tuple[QualityRow, ...], worse: list[str], is_same_work: bool
) -> tuple[Status, tuple[str, ...]]:
    if not is_same_work:
        return "not_comparable", ("run both on the same workload",)
    if worse:
        return "worse", tuple(worse)
    answers = [row.answer for row in quality if row.is_required]
    held = answers and all(a is not None and a.decision == "certified" for a in answers)
    return ("held" if held else "open"), ()
