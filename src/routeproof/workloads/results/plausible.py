"""Are the numbers in the unit they claim? Checked before anything is kept."""

from collections.abc import Iterable
from pathlib import Path

from routeproof.errors import FormatError
from routeproof.workloads.results.result import Measured

MAX_LITTLE_RATIO = 3.0
"""Mean latency times throughput is the mean number in flight (Little). More than this
many times the concurrency, or less than 1/30 of it, means another unit."""


def check_times(
    measured: Iterable[Measured], duration_s: float | None, path: Path, line: int | None
) -> None:
    """No request time can be negative or longer than the run it is part of.

    Raises:
        FormatError: One is; names it and both values.
    """
    for one in measured:
        if one.unit != "s" or one.value is None:
            continue
        too_long = duration_s is not None and one.value > duration_s * 1.05
        if one.value < 0 or too_long:
            raise FormatError(
                f"`{one.name}` {one.statistic} would be {one.value:g} s in a run of "
                f"{duration_s if duration_s is not None else float('nan'):g} s",
                path=path,
                line=line,
                hint="the file mixes seconds and milliseconds, or is not of this tool",
            )


def check_in_flight(
    latency_s: float | None,
    rate_per_s: float | None,
    concurrency: int | None,
    path: Path,
    line: int | None,
) -> None:
    """Latency, throughput and concurrency must agree on how much was in flight.

    Raises:
        FormatError: They differ by more than a factor that queueing can explain.
    """
    if latency_s is None or rate_per_s is None or not concurrency:
        return
    ratio = latency_s * rate_per_s / concurrency
    if ratio > MAX_LITTLE_RATIO or ratio < 1 / 30:
        raise FormatError(
            f"a latency of {latency_s:g} s at {rate_per_s:g} requests/s means "
            f"{latency_s * rate_per_s:g} requests in flight, not {concurrency}",
            path=path,
            line=line,
            hint="the times are not in the unit their names say",
        )
