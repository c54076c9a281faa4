"""What changed when a number shifted: events at that time, and the traffic."""

from collections.abc import Mapping, Sequence

import numpy as np

from routeproof.jobs.monitoring.ticks import Event
from routeproof.metrics.live import LIVE, Numbers

DRAFT = "speculation.draft."
TRAFFIC = (
    "prompt_tokens_per_request",
    "output_tokens_per_request",
    "prompt_share",
    "cached_share",
    "requests_per_s",
    "running",
)
LEAST_CHANGE = 0.25
"""Relative change of a number of the traffic that is worth naming."""

APART = 0.9
"""Share of pairs (one value from either side) in which the later one is the larger
(or the smaller): the two sides hardly overlap."""


def route_changes(old: Mapping[str, str], new: Mapping[str, str]) -> tuple[str, ...]:
    """What the engine says of itself now and did not before, in words.

    What it does not say any more is no change; load and limits it observes
    (``observed.*``) are no part of the route.
    """
    found = []
    for name in sorted(old.keys() & new.keys()):
        if old[name] != new[name] and not name.startswith("observed."):
            found.append(f"{_group(name)}: {name} {old[name]} -> {new[name]}")
    return tuple(sorted(found, key=lambda text: not text.startswith("draft")))


def _group(name: str) -> str:
    if name.startswith(DRAFT):
        return "draft version"
    if name.startswith("engine."):
        return "engine version"
    return "route flags" if name != "model.served" else "model"


def causes_of(
    events: Sequence[Event], happened_s: tuple[float, float], *, noticed_s: float
) -> tuple[str, ...]:
    """Events at the time of a shift; changes of the route first.

    Args:
        events: In any order.
        happened_s: Stretch of time in which a cause must lie.
        noticed_s: A change of the route is noticed only when the engine is asked what
            it is, so one that was noticed up to now counts.
    """
    order = {"route": 0, "restart": 1, "outage": 2, "back": 3}
    start, end = happened_s
    near = [
        event
        for event in events
        if event.kind in order
        and start <= event.at_s <= (noticed_s if event.kind == "route" else end)
    ]
    return tuple(e.words for e in sorted(near, key=lambda e: order[e.kind]))


def traffic_changes(
    before: Sequence[Numbers], after: Sequence[Numbers]
) -> tuple[str, ...]:
    """Numbers of the traffic that moved with the shift, in words.

    Args:
        before: The windows up to the shift.
        after: Those from it on.
    """
    found = []
    for name in TRAFFIC:
        one, other = _known(before, name), _known(after, name)
        if one.size < 3 or other.size < 3:
            continue
        old, new = float(np.median(one)), float(np.median(other))
        if old == new or abs(new - old) < LEAST_CHANGE * max(abs(old), abs(new)):
            continue
        larger = float(np.mean(other[None, :] > one[:, None]))
        if max(larger, 1 - larger) >= APART:
            found.append(f"traffic: {LIVE[name].words} {old:.3g} -> {new:.3g}")
    return tuple(found)


def _known(windows: Sequence[Numbers], name: str) -> np.ndarray:
    values = [w[name] for w in windows if w.get(name) is not None]
    return np.array(values, dtype=np.float64)
