"""Acceptance of a run as a reference for later ones, and a run against one."""

import numpy as np
from numpy.typing import NDArray

from routeproof.errors import FormatError
from routeproof.gates.facts import Row
from routeproof.gates.slices import CaseFacts
from routeproof.metrics.acceptance import AcceptanceCounts
from routeproof.metrics.acceptance_drift import CaseCounts, Reference, drift
from routeproof.metrics.acceptance_requests import all_passes, decode_tokens
from routeproof.metrics.acceptance_sums import sum_counts, sum_groups
from routeproof.metrics.requests import Requests
from routeproof.records.columns import Bools, Column


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
    """Sums by case over the requests that tell what they were drafted."""
    case = requests.label("case_id")
    told = keep & requests.number("accepted").known & (case.codes >= 0)
    codes, n = case.codes[told].astype(np.int64), len(case.names)
    sums = {
        name: _sums(column, told, codes, n)
        for name, column in (
            ("decoded", decode_tokens(requests)),
            ("passes", all_passes(requests, draft_tokens)),
            ("drafted", requests.number("drafted")),
            ("accepted", requests.number("accepted")),
        )
    }
    counts = np.bincount(codes, minlength=n)
    return {
        name: CaseCounts(
            slice=f"class={classes[i]}",
            **{each: column[i] for each, column in sums.items()},
        )
        for i, name in enumerate(case.names)
        if counts[i]
    }


def _sums(
    column: Column, told: Bools, codes: NDArray[np.int64], n: int
) -> list[int | None]:
    """Sum for each case; ``None`` where one of its requests does not tell."""
    known = column.known[told]
    lacking = np.bincount(codes[~known], minlength=n)
    total = np.bincount(codes, weights=column.values[told] * known, minlength=n)
    return [
        None if missing else int(value)
        for value, missing in zip(total.tolist(), lacking.tolist(), strict=True)
    ]


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
