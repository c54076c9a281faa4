"""Acceptance of a run as a reference for later ones, and a run against one."""

import numpy as np

from routeproof.errors import FormatError
from routeproof.gates.facts import Row
from routeproof.gates.slices import CaseFacts
from routeproof.metrics.acceptance import AcceptanceCounts
from routeproof.metrics.acceptance_drift import CaseCounts, Reference, drift
from routeproof.metrics.acceptance_requests import all_passes, decode_tokens
from routeproof.metrics.acceptance_sums import sum_counts, sum_groups
from routeproof.metrics.requests import Requests
from routeproof.records.columns import Bools


def reference_from(
    requests: Requests,
    keep: Bools,
    facts: CaseFacts,
    *,
    like: AcceptanceCounts,
    workload: str,
    run: str | None = None,
) -> Reference:
    """The integers of the requests of ``keep``: overall, by class and by case."""
    case = requests.label("case_id")
    classes = [facts.tags.get(name, {}).get("class", "") for name in case.names]
    names = sorted(set(classes) - {""})
    codes = np.array([names.index(c) if c else -1 for c in classes] + [-1])
    groups = np.where(keep, codes[case.codes], -1)
    by_class = sum_groups(requests, groups, len(names), like)
    return Reference(
        workload=workload,
        run=run,
        overall=sum_counts(requests, keep, like),
        slices={
            f"class={name}": counts
            for name, counts in zip(names, by_class, strict=True)
            if counts.requests
        },
        cases=_cases(requests, keep, classes, like.draft_tokens),
    )


def _cases(
    requests: Requests, keep: Bools, classes: list[str], draft_tokens: int | None
) -> dict[str, CaseCounts]:
    case = requests.label("case_id")
    made, passes = decode_tokens(requests), all_passes(requests, draft_tokens)
    told = keep & made.known & passes.known & (case.codes >= 0)
    codes, n = case.codes[told], len(case.names)
    decoded = np.bincount(codes, weights=made.values[told], minlength=n)
    taken = np.bincount(codes, weights=passes.values[told], minlength=n)
    return {
        name: CaseCounts(
            slice=f"class={classes[i]}", decoded=int(decoded[i]), passes=int(taken[i])
        )
        for i, name in enumerate(case.names)
        if taken[i] > 0
    }


def drift_rows(
    reference: Reference, now: Reference, *, tolerance: float
) -> tuple[tuple[Row, ...], str | None]:
    """How acceptance moved since the reference; and why it cannot be said.

    Returns:
        Rows of (where, metric, then, now, change, z, pairs, fell), and a sentence when
        the two were not measured on the same workload.
    """
    try:
        found = drift(reference, now, tolerance=tolerance)
    except FormatError as error:
        return (), error.message
    return tuple(
        {
            "where": each.where,
            "metric": each.metric,
            "then": each.then,
            "now": each.now,
            "change": each.change,
            "z": each.z,
            "pairs": each.pairs,
            "fell": each.fell,
        }
        for each in found
    ), None
