"""Speed and acceptance of the quality stage alone, whatever else was timed."""

from dataclasses import dataclass, replace

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


@dataclass(frozen=True, slots=True)
class SingleStream:
    """What the quality stage says of a single stream.

    Attributes:
        speed: Loads and ratios of that stage.
        accepted: Ratios of the candidate's acceptance in it.
    """

    speed: Speed
    accepted: Derived


def single_stream(run: Gathered) -> SingleStream:
    """Measured from the quality stage: its prompts are sent once to each route."""
    load = load_of(run, agreed_of(run.proof), scored_table(run))
    in_stage = run.requests.at(phase="quality")
    correct = None if load.correct is None else load.correct[in_stage]
    alone = replace(load, requests=run.requests.where(in_stage), correct=correct)
    keep = own_requests(run.requests) & in_stage
    counts = sum_counts(run.requests, keep, like_of(routes_of(run)))
    return SingleStream(measure_speed(alone), derive(counts))
