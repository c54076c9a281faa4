"""Requests with counts of speculation, made up or recorded."""

from collections.abc import Sequence

import numpy as np

from routeproof.metrics.acceptance_requests import request_columns
from routeproof.records.columns import Column, Ragged, Records
from routeproof.records.record import EngineDetails

_NUMBERS = ("drafted", "accepted", "spec_passes", "plain_passes", "passes")


def requests(
    details: Sequence[EngineDetails], output_tokens: Sequence[int | None]
) -> Records:
    """Records with the number columns that a judged run has."""
    numbers = {name: column([getattr(d, name) for d in details]) for name in _NUMBERS}
    numbers["output_tokens"] = column(output_tokens)
    lists = {
        name: ragged([getattr(d, name) for d in details])
        for name in ("accepted_hist", "drafted_per_position")
    }
    raw = Records(n=len(details), numbers=numbers, lists=lists)
    return Records(n=raw.n, numbers={**numbers, **request_columns(raw)})


def column(values: Sequence[float | None]) -> Column:
    known = np.array([value is not None for value in values], dtype=np.bool_)
    return Column(np.array([value or 0.0 for value in values], dtype=float), known)


def ragged(lists: Sequence[tuple[int, ...] | None]) -> Ragged:
    sizes = [len(each or ()) for each in lists]
    return Ragged(
        np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        np.array([v for each in lists for v in each or ()], dtype=float),
        np.array([each is not None for each in lists], dtype=np.bool_),
    )


def everyone(records: Records) -> np.ndarray:
    return np.ones(records.n, dtype=np.bool_)


def simulate(
    rng: np.random.Generator, *, passes: int, draft_tokens: int, rate: float
) -> EngineDetails:
    """One request whose drafts are accepted one after the other with chance rate."""
    hist = [0] * (draft_tokens + 1)
    for _ in range(passes):
        run = 0
        while run < draft_tokens and rng.random() < rate:
            run += 1
        hist[run] += 1
    accepted = sum(j * n for j, n in enumerate(hist))
    return EngineDetails(
        drafted=passes * draft_tokens,
        accepted=accepted,
        spec_passes=passes,
        plain_passes=0,
        passes=passes,
        accepted_hist=tuple(hist),
        drafted_per_position=(passes,) * draft_tokens,
    )
