"""What the monitor says at every tick, and its change of the route in words."""

from typing import Literal

import msgspec

SCHEMA = "routeproof.monitor/1"

EventKind = Literal["restart", "outage", "back", "route", "metrics"]


class _Said(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of what is written as a line of JSON."""


class Event(_Said, frozen=True, kw_only=True):
    """Something that happened to the engine.

    Attributes:
        kind: ``restart``; ``outage`` and ``back``: it did not answer, and does again;
            ``route``: what it says of itself changed; ``metrics``: a name about
            speculation that no table knows.
        at_s: On the monitor's clock.
        words: What happened, for people.
    """

    kind: EventKind
    at_s: float
    words: str


class Alarm(_Said, frozen=True, kw_only=True):
    """A number whose level shifted, and what changed with it.

    Attributes:
        number: Name in `metrics.live.LIVE`.
        before, after: Medians on either side of the shift.
        since: Wall time at which the first window after it began.
        p_value: That there is no shift, for this one question.
        causes: What else changed at that time, in words, the likeliest first; empty
            when nothing that is watched did.
        cannot_tell: What the engine does not say of itself and may have changed.
    """

    number: str
    before: float
    after: float
    since: str
    p_value: float
    causes: tuple[str, ...] = ()
    cannot_tell: tuple[str, ...] = ()


class Tick(_Said, frozen=True, kw_only=True):
    """One look at the engine.

    Attributes:
        at: Wall time, ISO 8601.
        elapsed_s: Since the monitor began.
        up: Whether it answered; ``why`` says why not.
        window_s: Length of the window the numbers are of; ``None`` without one.
        numbers: Names of `metrics.live.LIVE`; ``None`` is unknown, never 0.
        trust: Of the numbers about speculation.
        reasons: What speaks against them.
        unavailable: Numbers that this engine's page cannot tell, and why.
        unknown_names: Series about speculation that no table knows.
    """

    at: str
    elapsed_s: float
    engine: str
    up: bool
    why: str | None = None
    window_s: float | None = None
    numbers: dict[str, float | None] = {}
    trust: str = "unavailable"
    reasons: tuple[str, ...] = ()
    unavailable: dict[str, str] = {}
    unknown_names: tuple[str, ...] = ()
    events: tuple[Event, ...] = ()
    alarms: tuple[Alarm, ...] = ()
    schema: str = SCHEMA


class Totals(_Said, frozen=True, kw_only=True):
    """Counts since the monitor began, for its Prometheus page."""

    restarts: int = 0
    outages: int = 0
    route_changes: int = 0
    shifts: dict[str, int] = {}
