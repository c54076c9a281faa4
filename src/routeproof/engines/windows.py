"""Differences of counters between scrapes: per replica, split at restarts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from routeproof.engines.adapter import Counters

START = "process_start_s"


@dataclass(frozen=True, slots=True)
class Window:
    """What counters grew by over a window, all replicas together.

    Attributes:
        deltas: Normalised counter name to its increase; counters that were not there
            at both ends are absent.
        start_s, end_s: The window, on the clock of the scrapes.
        restarts: How often a replica began anew; what happened between the last
            scrape before and the first after is in no delta.
        reasons: What speaks against the window, in words.
        unknown_names: Series about speculation that no table knows.
    """

    deltas: dict[str, float]
    start_s: float
    end_s: float
    restarts: int = 0
    reasons: tuple[str, ...] = ()
    unknown_names: tuple[str, ...] = ()


def window(scrapes: Sequence[Counters]) -> Window:
    """Increase of every counter from the first scrape to the last.

    Between two scrapes of a replica a counter that fell, or a process start that
    moved, is a restart: that step is left out. A replica that comes or goes is noted.
    Counters of positions appear with their first hit, so one that is new beside known
    ones started from 0.

    Args:
        scrapes: In time order, at least two, of the same endpoint.

    Raises:
        ValueError: Fewer than two scrapes.
    """
    if len(scrapes) < 2:
        raise ValueError("a window needs two scrapes")
    deltas: dict[str, float] = {}
    missing: set[str] = set()
    reasons: list[str] = []
    restarts = 0
    for before, after in zip(scrapes, scrapes[1:], strict=False):
        if set(before.replicas) != set(after.replicas):
            reasons.append("a replica came or went")
        for replica, values in after.replicas.items():
            old = before.replicas.get(replica)
            if old is None:
                continue
            if _restarted(old, values, before, after):
                restarts += 1
                continue
            _add(deltas, missing, old, values)
    if restarts:
        reasons.append(f"the engine restarted {restarts} times")
    if not _at_rest(scrapes[0]) or not _at_rest(scrapes[-1]):
        reasons.append("requests were running at an end of the window")
    return Window(
        deltas={k: v for k, v in deltas.items() if k not in missing},
        start_s=scrapes[0].at_s,
        end_s=scrapes[-1].at_s,
        restarts=restarts,
        reasons=tuple(dict.fromkeys(reasons)),
        unknown_names=scrapes[-1].unknown_names,
    )


def _is_counter(name: str) -> bool:
    return name.partition(":")[0].endswith("_total")


def _restarted(
    old: Mapping[str, float],
    new: Mapping[str, float],
    before: Counters,
    after: Counters,
) -> bool:
    started = before.values.get(START), after.values.get(START)
    if None not in started and started[0] != started[1]:
        return True
    return any(
        _is_counter(name) and value > new[name]
        for name, value in old.items()
        if name in new
    )


def _add(
    deltas: dict[str, float],
    missing: set[str],
    old: Mapping[str, float],
    new: Mapping[str, float],
) -> None:
    for name, value in new.items():
        if not _is_counter(name):
            continue
        if name in old:
            deltas[name] = deltas.get(name, 0.0) + value - old[name]
        elif ":" in name:
            deltas[name] = deltas.get(name, 0.0) + value
        else:
            missing.add(name)
    missing.update(n for n in old if _is_counter(n) and n not in new)


def _at_rest(scrape: Counters) -> bool:
    return not scrape.values.get("running") and not scrape.values.get("waiting")
