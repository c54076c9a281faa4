"""From counts of speculation to what the acceptance gate judges."""

from collections.abc import Mapping, Sequence

import numpy as np

from routeproof.gates.evidence import Acceptance
from routeproof.gates.facts import Row
from routeproof.gates.load import Load
from routeproof.gates.slices import CaseFacts
from routeproof.metrics.acceptance import (
    AcceptanceCounts,
    break_even_tokens_per_pass,
    derive,
    topology_of,
)
from routeproof.metrics.acceptance_checks import checked, identities, speculates
from routeproof.metrics.acceptance_profile import (
    Profile,
    Slice,
    by_position,
    length_slice,
    profile,
    repetition_slice,
    slice_rows,
    time_slice,
)
from routeproof.metrics.acceptance_requests import (
    all_passes,
    decode_tokens,
    estimate,
    step_time,
)
from routeproof.metrics.acceptance_tells import (
    dispersion,
    every_pass_the_same,
    why_refused,
)
from routeproof.metrics.acceptance_windows import OwnTraffic, counts_of_window
from routeproof.metrics.pairs import pair_arms
from routeproof.metrics.requests import Requests
from routeproof.metrics.telemetry import Series
from routeproof.records.columns import Bools
from routeproof.routes.inventory import RouteDiff
from routeproof.workloads.case import Case

Samples = Mapping[tuple[str, str], Series]


def measure_acceptance(
    load: Load,
    routes: RouteDiff | None,
    cases: Sequence[Case],
    facts: CaseFacts,
    samples: Samples,
) -> Acceptance:
    """Acceptance of the candidate: overall, by position, by slice.

    Counts per request are preferred; without them the engine's counters over the
    run, and then there is no slice.
    """
    if routes is not None and not routes.is_speculative:
        return Acceptance()
    requests, like = load.requests, _like(routes)
    keep = requests.at(arm="candidate") & requests.served() & ~_aside(requests)
    case = requests.label("case_id").codes.astype(np.int64)
    found = profile(requests, keep, like=like, unit=case, seed=load.seed)
    if found.counts.source == "none":
        return _from_counters(samples, requests, like)
    overall = found.overall() | _totals(found.counts) | _step(load, like.draft_tokens)
    return Acceptance(
        overall=overall,
        tables={
            "by_position": tuple(found.by_position),
            **_sliced(load, like, keep, _splits(requests, keep, facts)),
        },
        identities={each.name: each.holds for each in found.identities},
        source=found.counts.source,
        is_synthetic=found.counts.mode == "synthetic",
        refused=why_refused(cases),
        looks_forced=_looks_forced(requests, keep),
        notes=_notes(found),
    )


def _looks_forced(requests: Requests, keep: Bools) -> bool:
    even = dispersion(requests, keep)
    same = every_pass_the_same(requests, keep)
    return (even is not None and even.looks_forced()) or bool(same)


def _notes(found: Profile) -> tuple[str, ...]:
    broken = [f"{i.name}: {i.detail}" for i in found.identities if not i.holds]
    return tuple(dict.fromkeys((*found.counts.reasons, *broken)))


def _like(routes: RouteDiff | None) -> AcceptanceCounts:
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


def _aside(requests: Requests) -> Bools:
    return requests.at(phase="warmup") | requests.at(phase="probe")


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


def _step(load: Load, draft_tokens: int | None) -> dict[str, float | None]:
    """What a pass costs, as a multiple of a plain one, from paired requests.

    ``decode speed = tokens per pass / step ratio``: with fewer tokens per pass than
    the ratio the draft costs more than it saves.
    """
    requests = load.requests
    with_draft = step_time(requests, speculates=True, draft_tokens=draft_tokens)
    plain = step_time(requests, speculates=False)
    above = below = 0.0
    for phase in dict.fromkeys(phase for phase, _ in requests.levels()):
        if phase in ("warmup", "probe"):
            continue
        pairs = pair_arms(requests, phase=phase, other="candidate")
        known = plain.known[pairs.left] & with_draft.known[pairs.right]
        above += float(with_draft.values[pairs.right][known].sum())
        below += float(plain.values[pairs.left][known].sum())
    if below <= 0 or above <= 0:
        return {"step_ratio": None, "break_even_tokens_per_pass": None}
    ratio = above / below
    return {
        "step_ratio": ratio,
        "break_even_tokens_per_pass": break_even_tokens_per_pass(ratio - 1),
    }


def _splits(requests: Requests, keep: Bools, facts: CaseFacts) -> dict[str, Slice]:
    case = requests.label("case_id").codes.astype(np.int64)
    at = requests.number("intended_s")
    soak = requests.at(phase="soak")
    return {
        **{tag: _by_tag(requests, facts, tag) for tag in ("class", "structured")},
        "prompt_length": length_slice(requests.number("prompt_tokens")),
        "output_length": length_slice(requests.number("output_tokens")),
        "load": _by_load(requests),
        "uptime": time_slice(at, keep & soak if soak.any() else keep),
        "repetition": repetition_slice(case, at, keep),
    }


def _by_tag(requests: Requests, facts: CaseFacts, tag: str) -> Slice:
    case = requests.label("case_id")
    values = [facts.tags.get(name, {}).get(tag) for name in case.names]
    names = tuple(sorted({value for value in values if value is not None}))
    place = {name: i for i, name in enumerate(names)}
    codes = [-1 if value is None else place[value] for value in values]
    return Slice(np.array([*codes, -1], dtype=np.int64)[case.codes], names)


def _by_load(requests: Requests) -> Slice:
    codes = np.full(requests.n, -1, dtype=np.int64)
    names: list[str] = []
    for phase, level in requests.levels():
        if phase in ("latency", "sweep", "soak"):
            codes[requests.at(phase=phase, level=level)] = len(names)
            names.append(f"{phase} {level}")
    return Slice(codes, tuple(names))


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
