"""From counts of speculation to what the acceptance gate judges."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from routeproof.gates.acceptance_factors import speed_factors
from routeproof.gates.acceptance_reference import drift_rows, reference_from
from routeproof.gates.acceptance_slices import splits
from routeproof.gates.evidence import Acceptance
from routeproof.gates.facts import Row
from routeproof.gates.load import Load
from routeproof.gates.slices import CaseFacts
from routeproof.metrics.acceptance import (
    AcceptanceCounts,
    derive,
    topology_of,
)
from routeproof.metrics.acceptance_checks import checked, identities, speculates
from routeproof.metrics.acceptance_drift import Reference
from routeproof.metrics.acceptance_profile import (
    Profile,
    Slice,
    by_position,
    output_position_rows,
    profile,
    slice_rows,
)
from routeproof.metrics.acceptance_requests import (
    all_passes,
    decode_tokens,
    estimate,
)
from routeproof.metrics.acceptance_tells import (
    dispersion,
    every_pass_the_same,
    why_refused,
)
from routeproof.metrics.acceptance_windows import OwnTraffic, counts_of_window
from routeproof.metrics.requests import Requests
from routeproof.metrics.telemetry import Series
from routeproof.records.columns import Bools
from routeproof.routes.inventory import RouteDiff
from routeproof.workloads.case import Case

Samples = Mapping[tuple[str, str], Series]

NO_DRIFT = "cannot be held against its reference"
"""How the note begins that says why there are no rows of ``drift``."""


@dataclass(frozen=True, slots=True)
class Past:
    """Acceptance of an earlier run, and the workload of this one.

    Attributes:
        fall_max_share: Relative fall that is let pass.
    """

    reference: Reference
    workload: str
    fall_max_share: float = 0.05


def measure_acceptance(
    load: Load,
    routes: RouteDiff | None,
    cases: Sequence[Case],
    facts: CaseFacts,
    samples: Samples,
    *,
    past: Past | None = None,
) -> Acceptance:
    """Acceptance of the candidate: overall, by position, by slice.

    Counts per request are preferred; without them the engine's counters over the
    run, and then there is no slice.

    Args:
        load: The run.
        routes: What differs between the routes.
        cases: As sent.
        facts: Their slices.
        samples: Telemetry.
        past: What it must not fall behind.
    """
    if routes is not None and not routes.is_speculative:
        return Acceptance()
    requests, like = load.requests, like_of(routes)
    keep = own_requests(requests)
    case = requests.label("case_id").codes.astype(np.int64)
    found = profile(requests, keep, like=like, unit=case, seed=load.seed)
    if found.counts.source == "none":
        return _from_counters(samples, requests, like)
    overall = found.overall() | _totals(found.counts)
    tables = {
        "by_position": tuple(found.by_position),
        **_sliced(load, like, keep, splits(requests, keep, facts)),
    }
    along = output_position_rows(requests, keep)
    if len(along) > 1:
        tables["by_output_position"] = tuple(along)
    notes = _notes(found)
    if past is not None:
        now = reference_from(requests, keep, facts, like=like, workload=past.workload)
        rows, problem = drift_rows(past.reference, now, tolerance=past.fall_max_share)
        tables["drift"] = rows
        notes = notes if problem is None else (*notes, f"{NO_DRIFT}: {problem}")
    return Acceptance(
        overall=overall | speed_factors(load, like.draft_tokens),
        tables={name: rows for name, rows in tables.items() if rows},
        identities={each.name: each.holds for each in found.identities},
        source=found.counts.source,
        is_synthetic=found.counts.mode == "synthetic",
        refused=why_refused(cases),
        looks_forced=_looks_forced(requests, keep),
        notes=notes,
    )


def own_requests(requests: Requests) -> Bools:
    """Served requests of the candidate whose acceptance counts: no warm-up."""
    aside = requests.at(phase="warmup") | requests.at(phase="probe")
    return requests.at(arm="candidate") & requests.served() & ~aside


def _looks_forced(requests: Requests, keep: Bools) -> bool:
    even = dispersion(requests, keep)
    same = every_pass_the_same(requests, keep)
    return (even is not None and even.looks_forced()) or bool(same)


def _notes(found: Profile) -> tuple[str, ...]:
    broken = [f"{i.name}: {i.detail}" for i in found.identities if not i.holds]
    return tuple(dict.fromkeys((*found.counts.reasons, *broken)))


def like_of(routes: RouteDiff | None) -> AcceptanceCounts:
    """Engine, method, draft length and shape of the candidate."""
    candidate = None if routes is None else routes.candidate
    if candidate is None:
        return AcceptanceCounts()
    method = candidate.value("speculation.method")
    topk = _whole(candidate.value("speculation.options.eagle_topk"))
    return AcceptanceCounts(
        engine=candidate.value("engine.name"),
        engine_version=candidate.value("engine.version"),
        method=method,
        draft_tokens=_whole(candidate.value("speculation.draft_tokens")),
        topology=topology_of(method, topk),
    )


def _whole(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdecimal() else None


def _from_counters(
    samples: Samples, requests: Requests, like: AcceptanceCounts
) -> Acceptance:
    """Growth of the candidate's counters over the whole run, warm-up included."""
    series = {name: s for (arm, name), s in samples.items() if arm == "candidate"}
    grown = {
        name: increase
        for name, each in series.items()
        if "_total" in name and (increase := each.increase()) is not None
    }
    sent = requests.at(arm="candidate")
    tokens = requests.number("output_tokens")
    told = bool((tokens.known | ~requests.served())[sent].all())
    own = OwnTraffic(
        requests=int(sent.sum()),
        completion_tokens=int(tokens.values[sent & tokens.known].sum())
        if told
        else None,
    )
    resets = any(each.resets() for name, each in series.items() if "_total" in name)
    reasons = ("a counter fell: the engine restarted",) if resets else ()
    counts = checked(counts_of_window(grown, own, like, reasons=reasons))
    if counts.source == "none":
        return Acceptance(notes=counts.reasons)
    derived = derive(counts)
    working = speculates(counts, configured=True)
    found = identities(counts)
    every = found if working is None else (*found, working)
    plain: dict[str, float | None] = {
        name: getattr(derived, name)
        for name in ("tokens_per_pass", "acceptance_length", "acceptance_rate")
    }
    return Acceptance(
        overall=plain | _totals(counts),
        tables={"by_position": tuple(by_position(derived))},
        identities={each.name: each.holds for each in every},
        source=counts.source,
        notes=counts.reasons,
    )


def _totals(counts: AcceptanceCounts) -> dict[str, float | None]:
    names = ("requests", "spec_passes", "plain_passes", "drafted", "accepted")
    values = {name: getattr(counts, name) for name in names}
    return {k: None if v is None else float(v) for k, v in values.items()}


MOST_ROWS = 12
"""Slices of more values show the first of them."""


def _sliced(
    load: Load, like: AcceptanceCounts, keep: Bools, splits: Mapping[str, Slice]
) -> dict[str, tuple[Row, ...]]:
    """Rows by slice, each with the interval of its tokens per pass."""
    tables = {}
    for name, split in splits.items():
        shown = Slice(
            np.where(split.codes < MOST_ROWS, split.codes, -1), split.names[:MOST_ROWS]
        )
        rows = slice_rows(load.requests, keep, name, shown, like)
        if len(rows) > 1:
            tables[f"by_{name}"] = tuple(
                _with_interval(load, keep, shown, row, like.draft_tokens)
                for row in rows
            )
    return tables


def _with_interval(
    load: Load, keep: Bools, split: Slice, row: Row, draft_tokens: int | None
) -> Row:
    requests, name = load.requests, next(iter(row))
    found = estimate(
        decode_tokens(requests),
        all_passes(requests, draft_tokens),
        keep & (split.codes == split.names.index(str(row[name]))),
        unit=requests.label("case_id").codes.astype(np.int64),
        level=1 - 2 * load.agreed.policy.alpha,
        seed=load.seed,
    )
    return {
        **row,
        "tokens_per_pass_low": found.low,
        "tokens_per_pass_high": found.high,
    }
