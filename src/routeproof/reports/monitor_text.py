"""The monitor in a terminal and in a log: a line a look, a block an alarm."""

from collections.abc import Mapping, Sequence

BARS = "▁▂▃▄▅▆▇█"

LINE: tuple[tuple[str, str], ...] = (
    ("rejection_rate", "reject"),
    ("tokens_per_pass", "tok/pass"),
    ("verify_passes_per_request", "passes/req"),
    ("request_latency_p95_s", "p95"),
    ("error_share", "failed"),
    ("requests_per_s", "req/s"),
    ("running", "running"),
)
"""Numbers on the line of a look, with what they are called there."""


def number(value: float | None, unit: str) -> str:
    """A value for people; ``?`` when it is unknown."""
    if value is None:
        return "?"
    return f"{value:.3g} s" if unit == "s" else f"{value:.3g}"


def tick_line(
    at: str, up: bool, why: str | None, numbers: Mapping[str, float | None]
) -> str:
    """One look on one line."""
    clock = at[11:19]
    if not up:
        return f"{clock}  no answer: {why}"
    if not numbers:
        return f"{clock}  up: {why}"
    parts = []
    for name, short in LINE:
        unit = "s" if name.endswith("_s") and not name.endswith("per_s") else "1"
        parts.append(f"{short} {number(numbers.get(name), unit)}")
    return f"{clock}  " + "  ".join(parts)


def shift_line(words: str, levels: tuple[float, float], since: str) -> str:
    """What shifted, its levels before and after, and the wall time of the shift."""
    return f"  SHIFT  {words}: {levels[0]:.3g} -> {levels[1]:.3g} since {since}"


def cause_lines(causes: Sequence[str], cannot_tell: Sequence[str]) -> list[str]:
    """What changed at the time of a shift.

    Args:
        causes: What else changed.
        cannot_tell: What the engine does not say of itself.
    """
    lines = [f"         at that time: {cause}" for cause in causes]
    if not causes:
        lines = ["         nothing else that is watched changed at that time"]
    if cannot_tell:
        named = ", ".join(cannot_tell)
        lines.append(f"         the engine does not tell: {named}")
    return lines


def sparkline(values: Sequence[float | None]) -> str:
    """A curve of block characters; unknown values are gaps.

    Example:
        >>> sparkline([0.0, None, 1.0])
        '▁ █'
    """
    known = [v for v in values if v is not None]
    if not known:
        return ""
    low, high = min(known), max(known)
    width = (high - low) or 1.0
    return "".join(
        " " if v is None else BARS[round((v - low) / width * (len(BARS) - 1))]
        for v in values
    )
