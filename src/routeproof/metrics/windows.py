"""Rates of one arm at one load: throughput, goodput, correct goodput, steady window."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from routeproof.metrics.requests import Requests
from routeproof.records.columns import Bools, Floats

RATED = ("intended_s", "end_s", "output_tokens")
"""Number columns that `rates` reads."""

STEADY_SHARE = 0.9
"""Concurrency, as a share of its plateau, above which a level counts as steady."""


@dataclass(frozen=True, slots=True)
class Rates:
    """What one arm did at one load.

    ``goodput_per_s`` counts requests inside every SLO, ``correct_goodput_per_s`` those
    of them that were scored correct; both are ``None`` where no SLO was agreed, or
    nothing was scored. Rates are over the steady window, ``whole_requests_per_s`` is
    not. A failed request is in ``requests`` and never good.
    """

    requests: int
    failed: int
    window_s: tuple[float, float] | None
    requests_per_s: float | None
    whole_requests_per_s: float | None
    output_tokens_per_s: float | None
    goodput_per_s: float | None
    correct_goodput_per_s: float | None
    slo_share: float | None
    achieved_concurrency: float | None


def rates(
    requests: Requests, *, within: Bools | None = None, correct: Bools | None = None
) -> Rates:
    """Rates of requests that belong together.

    Args:
        requests: One arm, phase and level.
        within: True for a request inside every SLO; ``None`` when none is agreed.
        correct: True for an answer scored correct; ``None`` when nothing is scored.
    """
    start, end = requests.number("intended_s"), requests.number("end_s")
    timed = start.known & end.known
    good = requests.served()
    window = steady_window(start.values[timed], end.values[timed])
    n, failed = requests.n, int(n_false(good))
    share = None if within is None or not n else float((within & good).sum()) / n
    if window is None:
        nothing = (None,) * 5
        return Rates(
            n, failed, None, *nothing, slo_share=share, achieved_concurrency=None
        )
    ended = timed & (end.values > window[0]) & (end.values <= window[1])
    length = window[1] - window[0]
    tokens = requests.number("output_tokens")
    counted = ended & good & tokens.known
    whole = float(end.values[timed].max() - start.values[timed].min())
    tells = bool((tokens.known | ~good)[ended].all()) and bool(counted.any())
    return Rates(
        requests=n,
        failed=failed,
        window_s=window,
        requests_per_s=float((ended & good).sum()) / length,
        whole_requests_per_s=float(good.sum()) / whole if whole > 0 else None,
        output_tokens_per_s=float(tokens.values[counted].sum()) / length
        if tells
        else None,
        goodput_per_s=None
        if within is None
        else float((ended & good & within).sum()) / length,
        correct_goodput_per_s=None
        if within is None or correct is None
        else float((ended & good & within & correct).sum()) / length,
        slo_share=share,
        achieved_concurrency=concurrency(
            start.values[timed], end.values[timed], window
        ),
    )


def n_false(values: Bools) -> int:
    """How many are false."""
    return int(values.size - values.sum())


def steady_window(start_s: Floats, end_s: Floats) -> tuple[float, float] | None:
    """The time in which the load was on its plateau, without ramps.

    The plateau is the time-weighted median of the requests in flight over the whole
    run of the level; the window runs from the first to the last moment with at least
    ``STEADY_SHARE`` of it. With no ramp that is the whole run of the level.

    Returns:
        Start and end on the run's clock, or ``None`` without any duration.
    """
    if not start_s.size:
        return None
    at = np.concatenate([start_s, end_s])
    step = np.concatenate([np.ones(start_s.size), -np.ones(end_s.size)])
    order = np.lexsort((step, at))
    at, step = at[order], step[order]
    flying = np.cumsum(step)[:-1]
    lasting = np.diff(at)
    if lasting.sum() <= 0:
        return None
    by_size = np.argsort(flying, kind="stable")
    middle = np.searchsorted(np.cumsum(lasting[by_size]), lasting.sum() / 2)
    plateau = flying[by_size][middle]
    high = np.flatnonzero((flying >= STEADY_SHARE * plateau) & (lasting > 0))
    return float(at[high[0]]), float(at[high[-1] + 1])


MOST_POINTS = 240
"""Points of a course that is shown."""


def flying(start_s: Floats, end_s: Floats) -> tuple[tuple[float, int], ...]:
    """Requests under way over time: (moment, how many from then on), ascending.

    At most ``MOST_POINTS``, evenly spaced when there were more changes than that.
    """
    at = np.unique(np.concatenate([start_s, end_s]))
    if at.size > MOST_POINTS:
        at = np.linspace(at[0], at[-1], MOST_POINTS)
    begun = np.searchsorted(np.sort(start_s), at, side="right")
    ended = np.searchsorted(np.sort(end_s), at, side="right")
    return tuple(zip(at.tolist(), (begun - ended).tolist(), strict=True))


def concurrency(
    start_s: Floats, end_s: Floats, window_s: tuple[float, float]
) -> float | None:
    """Mean number of requests in flight inside a window."""
    length = window_s[1] - window_s[0]
    if length <= 0:
        return None
    inside = np.minimum(end_s, window_s[1]) - np.maximum(start_s, window_s[0])
    return float(np.maximum(inside, 0.0).sum() / length)


def within_slo(requests: Requests, limits: Mapping[str, float]) -> Bools | None:
    """True where a request keeps every limit; ``None`` when there is no limit.

    Args:
        requests: Any.
        limits: Most seconds by metric name. An unknown value does not keep its limit:
            an answer whose time cannot be told is not counted as good.
    """
    if not limits:
        return None
    keeps = requests.served()
    for name, most in limits.items():
        column = requests.number(name)
        keeps &= column.known & (column.values <= most)
    return keeps
