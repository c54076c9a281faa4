"""From one look at an engine after the other to numbers, events and alarms.

Nothing here reads a clock or a socket: looks come in, ticks go out.
"""

from collections import deque
from dataclasses import dataclass, field

import msgspec

from routeproof.engines.adapter import Counters, TableAdapter
from routeproof.engines.histograms import Histogram, growth, histograms
from routeproof.engines.windows import START, window
from routeproof.jobs.monitoring.causes import causes_of, route_changes, traffic_changes
from routeproof.jobs.monitoring.ticks import Alarm, Event, Tick, Totals
from routeproof.metrics.live import LIVE, Live, Numbers, live_numbers
from routeproof.stats.shift import LAST, Shift, newest_shift

LEAST_PASSES = 20
"""Verify passes of a window below which its acceptance is no point of the series."""

KEPT = 4 * LAST
SPECULATION = (
    "rejection_rate",
    "tokens_per_pass",
    "acceptance_length",
    "coverage",
    "verify_passes_per_request",
)


@dataclass(frozen=True, slots=True)
class Look:
    """What was seen of an engine at one moment.

    Attributes:
        at_s: On a clock that never jumps.
        wall: The time of day, ISO 8601.
        page: Its metrics page; ``None`` when it did not answer.
        why: Why it did not.
        fields: What it says of itself; ``None`` when it was not asked.
        cannot_tell: Route fields it cannot be asked for.
        started_s: When its process started, where it says so outside the page.
    """

    at_s: float
    wall: str
    page: str | None
    why: str | None = None
    fields: dict[str, str] | None = None
    cannot_tell: tuple[str, ...] = ()
    started_s: float | None = None


@dataclass(frozen=True, slots=True)
class _Point:
    """One window of the series."""

    start_s: float
    end_s: float
    wall: str
    numbers: Numbers


@dataclass(slots=True)
class Watcher:
    """Remembers the last look, the series, and what happened.

    Attributes:
        adapter: Of the engine.
        totals: Counts since it began.
        route: What the engine last said of itself.
    """

    adapter: TableAdapter
    totals: Totals = Totals()
    route: dict[str, str] = field(default_factory=dict)
    _first_s: float | None = None
    _is_up: bool = True
    _last: Counters | None = None
    _last_wall: str = ""
    _latencies: dict[str, Histogram] = field(default_factory=dict)
    _points: deque[_Point] = field(default_factory=lambda: deque(maxlen=KEPT))
    _told_s: dict[str, float] = field(default_factory=dict)
    _events: deque[Event] = field(default_factory=lambda: deque(maxlen=100))
    _unknown: frozenset[str] = frozenset()

    def step(self, look: Look) -> Tick:
        """Take a look in and say what it means."""
        if self._first_s is None:
            self._first_s = look.at_s
        tick = Tick(
            at=look.wall,
            elapsed_s=look.at_s - self._first_s,
            engine=self.adapter.name,
            up=look.page is not None,
            why=look.why,
        )
        events = [*self._outage(look), *self._route(look)]
        if look.page is None:
            return self._told(tick, events)
        now = self.adapter.counters(look.page, look.at_s)
        if look.started_s is not None:
            now.values.setdefault(START, look.started_s)
        latencies = histograms(look.page, self.adapter.name)
        if now.source == "none":
            why = "it exports no metrics that are known; see docs/engines.md"
            return self._told(msgspec.structs.replace(tick, why=why), events)
        events += self._names(now)
        before, self._last = self._last, now
        old, self._latencies = self._latencies, latencies
        wall, self._last_wall = self._last_wall, look.wall
        tick = msgspec.structs.replace(tick, unknown_names=now.unknown_names)
        if before is None:
            why = "the first look; numbers need two"
            return self._told(msgspec.structs.replace(tick, why=why), events)
        grown = window([before, now])
        if grown.restarts:
            events.append(self._event("restart", look, "the engine restarted"))
        between = {} if grown.restarts else _grown(old, latencies)
        found = live_numbers(grown, now.values, between)
        self._points.append(_Point(before.at_s, look.at_s, wall, _usable(found)))
        tick = msgspec.structs.replace(
            tick,
            window_s=look.at_s - before.at_s,
            numbers=found.numbers,
            trust=found.trust,
            reasons=found.reasons,
            unavailable={
                name: why
                for name, why in self.adapter.not_exported.items()
                if found.numbers.get(name) is None
            },
        )
        return self._told(tick, events, tuple(self._alarms(look)))

    def _told(
        self, tick: Tick, events: list[Event], alarms: tuple[Alarm, ...] = ()
    ) -> Tick:
        self._count(events, alarms)
        return msgspec.structs.replace(tick, events=tuple(events), alarms=alarms)

    def _event(self, kind: str, look: Look, words: str) -> Event:
        made = msgspec.convert({"kind": kind, "at_s": look.at_s, "words": words}, Event)
        self._events.append(made)
        return made

    def _outage(self, look: Look) -> list[Event]:
        is_up = look.page is not None
        was_up, self._is_up = self._is_up, is_up
        if was_up and not is_up:
            return [self._event("outage", look, f"no answer: {look.why}")]
        if is_up and not was_up:
            return [self._event("back", look, "it answers again")]
        return []

    def _route(self, look: Look) -> list[Event]:
        if look.fields is None:
            return []
        old, self.route = self.route, dict(look.fields)
        return [self._event("route", look, w) for w in route_changes(old, self.route)]

    def _names(self, now: Counters) -> list[Event]:
        new = frozenset(now.unknown_names) - self._unknown
        self._unknown |= new
        if not new:
            return []
        words = f"names about speculation that nobody knows: {', '.join(sorted(new))}"
        return [Event(kind="metrics", at_s=now.at_s, words=words)]

    def _alarms(self, look: Look) -> list[Alarm]:
        found = []
        for name, number in LIVE.items():
            if not number.is_watched:
                continue
            points = self._series(name)
            values = [v for p in points if (v := p.numbers[name]) is not None]
            shift = newest_shift(values, least_change=number.least_change)
            if shift is not None:
                found.append(self._alarm(name, points, shift, look))
        return found

    def _series(self, name: str) -> list[_Point]:
        """Windows in which a number is known, since its last shift that was told."""
        since = self._told_s.get(name, float("-inf"))
        return [
            p
            for p in self._points
            if p.start_s >= since and p.numbers[name] is not None
        ]

    def _alarm(
        self, name: str, points: list[_Point], shift: Shift, look: Look
    ) -> Alarm:
        first = points[shift.index]
        self._told_s[name] = first.start_s
        width = first.end_s - first.start_s
        # A restart empties the window it falls into, so causes may lie before it.
        start = points[shift.index - 1].end_s - width
        happened = start, first.end_s + width
        causes = causes_of(tuple(self._events), happened, noticed_s=look.at_s)
        traffic = traffic_changes(
            [p.numbers for p in points[: shift.index]],
            [p.numbers for p in points[shift.index :]],
        )
        return Alarm(
            number=name,
            before=shift.before,
            after=shift.after,
            since=first.wall,
            p_value=shift.p_value,
            causes=(*causes, *traffic),
            cannot_tell=tuple(n for n in look.cannot_tell if "speculation" in n),
        )

    def _count(self, events: list[Event], alarms: tuple[Alarm, ...]) -> None:
        kinds = [event.kind for event in events]
        shifts = dict(self.totals.shifts)
        for alarm in alarms:
            shifts[alarm.number] = shifts.get(alarm.number, 0) + 1
        self.totals = Totals(
            restarts=self.totals.restarts + kinds.count("restart"),
            outages=self.totals.outages + kinds.count("outage"),
            route_changes=self.totals.route_changes + kinds.count("route"),
            shifts=shifts,
        )


def _grown(
    old: dict[str, Histogram], new: dict[str, Histogram]
) -> dict[str, Histogram]:
    both = {name: growth(old[name], new[name]) for name in old.keys() & new.keys()}
    return {name: each for name, each in both.items() if each is not None}


def _usable(found: Live) -> Numbers:
    """The numbers as points of their series; acceptance of a few passes is none."""
    if found.spec_passes is not None and found.spec_passes >= LEAST_PASSES:
        return found.numbers
    return {**found.numbers, **dict.fromkeys(SPECULATION)}
