"""Numbers as words: the one place where units are turned into what people read.

Unknown is written ``unknown``, never 0. Nothing is computed here beyond the change of
unit (seconds to milliseconds, a share to points or percent).
"""

import re
from collections.abc import Callable

from routeproof.gates.facts import Percentile
from routeproof.gates.result import Check, Status
from routeproof.stats.interval import Interval
from routeproof.verdict import Decision

UNKNOWN = "unknown"

STATUS_WORD: dict[Status, str] = {
    Status.PASSED: "PASSED",
    Status.FAILED: "FAILED",
    Status.INCONCLUSIVE: "INCONCLUSIVE",
    Status.NOT_MEASURED: "NOT MEASURED",
}

STATUS_MARK: dict[Status, str] = {
    Status.PASSED: "✓",
    Status.FAILED: "✗",
    Status.INCONCLUSIVE: "?",
    Status.NOT_MEASURED: "–",
}

DECISION_WORD: dict[Decision, str] = {
    Decision.ADOPT: "ADOPT",
    Decision.PILOT: "PILOT",
    Decision.WAIT: "WAIT",
    Decision.AVOID: "AVOID",
    Decision.NONE: "NO VERDICT",
}

GATE_TITLE: dict[str, str] = {
    "inventory": "Inventory",
    "parity": "Parity",
    "acceptance": "Acceptance",
    "latency": "Latency",
    "correctness": "Correctness",
    "memory_stability": "Memory and stability",
    "rollback": "Rollback",
}

_BYTE_STEPS = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"))
_SHARE_UNITS = frozenset({"share", "rate"})


def plain(value: float) -> str:
    """A number with about three digits that mean something, thousands grouped.

    Example:
        >>> plain(1234567.0), plain(61.25), plain(0.0625), plain(3.0)
        ('1,234,567', '61.2', '0.0625', '3')
    """
    size = abs(value)
    if value == int(value) and size < 1e15:
        return f"{int(value):,}"
    if size >= 1000:
        return f"{value:,.0f}"
    if size >= 100:
        return f"{value:.0f}"
    if size >= 10:
        return f"{value:.1f}"
    if size >= 1:
        return f"{value:.2f}"
    return f"{value:.3g}"


def seconds(value: float) -> str:
    """A duration in the unit a person would use.

    Example:
        >>> seconds(0.0004), seconds(0.125), seconds(2.5), seconds(5400.0)
        ('0.40 ms', '125 ms', '2.50 s', '90 min')
    """
    size = abs(value)
    if size == 0:
        return "0 s"
    if size < 0.01:
        return f"{1000 * value:.2f} ms"
    if size < 0.1:
        return f"{1000 * value:.1f} ms"
    if size < 1:
        return f"{1000 * value:.0f} ms"
    if size < 100:
        return f"{value:.2f} s" if size < 10 else f"{value:.1f} s"
    return f"{value / 60:.0f} min" if size >= 600 else f"{value:.0f} s"


def size_in_bytes(value: float) -> str:
    """Bytes in decimal steps: ``1.82 GB``."""
    for step, unit in _BYTE_STEPS:
        if abs(value) >= step:
            return f"{value / step:.2f} {unit}"
    return f"{value:.0f} B"


def percent(value: float) -> str:
    """A share as percent: 0.125 is ``12.5 %``."""
    scaled = 100 * value
    return f"{scaled:.0f} %" if scaled == round(scaled) else f"{scaled:.1f} %"


_BY_UNIT: dict[str, Callable[[float], str]] = {
    "s": seconds,
    "bytes": size_in_bytes,
    "share": percent,
    "rate": percent,
    "1": plain,
    "": plain,
}


def number(value: float | None, unit: str = "") -> str:
    """A value with its unit, or ``unknown``."""
    if value is None:
        return UNKNOWN
    say = _BY_UNIT.get(unit)
    return say(value) if say else f"{plain(value)} {unit}"


def points(value: float) -> str:
    """A difference of shares in percentage points, signed: ``-0.4``.

    A difference that rounds to nothing has no sign.
    """
    text = f"{100 * value:+.1f}"
    return text[1:] if text in {"+0.0", "-0.0"} else text


def signed(value: float, unit: str) -> str:
    """A difference with its sign: points for shares, else the unit's own words."""
    if _is_share(unit):
        return points(value)
    return f"+{number(value, unit)}" if value > 0 else number(value, unit)


def times(value: float) -> str:
    """A ratio: ``1.36x``."""
    return f"{value:.2f}x"


def _bare_ratio(value: float) -> str:
    return f"{value:.2f}"


def _is_share(unit: str) -> bool:
    return unit in _SHARE_UNITS or unit in {"", "1", "points"}


def _teller(kind: str, unit: str) -> Callable[[float], str]:
    if kind == "ratio":
        return times
    if kind == "difference":
        return lambda value: signed(value, unit)
    return lambda value: number(value, unit)


def bounds(interval: Interval | None, kind: str, unit: str) -> str:
    """An interval as ``[low, high]``; ``..`` is an open end; empty without one."""
    if interval is None:
        return ""
    tell = _bare_ratio if kind == "ratio" else _teller(kind, unit)
    low = ".." if interval.low is None else tell(interval.low)
    high = ".." if interval.high is None else tell(interval.high)
    return f"[{low}, {high}]"


def estimate(check: Check) -> str:
    """What was measured, with the unit a difference needs: ``-0.4 pts``."""
    value = check.estimate
    if value is None and check.candidate is not None and check.kind != "ratio":
        return number(check.candidate, check.unit)
    if value is None:
        return "" if check.kind == "fact" else UNKNOWN
    text = _teller(check.kind, check.unit)(value)
    is_points = check.kind == "difference" and _is_share(check.unit)
    return f"{text} pts" if is_points else text


def limit(check: Check) -> str:
    """What it was held against: a tolerance in points, a ratio, a value."""
    if check.limit is None:
        return ""
    if check.kind == "difference" and _is_share(check.unit):
        return f"tolerance {100 * abs(check.limit):.1f}"
    return f"limit {_teller(check.kind, check.unit)(check.limit)}"


def amount(check: Check) -> str:
    """How much evidence: ``312 pairs``, or ``96 of 190 pairs`` when more is needed."""
    if check.n is None or (check.kind == "fact" and check.estimate is None):
        return ""
    of = f" of {check.n_needed:,}" if (check.n_needed or 0) > check.n else ""
    return f"{check.n:,}{of} {'requests' if check.kind == 'value' else 'pairs'}"


def question(name: str) -> str:
    """A check's name for people.

    Example:
        >>> question("exact_match[class=factual_qa]")
        'exact match, factual qa'
        >>> question("no_errors[level=c8,phase=sweep]")
        'no errors, level c8, phase sweep'
        >>> question("headline[class=extraction] collapse")
        'headline collapse, extraction'
    """
    metric, _, rest = name.partition("[")
    inside, _, behind = rest.rpartition("]") if "]" in rest else (rest, "", "")
    metric = f"{metric}{behind}"
    parts = [metric, *inside.split(",")] if inside else [metric]
    words = (part.removeprefix("class=").replace("=", " ") for part in parts)
    return ", ".join(words).replace("_", " ")


_DIGEST = re.compile(r"\b(sha256:)?([0-9a-f]{12})[0-9a-f]{20,}\b")


def short_digest(text: str) -> str:
    """A text whose long digests are cut to twelve digits, as people compare them.

    Example:
        >>> short_digest("toy at sha256:" + "0123456789abcdef" * 4)
        'toy at sha256:0123456789ab…'
    """
    return _DIGEST.sub(r"\1\2…", text)


_NAMED = re.compile(r"([a-z_0-9]+(?:\[[^\]]*\])?(?: [a-z_]+)?): (.*)", re.DOTALL)


def told(sentence: str) -> str:
    """A sentence that a question's name leads, the name in words.

    Example:
        >>> told("slo[request_latency p95]: it is 28.8 s")
        'slo, request latency p95: it is 28.8 s'
    """
    match = _NAMED.fullmatch(sentence)
    return f"{question(match[1])}: {match[2]}" if match else sentence


def percentile(found: Percentile, unit: str) -> str:
    """A percentile, or why there is none."""
    if found.is_infinite:
        return "beyond: too many failed"
    if found.value is None and found.n_needed is not None:
        return f"needs {found.n_needed:,} samples"
    return number(found.value, unit)


def percentile_ends(found: Percentile, unit: str) -> str:
    """Its interval; an end that falls among failures or is unknown is ``..``."""
    if found.value is None:
        return ""
    low, high = (
        ".." if end is None else number(end, unit) for end in (found.low, found.high)
    )
    return f"[{low}, {high}]"
