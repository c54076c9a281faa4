"""When requests are due: absolute offsets, drawn once from a seed.

Offsets are seconds from the start of a load stage. They are computed before the run
and never from each other while it runs, so that a client that is late for one request
is not late for all that follow. Both arms get the same offsets.

Gaps are drawn by inverting the distribution at uniform numbers of a PCG64 stream,
so that a seed means the same arrivals with every version of NumPy.
"""

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from routeproof.errors import ConfigError

ArrivalKind = Literal["constant", "poisson", "gamma"]
Offsets = NDArray[np.float64]

MAX_ARRIVALS = 10_000_000
"""More than this in one stage is taken for a slip of the pen."""


def arrival_offsets_s(
    kind: ArrivalKind,
    rate_per_s: float,
    *,
    seed: int,
    n: int | None = None,
    duration_s: float | None = None,
    burstiness: float = 1.0,
) -> Offsets:
    """Due times of an open-loop stage, in seconds from its start, ascending.

    ``constant``: request ``k`` at ``k / rate``. ``poisson``: exponential gaps of mean
    ``1 / rate``, the first gap before the first request. ``gamma``: gaps of the same
    mean with shape ``burstiness``; their squared coefficient of variation is
    ``1 / burstiness``, so that 1 is Poisson, below 1 is burstier, and very large
    values approach constant.

    Args:
        kind: The process.
        rate_per_s: Mean arrivals per second.
        seed: Decides the gaps; not used by ``constant``.
        n: Number of arrivals; with ``duration_s`` the tighter of the two ends it.
        duration_s: Only arrivals strictly before this moment.
        burstiness: Shape of the gamma distribution.

    Returns:
        Shape ``(n_arrivals,)``. May be empty when ``duration_s`` is short.

    Raises:
        ConfigError: Rate, burstiness, ``n`` or ``duration_s`` is not positive and
            finite, or neither ``n`` nor ``duration_s`` is given.
    """
    _check_positive("request_rate", rate_per_s)
    _check_positive("burstiness", burstiness)
    if n is None and duration_s is None:
        raise ConfigError(
            "an open-loop stage needs `requests` or `duration_s`",
            hint="say how many requests to send, or for how long",
        )
    if duration_s is not None:
        _check_positive("duration_s", duration_s)
    if n is not None:
        _check_positive("requests", n)
    if kind == "constant":
        return _constant(rate_per_s, n, duration_s)
    rng = np.random.Generator(np.random.PCG64(seed))
    count = n if n is not None else _enough(rate_per_s, duration_s or 0.0, burstiness)
    _check_count(count)
    offsets = np.cumsum(_gaps(kind, rng.random(count), rate_per_s, burstiness))
    if duration_s is None:
        return offsets
    while n is None and offsets[-1] < duration_s:
        more = np.cumsum(_gaps(kind, rng.random(count), rate_per_s, burstiness))
        offsets = np.concatenate([offsets, offsets[-1] + more])
        _check_count(len(offsets))
    return offsets[offsets < duration_s]


def closed_offsets_s(concurrency: int, *, ramp_s: float = 0.0) -> Offsets:
    """When each stream of a closed loop begins, in seconds; shape ``(concurrency,)``.

    ``k * ramp_s / concurrency``: all at once without a ramp. What a stream sends
    later is due when its previous answer has ended; there is no schedule for it.

    Raises:
        ConfigError: ``concurrency`` is not positive, or the ramp is negative.
    """
    _check_positive("concurrency", concurrency)
    if not 0 <= ramp_s < float("inf"):
        raise ConfigError(f"`ramp_s` must be 0 or more, got {ramp_s}")
    return np.arange(concurrency, dtype=np.float64) * (ramp_s / concurrency)


def _constant(rate: float, n: int | None, duration_s: float | None) -> Offsets:
    count = n if n is not None else MAX_ARRIVALS + 1
    if duration_s is not None:
        count = min(count, int(np.ceil(duration_s * rate)))
    _check_count(count)
    offsets = np.arange(count) / rate
    return offsets if duration_s is None else offsets[offsets < duration_s]


def _gaps(kind: ArrivalKind, u: Offsets, rate: float, burstiness: float) -> Offsets:
    if kind == "poisson" or burstiness == 1.0:
        return -np.log1p(-u) / rate
    # Imported here because only this process needs it and scipy is slow to load.
    from scipy.special import gammaincinv

    gaps: Offsets = gammaincinv(burstiness, u) / (burstiness * rate)
    return gaps


def _enough(rate: float, duration_s: float, burstiness: float) -> int:
    """Arrivals that exceed ``duration_s`` nearly always; the rest is drawn on."""
    mean = rate * duration_s
    return int(mean + 6 * np.sqrt(mean / min(burstiness, 1.0)) + 16)


def _check_positive(name: str, value: float) -> None:
    if not 0 < value < float("inf"):
        raise ConfigError(f"`{name}` must be positive and finite, got {value}")


def _check_count(count: int) -> None:
    if count > MAX_ARRIVALS:
        raise ConfigError(
            f"{count} arrivals in one stage are more than the {MAX_ARRIVALS} allowed",
            hint="lower `request_rate`, `duration_s` or `requests`",
        )
