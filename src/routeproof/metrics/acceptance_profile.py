"""The accepted-token profile of a route: overall, by position, by slice."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from routeproof.metrics.acceptance import AcceptanceCounts, Derived, derive
from routeproof.metrics.acceptance_checks import (
    Identity,
    checked,
    identities,
    speculates,
)
from routeproof.metrics.acceptance_requests import (
    OUTPUT_EDGES,
    PASSES_ALONG,
    TOKENS_ALONG,
    Estimate,
    Numbers,
    all_passes,
    decode_tokens,
    estimate,
)
from routeproof.metrics.acceptance_sums import sum_counts, sum_groups
from routeproof.metrics.acceptance_tells import (
    MIN_REQUESTS,
    dispersion,
    every_pass_the_same,
)
from routeproof.records.columns import Bools, Column

Cell = str | float | int | bool | None

LENGTH_EDGES = (64.0, 256.0, 1024.0, 4096.0, 16384.0, 65536.0)
"""Token counts at which a length bucket ends, exclusive."""


@dataclass(frozen=True, slots=True)
class Slice:
    """One way to split requests.

    Attributes:
        codes: Shape ``(n,)``; -1 belongs to no value.
        names: Value of each code.
    """

    codes: NDArray[np.int64]
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Profile:
    """What a route's drafts are worth, and where.

    Attributes:
        counts: Integers over all requests, with trust and reasons.
        derived: Micro averages.
        estimates: ``tokens_per_pass`` and ``acceptance_rate`` with intervals and the
            macro average.
        by_position: Rows of position (from 1), marginal, conditional, rejected_first.
        by_slice: Rows per slice: the slice's value, requests, and the derived numbers.
        identities: Every identity, applied.
    """

    counts: AcceptanceCounts
    derived: Derived
    estimates: dict[str, Estimate]
    by_position: list[dict[str, Cell]]
    by_slice: dict[str, list[dict[str, Cell]]]
    identities: tuple[Identity, ...]

    def overall(self) -> dict[str, float | None]:
        """The headline numbers by name, as gates and reports read them."""
        d, found = self.derived, dict[str, float | None]()
        for name in (
            "tokens_per_pass",
            "acceptance_length",
            "acceptance_rate",
            "rejection_rate",
            "coverage",
            "full_accept_share",
            "zero_accept_share",
            "waste",
        ):
            found[name] = getattr(d, name)
        for name, each in self.estimates.items():
            found[f"{name}_macro"] = each.macro
            found[f"{name}_low"], found[f"{name}_high"] = each.low, each.high
        return found


def profile(
    requests: Numbers,
    keep: Bools,
    *,
    like: AcceptanceCounts,
    unit: NDArray[np.int64] | None = None,
    slices: Mapping[str, Slice] | None = None,
    seed: int = 0,
) -> Profile:
    """Profile of the requests of ``keep``.

    Args:
        requests: Numbers per request, see `acceptance_requests.sum_counts`.
        keep: Served requests of one arm whose load is alike. Requests sent with
            ``ignore_eos`` or of random tokens must not be among them: acceptance
            past the natural end of a text says nothing.
        like: Engine, method, draft length and topology of the route.
        unit: Case of each request, for the intervals.
        slices: Name to split, such as ``class``.
        seed: Of the resampling.
    """
    counts = checked(sum_counts(requests, keep, like))
    found = list(identities(counts))
    ran = speculates(counts, configured=(like.method or "none") != "none")
    if ran is not None:
        found.append(ran)
    found += _tells(requests, keep)
    derived = derive(counts)
    return Profile(
        counts=counts,
        derived=derived,
        estimates=_estimates(requests, keep, counts, unit=unit, seed=seed),
        by_position=by_position(derived),
        by_slice={
            name: slice_rows(requests, keep, name, split, like)
            for name, split in (slices or {}).items()
        },
        identities=tuple(found),
    )


def _tells(requests: Numbers, keep: Bools) -> list[Identity]:
    """Signs that acceptance is forced, where there is enough to see them."""
    found = []
    even = dispersion(requests, keep)
    if even is not None and even.requests >= MIN_REQUESTS:
        found.append(
            Identity(
                name="acceptance_depends_on_the_text",
                holds=not even.looks_forced(),
                detail=f"accepted drafts vary {even.ratio:.2f} times as much from "
                "request to request as chance alone gives",
            )
        )
    constant = every_pass_the_same(requests, keep)
    if constant is not None:
        found.append(
            Identity(
                name="passes_differ",
                holds=False,
                detail=f"every pass accepted exactly {constant} drafts",
            )
        )
    return found


def _estimates(
    requests: Numbers,
    keep: Bools,
    counts: AcceptanceCounts,
    *,
    unit: NDArray[np.int64] | None,
    seed: int,
) -> dict[str, Estimate]:
    told = keep & requests.number("accepted").known
    found = {
        "tokens_per_pass": estimate(
            decode_tokens(requests),
            all_passes(requests, counts.draft_tokens),
            told,
            unit=unit,
            seed=seed,
        )
    }
    if counts.topology != "tree":
        found["acceptance_rate"] = estimate(
            requests.number("accepted"),
            requests.number("drafted"),
            told,
            unit=unit,
            seed=seed,
        )
    spec = requests.number("spec_passes")
    if spec.known[told].all():
        emitted = Column(
            spec.values + requests.number("accepted").values, spec.known & told
        )
        found["acceptance_length"] = estimate(emitted, spec, told, unit=unit, seed=seed)
    return found


def by_position(derived: Derived) -> list[dict[str, Cell]]:
    """One row per draft position, from 1."""
    rows: list[dict[str, Cell]] = []
    for i, share in enumerate(derived.marginal):
        rows.append(
            {
                "position": i + 1,
                "marginal": share,
                "conditional": derived.conditional[i],
                "rejected_first": derived.rejected_first[i],
            }
        )
    return rows


def slice_rows(
    requests: Numbers,
    keep: Bools,
    name: str,
    split: Slice,
    like: AcceptanceCounts,
) -> list[dict[str, Cell]]:
    """One row per value of a slice that has requests with counts."""
    rows: list[dict[str, Cell]] = []
    codes = np.where(keep, split.codes, -1)
    found = sum_groups(requests, codes, len(split.names), like)
    for value, counts in zip(split.names, found, strict=True):
        if counts.requests == 0:
            continue
        d = derive(counts)
        rows.append(
            {
                name: value,
                "requests": counts.requests,
                "tokens_per_pass": d.tokens_per_pass,
                "acceptance_length": d.acceptance_length,
                "acceptance_rate": d.acceptance_rate,
                "coverage": d.coverage,
                "zero_accept_share": d.zero_accept_share,
            }
        )
    return rows


def output_position_rows(requests: Numbers, keep: Bools) -> list[dict[str, Cell]]:
    """Tokens per pass by how far into the answer the pass began, where chunks tell."""
    edges = (0, *OUTPUT_EDGES)
    rows: list[dict[str, Cell]] = []
    for k, start in enumerate(edges):
        made = requests.numbers.get(f"{TOKENS_ALONG}:{k}")
        taken = requests.numbers.get(f"{PASSES_ALONG}:{k}")
        if made is None or taken is None:
            return []
        told = keep & made.known & taken.known & (taken.values > 0)
        passes = float(taken.values[told].sum())
        if passes <= 0:
            continue
        is_last = k + 1 == len(edges)
        end = "and more" if is_last else f"to {edges[k + 1] - 1}"
        rows.append(
            {
                "output_position": f"{start} {end}",
                "requests": int(told.sum()),
                "passes": int(passes),
                "tokens_per_pass": float(made.values[told].sum()) / passes,
            }
        )
    return rows


def length_slice(tokens: Column) -> Slice:
    """Requests by a length in tokens: under 64, to 256, to 1024 ... tokens.

    Example:
        >>> import numpy as np
        >>> column = Column(np.array([10.0, 64.0, 1e6]), np.array([True, True, False]))
        >>> split = length_slice(column)
        >>> [split.names[c] if c >= 0 else None for c in split.codes]
        ['under 64', '64 to 255', None]
    """
    edges = np.array(LENGTH_EDGES)
    codes = np.searchsorted(edges, tokens.values, side="right").astype(np.int64)
    names = [f"under {edges[0]:g}"]
    names += [
        f"{low:g} to {high - 1:g}" for low, high in zip(edges, edges[1:], strict=False)
    ]
    names.append(f"{edges[-1]:g} and more")
    return Slice(np.where(tokens.known, codes, -1), tuple(names))


def time_slice(at_s: Column, keep: Bools, bins: int = 8) -> Slice:
    """Requests by when they were sent, in equal stretches of the kept ones' time.

    A route whose acceptance falls from stretch to stretch decays with uptime.
    """
    known = keep & at_s.known
    if not known.any():
        return Slice(np.full(at_s.values.size, -1, dtype=np.int64), ())
    start, end = float(at_s.values[known].min()), float(at_s.values[known].max())
    width = (end - start) / bins or 1.0
    codes = np.clip((at_s.values - start) // width, 0, bins - 1).astype(np.int64)
    names = tuple(f"{i * width:.0f} to {(i + 1) * width:.0f} s" for i in range(bins))
    return Slice(np.where(known, codes, -1), names)


def repetition_slice(case: NDArray[np.int64], at_s: Column, keep: Bools) -> Slice:
    """Requests by how often their prompt had been sent before: first, second ...

    N-gram speculation learns from its own answers: sending a prompt again lifts its
    acceptance and says nothing about fresh traffic.
    """
    codes = np.full(case.size, -1, dtype=np.int64)
    chosen = np.flatnonzero(keep & at_s.known)
    order = chosen[np.lexsort((at_s.values[chosen], case[chosen]))]
    # Requests of one case now stand together, first one first.
    is_first = np.ones(order.size, dtype=np.bool_)
    is_first[1:] = case[order][1:] != case[order][:-1]
    place = np.arange(order.size)
    codes[order] = place - np.maximum.accumulate(np.where(is_first, place, 0))
    most = int(codes.max(initial=-1)) + 1
    return Slice(codes, tuple(f"time {i + 1}" for i in range(most)))
