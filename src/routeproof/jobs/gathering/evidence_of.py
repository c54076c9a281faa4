"""From a gathered run to the evidence that the gates judge."""

import msgspec
import numpy as np

from routeproof.gates.comparable import (
    asked_again,
    asked_otherwise,
    fingerprint_problem,
    has_control,
    is_interleaved,
    prompt_token_problem,
    validity_rows,
    workload_matches,
)
from routeproof.gates.evidence import Acceptance, Agreed, Evidence, Quality
from routeproof.gates.facts import Arms, ReusedRow
from routeproof.gates.fallback import broken_features
from routeproof.gates.load import Load
from routeproof.gates.measure_acceptance import measure_acceptance
from routeproof.gates.measure_quality import (
    quality_phase,
)
from routeproof.gates.measure_speed import measure_speed
from routeproof.gates.questions import questions
from routeproof.gates.slices import CaseFacts, case_facts
from routeproof.gates.stability import measure_stability
from routeproof.jobs.gathering.acceptance_past import past_of
from routeproof.jobs.gathering.full_suite import NOTE as RECLASSED
from routeproof.jobs.gathering.full_suite import judged_as_lossy
from routeproof.jobs.gathering.gathered import Gathered
from routeproof.jobs.gathering.pass_rates import with_pass_rates
from routeproof.jobs.gathering.quality_of import order_of, quality_of
from routeproof.jobs.gathering.reuse import NOTE as REUSE_NOTE
from routeproof.jobs.gathering.reuse import Reused
from routeproof.jobs.gathering.sandbox_notes import sandbox_note
from routeproof.metrics.requests import Requests
from routeproof.metrics.score_table import ScoreTable, score_table
from routeproof.metrics.telemetry import series_of
from routeproof.proof.proof import Proof
from routeproof.records.columns import Bools
from routeproof.routes.inventory import RouteDiff
from routeproof.routes.parity import parity_problems
from routeproof.routes.resolve import resolve


def evidence_of(run: Gathered) -> Evidence:
    """Everything the gates ask of a run. Pure but for the answers it fetches."""
    agreed = agreed_of(run.proof)
    routes = routes_of(run)
    requests = run.requests
    facts = facts_of(run)
    table, notes = _scored(run, agreed, facts)
    load = load_of(run, agreed, table)
    quality = quality_of(run, table, (agreed, facts, routes))
    return Evidence(
        agreed=agreed,
        routes=routes,
        parity=_parity(run, routes),
        workload_matches=workload_matches(requests),
        asked_otherwise=asked_otherwise(requests),
        is_interleaved=is_interleaved(
            requests, skip=("quality",) if load.is_reused else ()
        ),
        has_control=has_control(requests),
        validity=validity_rows(run.manifest.health),
        quality=quality,
        speed=measure_speed(load),
        acceptance=_named(
            run,
            measure_acceptance(
                load,
                routes,
                run.cases,
                facts,
                series_of(run.telemetry),
                past=past_of(run),
            ),
        ),
        stability=measure_stability(
            requests,
            run.telemetry,
            run.manifest,
            alpha=agreed.policy.alpha,
            capacity_tokens=_stated_capacity(routes),
        ),
        launch_declared=_is_launched(run.proof),
        maturity=_maturity(run.proof, routes),
        reused=_reused(run, agreed),
        fallback=_fallback(run, quality),
        judged_as_lossy=judged_as_lossy(agreed.policy, run.manifest),
        notes=(
            *_unfinished(run),
            *_found_out(run),
            *_ends(run),
            *_spot_checked(run),
            *_taken_over(run),
            *_stopped(run, agreed),
            *notes,
            *sandbox_note(run.folder),
        ),
    )


def _found_out(run: Gathered) -> tuple[str, ...]:
    why = run.manifest.notes.get(RECLASSED)
    return () if why is None else (f"judged as a lossy change: {why}",)


def load_of(run: Gathered, agreed: Agreed, table: ScoreTable | None) -> Load:
    """The requests of a run with what is needed to judge their speed."""
    return Load(
        requests=run.requests,
        agreed=agreed,
        gaps=run.gaps,
        correct=None if table is None else correct_answers(run.requests, table),
        timeout_s=run.proof.workload.load.request_timeout_s if run.proof else 120.0,
        seed=run.proof.workload.seed if run.proof else 0,
        is_reused=REUSE_NOTE in run.manifest.notes,
    )


def scored_table(run: Gathered) -> ScoreTable | None:
    """Scores of a run as a table; ``None`` without any."""
    return _scored(run, agreed_of(run.proof), facts_of(run))[0]


def _ends(run: Gathered) -> tuple[str, ...]:
    """Which request features end an engine that was started anew after them."""
    checks = run.manifest.notes.get("route_checks")
    if not isinstance(checks, dict):
        return ()
    found = []
    for arm in ("baseline", "candidate"):
        tried = checks.get(arm)
        names = [
            str(name)
            for name, each in (tried.items() if isinstance(tried, dict) else ())
            if isinstance(each, dict) and each.get("state") == "ends"
        ]
        if names:
            found.append(
                f"a request with {' or '.join(names)} ends the engine of the {arm}; "
                "it was started anew"
            )
    return tuple(found)


def _unfinished(run: Gathered) -> tuple[str, ...]:
    return () if run.manifest.finished else ("the run was not finished",)


def _taken_over(run: Gathered) -> tuple[str, ...]:
    """That baseline answers are those of an earlier run."""
    note = run.manifest.notes.get(REUSE_NOTE)
    if note is None:
        return ()
    taken = msgspec.convert(note, Reused)
    return (
        f"{taken.requests} quality answers of the baseline are those of "
        f"{taken.run_id}; no time of theirs is judged",
    )


def _spot_checked(run: Gathered) -> tuple[str, ...]:
    """That a smaller sample was sent, because the change claims to lose nothing."""
    whole = run.manifest.plan.get("spot_check_of")
    if not isinstance(whole, int) or whole <= len(run.cases):
        return ()
    return (f"a spot check: {len(run.cases)} of {whole} cases, as the plan asks",)


def _stopped(run: Gathered, agreed: Agreed) -> tuple[str, ...]:
    """How a run that stops as soon as it is decided ended, from its records."""
    order = order_of(run, agreed)
    if order is None:
        return ()
    sent, planned = len(order.complete), len(run.cases)
    seed = run.proof.workload.seed if run.proof else 0
    how = f"cases were drawn at random (seed {seed}) until it was decided"
    if sent < planned:
        saved = f"{planned - sent} of {planned} cases were not needed"
        if not run.manifest.finished:
            saved = f"{planned - sent} of {planned} cases have not been sent"
        return (f"{how}: {saved}",)
    return (f"{how}, and all {planned} were sent",)


def _stated_capacity(routes: RouteDiff | None) -> Arms:
    """KV capacity in tokens as each engine stated it when it was read back."""
    if routes is None:
        return Arms()
    name = "observed.kv_capacity_tokens"
    found = {}
    for arm in ("baseline", "candidate"):
        told = getattr(routes, arm).value(name)
        found[arm] = float(told) if told is not None and told.isdecimal() else None
    return Arms(**found)


def _reused(run: Gathered, agreed: Agreed) -> ReusedRow | None:
    """What was taken over from an earlier run, and whether it still holds."""
    note = run.manifest.notes.get(REUSE_NOTE)
    if note is None:
        return None
    taken = msgspec.convert(note, Reused)
    is_greedy = agreed.temperature == 0
    return ReusedRow(
        run_id=taken.run_id,
        measured=taken.measured,
        requests=taken.requests,
        **asked_again(run.requests, is_greedy=is_greedy),
    )


def _fallback(run: Gathered, quality: Quality) -> tuple[str, ...] | None:
    """What the candidate refused before the run, and what it did badly in it."""
    checks = run.manifest.notes.get("route_checks")
    if not isinstance(checks, dict):
        return None
    tried = checks.get("fallback")
    refused = () if tried is None else (str(name) for name in tried)
    found = tuple(dict.fromkeys((*refused, *broken_features(quality.rows))))
    return None if tried is None and not found else found


def _named(run: Gathered, acceptance: Acceptance) -> Acceptance:
    """Acceptance that nothing tells, with the series nobody knows that might."""
    checks = run.manifest.notes.get("route_checks")
    unknown = checks.get("unknown_series", {}) if isinstance(checks, dict) else {}
    names = [str(name) for name in unknown.get("candidate", ())]
    if acceptance.source != "none" or not names:
        return acceptance
    note = f"its metrics page has names that nobody knows: {', '.join(names)}"
    return msgspec.structs.replace(acceptance, notes=(note, *acceptance.notes))


def _scored(
    run: Gathered, agreed: Agreed, facts: CaseFacts
) -> tuple[ScoreTable | None, tuple[str, ...]]:
    """Scores as a table, pass rates among them; and what could not be estimated."""
    if run.scores is None:
        return None, ()
    asked, phase = questions(agreed, facts), quality_phase(run.requests)
    scores, notes = with_pass_rates(run.scores, asked, phase)
    return score_table(scores), notes


def agreed_of(proof: Proof | None) -> Agreed:
    """The judged parts of a proof; the defaults for a run without one."""
    if proof is None:
        return Agreed()
    return Agreed(
        quality=proof.quality,
        classes_required=proof.workload.classes_required,
        performance=proof.performance,
        memory=proof.memory,
        policy=proof.policy,
        rollback=proof.rollback,
        temperature=proof.workload.sampling.temperature,
        trials=proof.workload.trials,
    )


def routes_of(run: Gathered) -> RouteDiff | None:
    """The route diff as the run wrote it down."""
    if run.manifest.route_diff is None:
        return None
    return msgspec.convert(run.manifest.route_diff, RouteDiff)


def _parity(run: Gathered, routes: RouteDiff | None) -> tuple[str, ...]:
    found = [] if routes is None else [p.why for p in parity_problems(routes)]
    changes = () if run.proof is None else run.proof.candidate.changes
    further = (
        prompt_token_problem(run.requests, changes),
        fingerprint_problem(run.requests),
    )
    return (*found, *(each for each in further if each is not None))


def _is_launched(proof: Proof | None) -> bool:
    return proof is not None and all(spec.launch is not None for spec in resolve(proof))


def _maturity(proof: Proof | None, routes: RouteDiff | None) -> str | None:
    if proof is not None:
        engine = resolve(proof)[1].engine
        if engine is not None:
            return engine.maturity
    return None if routes is None else routes.candidate.value("engine.maturity")


def facts_of(run: Gathered) -> CaseFacts:
    """Slices of the cases, with lengths as the baseline has them."""
    requests = run.requests
    base = requests.where(
        requests.at(arm="baseline") & requests.served(),
        only=("prompt_tokens", "output_tokens"),
    )
    return case_facts(
        run.cases,
        _median_by_case(base, "prompt_tokens"),
        _median_by_case(base, "output_tokens"),
    )


def _median_by_case(requests: Requests, name: str) -> dict[str, float]:
    column, case = requests.number(name), requests.label("case_id")
    rows = np.flatnonzero(column.known & (case.codes >= 0))
    if not rows.size:
        return {}
    order = rows[np.lexsort((column.values[rows], case.codes[rows]))]
    codes = case.codes[order]
    starts = np.flatnonzero(np.diff(codes, prepend=-1))
    sizes = np.diff(np.append(starts, codes.size))
    middle = order[starts + (sizes - 1) // 2]
    return {
        case.names[code]: float(value)
        for code, value in zip(
            case.codes[middle].tolist(), column.values[middle].tolist(), strict=True
        )
    }


def correct_answers(requests: Requests, table: ScoreTable) -> Bools | None:
    """True for a request whose headline score is at least one half.

    Looks at the first scorer of each request; a request without a score is not
    correct. ``None`` when nothing was scored.
    """
    if not table.n:
        return None
    keys, first = np.unique(table.request_key, return_index=True)
    good = table.value.known[first] & (table.value.values[first] >= 0.5)
    wanted = requests.number("request_key").values
    place = np.minimum(np.searchsorted(keys, wanted), keys.size - 1)
    found: Bools = (keys[place] == wanted) & good[place]
    return found
