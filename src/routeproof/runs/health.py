"""Did the client keep up? Numbers per arm, phase and level, limits, a finding.

A slow client makes the faster arm look slower than it is, because that arm delivers
more per second. So the client watches itself, and a run in which it was the
bottleneck is invalid: its numbers are not the engine's.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from routeproof.records.manifest import ClientHealth, Threshold

TIMED_PHASES: frozenset[str] = frozenset({"latency", "sweep", "soak"})
"""Phases whose times are judged. In the quality phase a late client spoils nothing."""

FEWEST_SAMPLES = 20
"""A 99th percentile of fewer samples is not judged."""

SLACK_SHARE = 0.1
"""Lateness is believed up to this share of the median time to first chunk."""

Numbers = Mapping[str, float | None]


@dataclass(frozen=True, slots=True)
class Limit:
    """One row of the table of limits.

    Attributes:
        number: Name of the number it is about.
        limit: The most, or with ``at_least`` the least, that is believed.
        is_lateness: The limit is raised to ``SLACK_SHARE`` of the median time to
            first chunk when that is more: 20 ms of lag spoil 100 ms, not 2 s.
        needs: Name of the count of samples that ``FEWEST_SAMPLES`` is about.
        sentence: Said when it is broken; ``{value}`` and ``{limit}`` are filled in.
    """

    number: str
    limit: float
    sentence: str
    at_least: bool = False
    is_lateness: bool = False
    needs: str | None = None


LIMITS: tuple[Limit, ...] = (
    Limit(
        "loop_lag_p99_s",
        0.02,
        "the client's event loop was up to {value:.3f} s late (p99; {limit:.3f} s is "
        "believed): stamps are too late by as much",
        is_lateness=True,
        needs="loop_lag_samples",
    ),
    Limit(
        "dispatch_delay_p99_s",
        0.02,
        "requests left {value:.3f} s after they were due (p99; {limit:.3f} s is "
        "believed)",
        is_lateness=True,
        needs="requests",
    ),
    Limit(
        "rate_share",
        0.98,
        "only {value:.1%} of the rate asked for was sent ({limit:.0%} is needed)",
        at_least=True,
        needs="requests",
    ),
    Limit(
        "concurrency_share",
        0.9,
        "only {value:.1%} of the concurrency asked for was reached ({limit:.0%} is "
        "needed)",
        at_least=True,
        needs="requests",
    ),
    Limit(
        "not_started_share",
        0.01,
        "{value:.1%} of the arrivals could not be started ({limit:.0%} is allowed)",
    ),
    Limit(
        "cpu_share",
        0.9,
        "the client used {value:.0%} of one processor ({limit:.0%} is believed): use "
        "--shards for more load",
        needs="loop_lag_samples",
    ),
)

BUNDLED_SHARE = 0.5
"""From this share of chunks that came together with others, the chunk gaps are those
of whatever bundled them."""

LATE_FIRST_SHARE = 0.9
"""When the first chunk comes after this share of the whole time and the rest comes
together, something in between kept the stream back until it was nearly over."""


def judge_client(
    levels: Mapping[str, Numbers],
    *,
    before: Sequence[Threshold] = (),
    notes: Sequence[str] = (),
) -> ClientHealth:
    """The finding on the client.

    Args:
        levels: Numbers by ``arm/phase/level``.
        before: Checks made before the run (see ``runs.selftest``).
        notes: Sentences to keep, such as what proxies said of themselves.

    Returns:
        ``valid`` is false when any check failed. A number that could not be taken
        fails nothing and has ``ok=None``.
    """
    checks, reasons = list(before), []
    for check in before:
        if check.ok is False:
            reasons.append(f"self-test: {_shown(check)}")
    said = list(notes)
    for place, numbers in levels.items():
        if place.split("/")[1] in TIMED_PHASES:
            for limit in LIMITS:
                check = _check(place, limit, numbers)
                checks.append(check)
                if check.ok is False and check.value is not None:
                    words = limit.sentence.format(value=check.value, limit=check.limit)
                    reasons.append(f"{place}: {words}")
        said.extend(_bundled(place, numbers))
    return ClientHealth(
        valid=not reasons,
        reasons=tuple(reasons),
        notes=tuple(dict.fromkeys(said)),
        checks=tuple(checks),
        by_level={place: dict(numbers) for place, numbers in levels.items()},
    )


def worse_of(one: Numbers, other: Numbers) -> dict[str, float | None]:
    """Two parts of a level that was interrupted: the worse of each number."""
    least = {limit.number for limit in LIMITS if limit.at_least}
    merged: dict[str, float | None] = {}
    for name in {**one, **other}:
        known = [v for v in (one.get(name), other.get(name)) if v is not None]
        choose = min if name in least else max
        merged[name] = choose(known) if known else None
    return merged


def quantile(values: Sequence[float], share: float) -> float | None:
    """Nearest-rank quantile; ``None`` of nothing."""
    if len(values) == 0:
        return None
    return float(np.quantile(np.asarray(values), share, method="inverted_cdf"))


def _check(place: str, limit: Limit, numbers: Numbers) -> Threshold:
    value = numbers.get(limit.number)
    allowed = limit.limit
    first_s = numbers.get("first_chunk_p50_s")
    if limit.is_lateness and first_s is not None:
        allowed = max(allowed, SLACK_SHARE * first_s)
    enough = limit.needs is None or (numbers.get(limit.needs) or 0) >= FEWEST_SAMPLES
    ok = None
    if value is not None and enough:
        ok = value >= allowed if limit.at_least else value <= allowed
    return Threshold(
        name=f"{place}/{limit.number}",
        value=value,
        limit=allowed,
        at_least=limit.at_least,
        ok=ok,
    )


def _bundled(place: str, numbers: Numbers) -> list[str]:
    notes = []
    share = numbers.get("coalesced_share")
    if share is not None and share >= BUNDLED_SHARE:
        notes.append(
            f"{place}: {share:.0%} of the chunks came together with another one; chunk "
            "gaps there are not the engine's"
        )
    late = numbers.get("late_first_share")
    if late is not None and late >= BUNDLED_SHARE:
        notes.append(
            f"{place}: {late:.0%} of the streams were held back and came nearly at "
            "once; look for a proxy that buffers (nginx: `proxy_buffering off`) or "
            "compresses"
        )
    return notes


def _shown(check: Threshold) -> str:
    word = "at least" if check.at_least else "at most"
    value = "not taken" if check.value is None else f"{check.value:.4g}"
    return f"{check.name} is {value}, {word} {check.limit:.4g} is believed"
