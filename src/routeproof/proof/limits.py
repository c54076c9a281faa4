"""Every number of a proof file that has limits, in one table."""

import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from routeproof.errors import ConfigError
from routeproof.proof.proof import Proof


class _Range(NamedTuple):
    """Limits of a number; an open end is excluded itself."""

    low: float = -math.inf
    high: float = math.inf
    low_open: bool = False
    high_open: bool = False

    def holds(self, value: float) -> bool:
        above = value > self.low if self.low_open else value >= self.low
        below = value < self.high if self.high_open else value <= self.high
        return above and below

    def __str__(self) -> str:
        low = f"{'above' if self.low_open else 'at least'} {self.low:g}"
        high = f"{'below' if self.high_open else 'at most'} {self.high:g}"
        ends = [
            text
            for text, end in ((low, self.low), (high, self.high))
            if math.isfinite(end)
        ]
        return " and ".join(ends)


_POSITIVE = _Range(0, low_open=True)
_COUNT = _Range(1)

RANGES: tuple[tuple[str, _Range], ...] = (
    (r"quality\[\d+\]\.tolerance", _Range(0, 1)),
    (r"quality\[\d+\]\.(k|samples)", _COUNT),
    (r"policy\.alpha", _Range(0, 0.5, low_open=True, high_open=True)),
    (r"policy\.power", _Range(0, 1, low_open=True, high_open=True)),
    (r"policy\.length_ratio_guard", _POSITIVE),
    (r"policy\.until_decided\.floor", _COUNT),
    (
        r"policy\.until_decided\.early_(harm_)?share",
        _Range(0, 1, low_open=True, high_open=True),
    ),
    (r"workload\.trials", _COUNT),
    (r"workload\.max_cases", _COUNT),
    (r"workload\.classes_required\..*", _Range(0)),
    (r"workload\.sampling\.temperature", _Range(0)),
    (r"workload\.sampling\.top_p", _Range(0, 1, low_open=True)),
    (r"workload\.sampling\.min_p", _Range(0, 1)),
    (r"workload\.sampling\.max_tokens", _COUNT),
    (r"workload\.load\.\w+\.concurrency\[\d+\]", _COUNT),
    (r"workload\.load\.\w+\.(request_rate\[\d+\]|duration_s|burstiness)", _POSITIVE),
    (r"workload\.load\.\w+\.requests", _COUNT),
    (r"workload\.load\.\w+\.(ramp_s|think_s)", _Range(0)),
    (r"workload\.load\.(block_size)", _COUNT),
    (r"workload\.load\.warmup_requests", _Range(0)),
    (r"workload\.load\.request_timeout_s", _POSITIVE),
    (r"workload\.load\.max_failure_share", _Range(0, 1)),
    (r"performance\.slo\..*", _POSITIVE),
    (r"performance\.gain\.at_least", _POSITIVE),
    (r"performance\.worse_tolerance_ratio", _Range(1)),
    (r"performance\.acceptance\.tokens_per_pass_min", _COUNT),
    (r"performance\.acceptance\.acceptance_rate_min", _Range(0, 1)),
    (r"performance\.acceptance\.fall_max_share", _Range(0, 1)),
    (r"memory\..*", _POSITIVE),
    (r"(baseline|candidate)\.speculation\.draft_tokens", _COUNT),
    (r"(baseline|candidate)\.context_limit_tokens", _COUNT),
    (r"(baseline|candidate)\.hardware\.count", _COUNT),
    (r"(baseline|candidate)\.launch\.ready_timeout_s", _POSITIVE),
    (r"canary\.tolerances\..*", _Range(0, 1)),
    (r"canary\.(steps\[\d+\]|split\..*)", _Range(1e-6, 1)),
    (r"canary\.(deadlines\..*|lease_s)", _POSITIVE),
    (r"canary\.alpha", _Range(0, 0.5, low_open=True, high_open=True)),
    (r"canary\.(minimum_scored|per_caller)", _COUNT),
    (r"canary\.traffic\.\w+_deadline_s", _POSITIVE),
    (r"canary\.traffic\.body_bytes_max", _COUNT),
    (r"canary\.privacy\.retention_s", _POSITIVE),
    (r"canary\.graders\.asks_per_minute", _POSITIVE),
    (r"canary\.graders\.waiting_max", _COUNT),
)
"""Every number with limits, by its place in the file."""


def _numbers(value: Any, place: str) -> Iterator[tuple[str, float]]:
    if isinstance(value, bool) or value is None:
        return
    if isinstance(value, (int, float)):
        yield place, value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from _numbers(inner, f"{place}.{key}".removeprefix("."))
    elif isinstance(value, (list, tuple)):
        for index, inner in enumerate(value):
            yield from _numbers(inner, f"{place}[{index}]")


def check_numbers(proof: Proof, path: Path) -> None:
    """Check that every number of a proof is finite and inside its limits.

    Raises:
        ConfigError: Names the first number that is not, its place and its limits.
    """
    for place, number in _numbers(msgspec.to_builtins(proof), ""):
        if not math.isfinite(number):
            raise ConfigError(
                f"must be a finite number, got {number}",
                path=path,
                key=place,
                hint="write a plain number such as 0.02",
            )
        for pattern, limits in RANGES:
            if re.fullmatch(pattern, place) and not limits.holds(number):
                raise ConfigError(
                    f"must be {limits}, got {number:g}", path=path, key=place
                )
