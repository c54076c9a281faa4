"""Durations as people write them: ``90``, ``90s``, ``30m``, ``2h``."""

import re

import click

_UNITS_S = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}
_WRITTEN = re.compile(r"(\d+(?:\.\d+)?)\s*(s|m|h|)")


def duration(value: str) -> float:
    """Seconds of ``30m``, as the type of a command-line option.

    Raises:
        click.BadParameter: Not a number with ``s``, ``m`` or ``h``, or zero.
    """
    found = _WRITTEN.fullmatch(str(value).strip().lower())
    seconds = float(found[1]) * _UNITS_S[found[2]] if found else 0.0
    if seconds <= 0:
        raise click.BadParameter(f"{value!r} is no duration; write 90s, 30m or 2h")
    return seconds
