"""A part of the cases, drawn by class from a seed."""

from collections.abc import Mapping, Sequence

import numpy as np

from routeproof.errors import ConfigError
from routeproof.workloads.case import Case


def stratified(
    cases: Sequence[Case],
    n: int,
    *,
    seed: int,
    at_least: Mapping[str, int] | None = None,
) -> tuple[Case, ...]:
    """``n`` cases in which every class keeps its share, in their original order.

    Each class first gets what ``at_least`` asks for, the rest is shared out in
    proportion to the class sizes (largest remainder, ties by order of appearance).
    Which cases of a class are drawn depends on the seed and that class alone, and a
    smaller ``n`` draws a subset of what a larger one draws from the same class, so
    that a short run is part of the long one.

    Args:
        cases: What to draw from.
        n: How many cases; all of them when there are not more.
        seed: Decides which.
        at_least: Minimum number of cases by class.

    Raises:
        ConfigError: ``n`` is not positive, or smaller than the minimums together.
    """
    minimum = dict(at_least or {})
    if n < 1:
        raise ConfigError(f"must be at least 1, got {n}", key="workload.max_cases")
    if sum(minimum.values()) > n:
        raise ConfigError(
            f"`max_cases` is {n}, but `classes_required` asks for "
            f"{sum(minimum.values())} cases",
            key="workload.max_cases",
            hint="raise `max_cases` or lower `classes_required`",
        )
    if n >= len(cases):
        return tuple(cases)
    members: dict[str, list[int]] = {}
    for index, case in enumerate(cases):
        members.setdefault(case.class_, []).append(index)
    quota = _quotas({k: len(v) for k, v in members.items()}, n, minimum)
    chosen: set[int] = set()
    for name, indices in members.items():
        order = _shuffled(len(indices), seed, name)
        chosen.update(indices[i] for i in order[: quota[name]])
    return tuple(cases[i] for i in sorted(chosen))


def _quotas(
    sizes: Mapping[str, int], n: int, minimum: Mapping[str, int]
) -> dict[str, int]:
    """Cases per class: minimums first, then proportional, never above the size."""
    total = sum(sizes.values())
    wanted = {
        name: max(n * size / total, minimum.get(name, 0))
        for name, size in sizes.items()
    }
    quota = {
        name: min(sizes[name], max(int(share), minimum.get(name, 0)))
        for name, share in wanted.items()
    }
    order = list(sizes)
    while (left := n - sum(quota.values())) != 0:
        if left > 0:
            open_ = [k for k in order if quota[k] < sizes[k]]
            name = max(open_, key=lambda k: (wanted[k] - quota[k], -order.index(k)))
            quota[name] += 1
        else:
            open_ = [k for k in order if quota[k] > minimum.get(k, 0)]
            name = max(open_, key=lambda k: (quota[k] - n * sizes[k] / total, quota[k]))
            quota[name] -= 1
    return quota


def _shuffled(n: int, seed: int, name: str) -> list[int]:
    # The name enters the seed, so that a class is drawn alike whatever else is there.
    rng = np.random.Generator(np.random.PCG64([seed, *name.encode()]))
    return [int(i) for i in np.argsort(rng.random(n), kind="stable")]
