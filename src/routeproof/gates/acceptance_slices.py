"""The ways in which acceptance is split: what is asked, when, and how often."""

import numpy as np
from numpy.typing import NDArray

from routeproof.gates.slices import CaseFacts
from routeproof.metrics.acceptance_profile import (
    Slice,
    length_slice,
    repetition_slice,
    time_slice,
)
from routeproof.metrics.requests import Requests
from routeproof.records.columns import Bools

TAGS = ("class", "structured", "turns", "temperature", "thinking", "language")
"""Tags of the cases that are always looked at; see `gates.slices.case_facts`."""


def splits(requests: Requests, keep: Bools, facts: CaseFacts) -> dict[str, Slice]:
    """Every way to split the requests of ``keep``, by its name."""
    case = requests.label("case_id").codes.astype(np.int64)
    at = requests.number("intended_s")
    soak = requests.at(phase="soak")
    found = {tag: _by_tag(requests, facts, tag) for tag in TAGS}
    if not found["thinking"].names:
        found["thinking"] = _by_sign(requests, "reasoning_tokens", ("off", "on"))
    return {
        **found,
        "prompt_length": length_slice(requests.number("prompt_tokens")),
        "output_length": length_slice(requests.number("output_tokens")),
        "cache": _by_sign(requests, "cached_tokens", ("cold", "hit")),
        "load": by_load(requests, keep),
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


def _by_sign(requests: Requests, number: str, names: tuple[str, str]) -> Slice:
    """Requests by whether a count of theirs is 0; those that do not tell are out."""
    column = requests.number(number)
    codes = np.where(column.known, (column.values > 0).astype(np.int64), -1)
    return Slice(codes, names)


def by_load(requests: Requests, keep: Bools) -> Slice:
    """Requests by the load they were sent under, in the order in which it came.

    A load that is come back to (a ramp up and down) is a value of its own, so that a
    draft length that collapsed at the top and stayed there is seen.
    """
    codes = np.full(requests.n, -1, dtype=np.int64)
    names: list[str] = []
    at = requests.number("intended_s")
    for phase, level in requests.levels():
        if phase in ("latency", "sweep", "soak"):
            codes[requests.at(phase=phase, level=level)] = len(names)
            names.append(f"{phase} {level}")
    own = np.flatnonzero(keep & (codes >= 0) & at.known)
    order = own[np.argsort(at.values[own], kind="stable")]
    return _visits(codes, names, order)


def _visits(
    codes: NDArray[np.int64], names: list[str], order: NDArray[np.int64]
) -> Slice:
    """Stretches of equal codes in order of time, each a value of its own."""
    if not order.size:
        return Slice(codes, tuple(names))
    runs = np.split(order, np.flatnonzero(np.diff(codes[order])) + 1)
    if len(runs) <= len(set(codes[order].tolist())):
        return Slice(codes, tuple(names))
    made = np.full(codes.size, -1, dtype=np.int64)
    seen: dict[int, int] = {}
    shown: list[str] = []
    for run in runs:
        load = int(codes[run[0]])
        seen[load] = seen.get(load, 0) + 1
        again = "" if seen[load] == 1 else f", time {seen[load]}"
        made[run] = len(shown)
        shown.append(f"{names[load]}{again}")
    return Slice(made, tuple(shown))
