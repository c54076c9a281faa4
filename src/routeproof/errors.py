"""Every error routeproof raises on purpose.

::

    RouteproofError                exit code 3: could not measure
    ├── ConfigError                exit code 2: a file, option or endpoint is wrong
    │   ├── ParityError            the two routes are not comparable
    │   └── FormatError            an imported file is not what it claims to be
    ├── EngineError                an engine did not start, or died
    ├── StoredRunError             a run folder cannot be read
    └── MeasurementError           the run happened but cannot be believed

A failed request is not an error: it is a record with an outcome. A thin sample is
not an error either: it is a gate result with the status ``inconclusive``.
"""

from pathlib import Path


class RouteproofError(Exception):
    """Something went wrong that the user can act on.

    Attributes:
        message: What is wrong, with the values and the place.
        hint: The next thing to do, or ``None`` when there is none to offer.
    """

    exit_code = 3

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\n\nhint: {self.hint}" if self.hint else self.message


class ConfigError(RouteproofError):
    """A file, an option or an endpoint is wrong.

    Attributes:
        path: The file at fault, or ``None`` when it came from the command line.
        key: Place inside the file, such as ``candidate.speculation.draft_tokens``.
    """

    exit_code = 2

    def __init__(
        self,
        message: str,
        *,
        path: Path | str | None = None,
        key: str | None = None,
        hint: str | None = None,
    ) -> None:
        place = ": ".join(str(part) for part in (path, key) if part)
        super().__init__(f"{place}: {message}" if place else message, hint=hint)
        self.path = path
        self.key = key


class FormatError(ConfigError):
    """An imported file is not what it claims to be.

    Attributes:
        line: 1-based line at fault, or ``None`` when the format has no lines.
    """

    def __init__(
        self,
        message: str,
        *,
        path: Path | str | None = None,
        line: int | None = None,
        hint: str | None = None,
    ) -> None:
        key = None if line is None else f"line {line}"
        super().__init__(message, path=path, key=key, hint=hint)
        self.line = line


class ParityError(ConfigError):
    """Baseline and candidate differ where they must be equal.

    Attributes:
        field: The route field, such as ``sampling.temperature``.
        baseline: Its value on the baseline.
        candidate: Its value on the candidate.
    """

    def __init__(self, field: str, baseline: object, candidate: object) -> None:
        super().__init__(
            f"baseline and candidate differ in `{field}`: {baseline} and {candidate}",
            hint=f"give both routes the same `{field}`, or list it under `changes` "
            "of the candidate if it is what you are testing",
        )
        self.field = field
        self.baseline = baseline
        self.candidate = candidate


class EngineError(RouteproofError):
    """An engine did not start, or died.

    Attributes:
        log_tail: The engine's last log lines; empty when it wrote none.
    """

    def __init__(
        self, message: str, *, log_tail: str = "", hint: str | None = None
    ) -> None:
        text = f"{message}\nlast lines of its log:\n{log_tail}" if log_tail else message
        super().__init__(text, hint=hint)
        self.log_tail = log_tail


class StoredRunError(RouteproofError):
    """A run folder cannot be read."""


class MeasurementError(RouteproofError):
    """The run happened but its numbers cannot be believed."""
