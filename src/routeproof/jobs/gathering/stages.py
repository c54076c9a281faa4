"""Speed and acceptance of single stages of a run, whatever else was timed in it."""

from dataclasses import replace

from routeproof.gates.evidence import Speed
from routeproof.gates.measure_acceptance import like_of, own_requests
from routeproof.gates.measure_speed import measure_speed
from routeproof.jobs.gathering.evidence_of import (
    agreed_of,
    load_of,
    routes_of,
    scored_table,
)
from routeproof.jobs.gathering.gathered import Gathered
from routeproof.metrics.acceptance import Derived, derive
from routeproof.metrics.acceptance_sums import sum_counts


def speed_of(run: Gathered, phase: str) -> Speed:
    """Loads and ratios of one phase: a quality stage sends its prompts once."""
    load = load_of(run, agreed_of(run.proof), scored_table(run))
    inside = run.requests.at(phase=phase)
    correct = None if load.correct is None else load.correct[inside]
    alone = replace(load, requests=run.requests.where(inside), correct=correct)
    return measure_speed(alone)


def accepted_at(run: Gathered, phase: str, level: str) -> Derived:
    """Ratios of the candidate's acceptance at one load."""
    inside = run.requests.at(phase=phase, level=level)
    keep = own_requests(run.requests) & inside
    return derive(sum_counts(run.requests, keep, like_of(routes_of(run))))
