"""Durations as people write them: ``90``, ``90s``, ``30m``, ``2h``."""

import re

import click

_UNITS_S = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}
_WRITTEN = re.compile(r"(\d+(?:\.\d+)?)\s*(s|m|h|)")


class Duration(click.ParamType):
    """A duration on the command line; its value is seconds."""

    name = "duration"

    def convert(
        self,
        value: str | float,
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> float:
        """Seconds of ``30m``.

        Raises:
            click.BadParameter: Not a number with ``s``, ``m`` or ``h``, or zero.
        """
        if isinstance(value, int | float):
            return float(value)
        found = _WRITTEN.fullmatch(value.strip().lower())
        seconds = float(found[1]) * _UNITS_S[found[2]] if found else 0.0
        if seconds <= 0:
            self.fail(f"{value!r} is no duration; write 90s, 30m or 2h", param, ctx)
        return seconds


DURATION = Duration()
