"""Cases in random order, so that any first part of them is a random sample."""

from collections.abc import Sequence

import numpy as np

from routeproof.workloads.case import Case


def drawn_order(cases: Sequence[Case], seed: int) -> tuple[Case, ...]:
    """The cases in an order drawn from ``seed``.

    Cases of one ``cluster`` are drawn together and keep their own order: they are one
    unit of evidence. The same cases and seed always give the same order.
    """
    units: dict[str, list[Case]] = {}
    for case in cases:
        units.setdefault(unit_of(case), []).append(case)
    rng = np.random.Generator(np.random.PCG64([seed, 0x0DE2]))
    names = list(units)
    order = rng.permutation(len(names)).tolist()
    return tuple(case for place in order for case in units[names[place]])


def unit_of(case: Case) -> str:
    """What a case is evidence about: its cluster, or itself."""
    return case.id if case.cluster is None else f"cluster:{case.cluster}"
