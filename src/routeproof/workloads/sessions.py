"""Conversations: several requests of one person, with time to think between them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from routeproof.errors import ConfigError
from routeproof.workloads.case import Case


@dataclass(frozen=True, slots=True)
class Turn:
    """One request of a session.

    Attributes:
        case_index: Which case is sent.
        think_s: Due so long after the end of the turn before; 0 for the first turn,
            which is due at the start of the session.
    """

    case_index: int
    think_s: float


@dataclass(frozen=True, slots=True)
class Session:
    """Turns that follow each other; ``start_s`` counts from the start of the stage."""

    start_s: float
    turns: tuple[Turn, ...]


def plan_sessions(
    cases: Sequence[Case],
    starts_s: NDArray[np.float64],
    *,
    mean_think_s: float,
    seed: int,
    spread: float = 1.0,
) -> tuple[Session, ...]:
    """Sessions out of cases: those with one ``cluster`` are its turns, in order.

    Sessions start at ``starts_s`` (``arrivals.arrival_offsets_s`` with a rate of
    sessions) in the order in which their first case appears; a case without a
    cluster is a session of one turn. Think times are log-normal with the mean asked
    for. The whole plan comes from the seed, so both arms get the same.

    Args:
        cases: The cases; a later turn's messages hold the turns before it.
        starts_s: Start of each session, shape ``(n_sessions,)`` or more.
        mean_think_s: Mean think time; 0 sends at once.
        seed: Decides the think times.
        spread: Standard deviation of their logarithm.

    Raises:
        ConfigError: Fewer starts than sessions, or a think time that makes no sense.
    """
    if not 0 <= mean_think_s < float("inf"):
        raise ConfigError(f"`mean_think_s` must be 0 or more, got {mean_think_s}")
    groups: dict[str, list[int]] = {}
    for index, case in enumerate(cases):
        key = f"c{case.cluster}" if case.cluster is not None else f"i{index}"
        groups.setdefault(key, []).append(index)
    if len(starts_s) < len(groups):
        raise ConfigError(
            f"{len(groups)} sessions need as many start times, got {len(starts_s)}"
        )
    thinks = _think_times_s(len(cases), mean_think_s, spread, seed)
    return tuple(
        Session(
            start_s=float(start),
            turns=tuple(
                Turn(index, float(thinks[index]) if number else 0.0)
                for number, index in enumerate(indices)
            ),
        )
        for start, indices in zip(starts_s, groups.values(), strict=False)
    )


def _think_times_s(
    n: int, mean_s: float, spread: float, seed: int
) -> NDArray[np.float64]:
    # Imported here because few runs have sessions and scipy is slow to load.
    from scipy.special import ndtri

    rng = np.random.Generator(np.random.PCG64(seed))
    normal = ndtri(rng.random(n) + 2.0**-54)  # never 0, where it is -inf
    times: NDArray[np.float64] = mean_s * np.exp(spread * normal - spread**2 / 2)
    return times
