"""Answers of a gathered run compared: the part of the evidence the veto rests on."""

from collections.abc import Mapping
from typing import Literal

import msgspec

from routeproof.gates.equality import NEAR_TIE_NATS, near_tie_of
from routeproof.gates.evidence import Agreed, Quality
from routeproof.gates.facts import QualityRow, Row
from routeproof.gates.in_order import Order
from routeproof.gates.lengths import length_rows
from routeproof.gates.measure_quality import (
    UNDER_LOAD,
    Answers,
    confusion,
    headline_pairs,
    quality_phase,
    quality_rows,
)
from routeproof.gates.outcomes import guard_rows, outcome_counts, outcome_rows
from routeproof.gates.probed import probe_rows, sibling_row
from routeproof.gates.slices import CaseFacts
from routeproof.jobs.gathering.answer_texts import AnswerText, answer_texts
from routeproof.jobs.gathering.flips import (
    MOST_FLIPS_UNDER_LOAD,
    At,
    Differing,
    differing,
    equality,
    flip_keys,
    flip_rows,
    flips,
    text_pairs,
)
from routeproof.jobs.gathering.full_suite import judged_as_lossy
from routeproof.jobs.gathering.gathered import Gathered
from routeproof.jobs.gathering.repeats import repeat_rows
from routeproof.jobs.gathering.sampled import Trials, sampled_rows, sampled_trials
from routeproof.jobs.gathering.token_places import sampler_of, token_row
from routeproof.metrics.score_table import ScoreTable
from routeproof.proof.workload import WorkloadSpec
from routeproof.routes.inventory import RouteDiff


def quality_of(
    run: Gathered,
    table: ScoreTable | None,
    about: tuple[Agreed, CaseFacts, RouteDiff | None],
) -> Quality:
    """Questions, flips, guard, equality and distributions of a run.

    Args:
        run: In memory.
        table: Its scores; ``None`` without any.
        about: What was agreed, the slices of the cases, the routes.
    """
    agreed, facts, routes = about
    is_lossless = routes is not None and routes.change_class == "lossless"
    is_lossless = is_lossless and not judged_as_lossy(agreed.policy, run.manifest)
    requests = run.requests
    phase = quality_phase(requests)
    alpha = agreed.policy.alpha
    greedy = _greedy(run, phase, agreed)
    common = Quality(
        rows=(
            *outcome_rows(requests, phase, alpha),
            *_probe_rows(run, alpha, is_lossless=is_lossless),
        )
        if table is None
        else (),
        lengths=length_rows(requests, phase),
        outcomes=outcome_counts(requests),
        guard=guard_rows(requests, phase, alpha),
        repeats=() if run.proof is None else repeat_rows(requests, run.proof.workload),
    )
    keys = [key for each in greedy for pair in each.keys for key in pair]
    trials = _trials(run, phase, agreed)
    keys += [] if trials is None else trials.every_key()
    if table is None:
        texts = answer_texts(run.folder, keys)
        return _with_texts(run, common, (greedy, trials), texts, alpha)
    seed = run.proof.workload.seed if run.proof else 0
    answers = Answers(
        table=table,
        requests=requests,
        facts=facts,
        agreed=agreed,
        seed=seed,
        order=order_of(run, agreed),
    )
    changed = flip_rows(headline_pairs(answers))
    loaded = flip_rows(headline_pairs(answers, UNDER_LOAD), most=MOST_FLIPS_UNDER_LOAD)
    for each in (changed, loaded):
        keys += flip_keys(table, each)
    texts = answer_texts(run.folder, keys)
    found = _with_texts(run, common, (greedy, trials), texts, alpha)
    # Rows of the table beyond the scores are pass rates, which have no text.
    traces = () if run.scores is None else run.scores.trace.tolist()
    return msgspec.structs.replace(
        found,
        rows=(
            *quality_rows(answers),
            *_probe_rows(run, alpha, is_lossless=is_lossless),
        ),
        flips=(
            *flips(table, changed, texts, run.cases, traces),
            *flips(table, loaded, texts, run.cases, traces),
        ),
        flips_total=changed.total,
        confusion=confusion(answers),
        judges=run.judges,
    )


def order_of(run: Gathered, agreed: Agreed) -> Order | None:
    """The order of the draw, in a run that stops as soon as it is decided."""
    spec = agreed.policy.until_decided
    if spec is None or quality_phase(run.requests) != "quality":
        return None
    return Order.of(spec, run.cases, run.requests, trials=agreed.trials)


def _probe_rows(
    run: Gathered, alpha: float, *, is_lossless: bool
) -> tuple[QualityRow, ...]:
    if run.probed is None:
        return ()
    checks = run.manifest.notes.get("route_checks")
    tried = checks.get("fallback") if isinstance(checks, dict) else None
    return probe_rows(
        run.probed, alpha=alpha, is_lossless=is_lossless, around=tried or ()
    )


def _siblings(run: Gathered) -> tuple[Row, ...]:
    if run.probed is None:
        return ()
    seed = 0 if run.proof is None else run.proof.workload.seed
    row = sibling_row(run.probed, seed=seed)
    return () if row is None else (row,)


def _trials(run: Gathered, phase: str, agreed: Agreed) -> Trials | None:
    """Sampled answers: of all cases, or of those with a temperature of their own.

    A case with a seed of its own is left out: its trials are no draws.
    """
    only = {
        case.id
        for case in run.cases
        if "seed" not in case.parameters
        and (case.parameters.get("temperature", agreed.temperature) or 0) > 0
    }
    is_all = agreed.temperature > 0 and len(only) == len(run.cases)
    if not is_all and not only:
        return None
    return sampled_trials(run.requests, phase, only=None if is_all else only)


def _sampled(
    run: Gathered, trials: Trials, texts: Mapping[float, AnswerText], alpha: float
) -> tuple[Row, ...]:
    """Tests of sampled answers, and of their tokens where probabilities are known."""
    workload = WorkloadSpec() if run.proof is None else run.proof.workload
    rows = sampled_rows(trials, texts, seed=workload.seed, alpha=alpha)
    cases = {case.id: case for case in run.cases}
    samplers = [sampler_of(cases.get(c), workload.sampling) for c in trials.cases]
    tokens = token_row(trials.keys, samplers, texts, alpha=alpha, seed=workload.seed)
    return rows if tokens is None else (*rows, tokens)


def _with_texts(
    run: Gathered,
    quality: Quality,
    compared: tuple[list[Differing], Trials | None],
    texts: Mapping[float, AnswerText],
    alpha: float,
) -> Quality:
    greedy, trials = compared
    ties = {
        (each.phase, each.level): near_tie_of(text_pairs(each, texts))
        for each in greedy
        if each.pair == "control"
    }
    rows = [
        equality(
            each,
            texts,
            near_tie=ties.get((each.phase, each.level), NEAR_TIE_NATS),
        )
        for each in greedy
    ]
    return msgspec.structs.replace(
        quality,
        equality=tuple(row for row in rows if not row.level),
        equality_under_load=tuple(row for row in rows if row.level),
        sampled=(
            *(() if trials is None else _sampled(run, trials, texts, alpha)),
            *_siblings(run),
        ),
    )


def _greedy(run: Gathered, phase: str, agreed: Agreed) -> list[Differing]:
    """Greedy texts of the judged phase, and of every level of load."""
    if agreed.temperature > 0:
        return []
    arms: tuple[Literal["candidate", "control"], ...] = ("candidate", "control")
    sampled = {c.id for c in run.cases if (c.parameters.get("temperature") or 0) > 0}
    places = [(At(phase), arm) for arm in arms]
    # Cold prompts carry a mark of their own for the control: its texts are others.
    is_cold = run.proof is not None and run.proof.workload.load.cache == "cold"
    for stage, level in run.requests.levels():
        if stage in UNDER_LOAD and stage != phase:
            places += [(At(stage, level), arm) for arm in arms[: 1 if is_cold else 2]]
    found = (differing(run.requests, at, arm, sampled=sampled) for at, arm in places)
    return [each for each in found if each is not None]
