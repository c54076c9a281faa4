"""Integers of speculation summed over requests, all together or by group."""

import msgspec
import numpy as np
from numpy.typing import NDArray

from routeproof.metrics.acceptance import AcceptanceCounts, worse_of
from routeproof.metrics.acceptance_requests import (
    DRAFTED_AT,
    HIST,
    MAX_POSITIONS,
    Numbers,
    all_passes,
)
from routeproof.records.columns import Bools, Column

NOTHING_KNOWN = AcceptanceCounts()
"""No identity fields to carry over."""

CUT_RUNS = (
    "passes follow from the tokens; a run cut at the end of an answer hides one of them"
)
"""Reason why passes of an engine that does not count them are only derived."""

Codes = NDArray[np.int64]


def sum_counts(
    requests: Numbers,
    keep: Bools,
    like: AcceptanceCounts = NOTHING_KNOWN,
) -> AcceptanceCounts:
    """Integers summed over the requests of ``keep`` that carry counts.

    A request carries counts when its accepted drafts and output tokens are known.
    Those that carry none are left out of every sum, of the tokens as well, and named
    in ``reasons``. A field that some of the others lack is unknown, never a sum over
    a part.

    Args:
        requests: With columns ``accepted``, ``drafted``, ``spec_passes``,
            ``plain_passes``, ``passes``, ``output_tokens`` and those of
            `acceptance_requests.request_columns`.
        keep: Which requests, shape ``(n,)``: served ones of one arm and slice.
        like: Identity fields to carry over.
    """
    return sum_groups(requests, np.where(keep, 0, -1), 1, like)[0]


def sum_groups(
    requests: Numbers,
    codes: Codes,
    groups: int,
    like: AcceptanceCounts = NOTHING_KNOWN,
) -> list[AcceptanceCounts]:
    """The sums of `sum_counts` for every group at once.

    Args:
        requests: As there.
        codes: Group of each request, ``0 .. groups - 1``; -1 for none.
        groups: How many there are.
        like: Identity fields to carry over.
    """
    adder = _Adder(requests, codes, groups)
    passes = adder.total(all_passes(requests, like.draft_tokens))
    columns = {
        name: adder.total(requests.number(name))
        for name in ("accepted", "drafted", "spec_passes", "plain_passes")
    }
    completion = adder.total(requests.number("output_tokens"))
    hist = adder.totals(requests, HIST)
    drafted_at = adder.totals(requests, DRAFTED_AT)
    out = []
    for group in range(groups):
        n, missing = int(adder.told_in[group]), int(adder.missing_in[group])
        if n == 0:
            out.append(_nothing(like))
            continue
        made = msgspec.structs.replace(
            like,
            requests=n,
            completion_tokens=completion[group],
            passes=passes[group],
            accepted_hist=hist[group],
            drafted_at=drafted_at[group],
            **{name: column[group] for name, column in columns.items()},
        )
        out.append(_with_reasons(made, missing))
    return out


def _nothing(like: AcceptanceCounts) -> AcceptanceCounts:
    return msgspec.structs.replace(
        like,
        requests=0,
        source="none",
        trust="unavailable",
        reasons=(*like.reasons, "no request carries counts of speculation"),
    )


def _with_reasons(made: AcceptanceCounts, missing: int) -> AcceptanceCounts:
    reasons, trust = made.reasons, made.trust
    if missing:
        every = made.requests + missing
        reasons = (*reasons, f"{missing} of {every} requests carry no counts")
    if made.spec_passes is None and made.passes is not None:
        trust = worse_of(trust, "derived")
        reasons = (*reasons, CUT_RUNS)
    return msgspec.structs.replace(made, trust=trust, reasons=reasons)


class _Adder:
    """Sums columns over groups, with one pass over each column.

    Attributes:
        told_in, missing_in: Requests of each group with and without counts.
    """

    def __init__(self, requests: Numbers, codes: Codes, groups: int) -> None:
        told = (
            requests.number("accepted").known & requests.number("output_tokens").known
        )
        chosen = codes >= 0
        self.groups = groups
        self.told: Bools = told & chosen
        self.codes = codes[self.told]
        self.told_in = np.bincount(self.codes, minlength=groups)
        self.missing_in = np.bincount(codes[chosen & ~told], minlength=groups)

    def total(self, column: Column) -> list[int | None]:
        """Sum in each group; ``None`` where any of its requests is unknown."""
        known = column.known[self.told]
        unknown = np.bincount(self.codes[~known], minlength=self.groups)
        sums = np.bincount(
            self.codes, weights=column.values[self.told] * known, minlength=self.groups
        )
        return [
            None if lacking else int(total)
            for total, lacking in zip(sums.tolist(), unknown.tolist(), strict=True)
        ]

    def totals(self, requests: Numbers, name: str) -> list[tuple[int, ...] | None]:
        """Sums of a list's columns in each group.

        A part of the run with shorter lists lacks the later columns: those are 0
        where the first one is known.
        """
        first = self.total(requests.number(f"{name}:0"))
        if all(total is None for total in first):
            return [None] * self.groups
        rows = []
        for j in range(MAX_POSITIONS):
            column = requests.numbers.get(f"{name}:{j}")
            if column is None:
                break
            known = column.known[self.told]
            sums = np.bincount(
                self.codes,
                weights=column.values[self.told] * known,
                minlength=self.groups,
            )
            rows.append(sums)
        return [
            None if total is None else tuple(int(row[group]) for row in rows)
            for group, total in enumerate(first)
        ]
