"""Watch a live engine: look at it again and again, and say what it means."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from time import monotonic

from routeproof.engines.adapter import TableAdapter
from routeproof.engines.adapters import adapter
from routeproof.engines.endpoint import Endpoint
from routeproof.engines.http import fetch
from routeproof.engines.probe import probe
from routeproof.errors import ConfigError
from routeproof.jobs.monitoring.ticks import Tick
from routeproof.jobs.monitoring.watch import Look, Watcher
from routeproof.reports.monitor_page import Shown
from routeproof.routes.read_back import ReadBack

DEADLINE_S = 5.0
STARTED = "process-start-time-unix"
"""Header in which llama-server says when its process started."""

Pause = Callable[[float], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class MonitorOptions:
    """How an engine is watched.

    Attributes:
        interval_s: From one look to the next, and so the length of a window.
        looks: How many looks; ``None``: until it is stopped.
        engine: Its name when known; needed for one that is down when the watch begins.
        ask_every: Every how many looks the engine is asked what it is; it is asked
            after a restart or an outage as well.
    """

    interval_s: float = 10.0
    looks: int | None = None
    engine: str | None = None
    ask_every: int = 6


@dataclass(slots=True)
class Monitor:
    """One endpoint under watch.

    Attributes:
        endpoint: Where it is.
        options: How it is watched.
        clock: Seconds that never jump.
        wall: The time of day.
        pause: Waits; tests let their traffic flow here.
        watcher: What is known so far; ``None`` until the engine is.
        last: The last tick.
    """

    endpoint: Endpoint
    options: MonitorOptions = MonitorOptions()
    clock: Callable[[], float] = monotonic
    wall: Callable[[], datetime] = lambda: datetime.now(UTC)
    pause: Pause = asyncio.sleep
    watcher: Watcher | None = None
    last: Tick | None = None
    _ask: bool = field(default=True)

    async def ticks(self) -> AsyncIterator[Tick]:
        """One tick after the other, an interval apart however long a look takes.

        An engine that does not answer is a tick as well: its numbers are unknown.
        """
        begun, done = self.clock(), 0
        while self.options.looks is None or done < self.options.looks:
            if done:
                due = begun + done * self.options.interval_s
                await self.pause(max(0.0, due - self.clock()))
            yield await self._tick(done)
            done += 1

    async def _tick(self, number: int) -> Tick:
        asked = self._ask or number % self.options.ask_every == 0
        said, why = await self._said() if asked else (None, None)
        chosen = self._chosen(said)
        if chosen is None:
            self._ask = True
            return self._unknown(why or "the engine is not known")
        if self.watcher is None or self.watcher.adapter.name != chosen.name:
            self.watcher = Watcher(chosen)
        look = await self._look(chosen, said)
        tick = self.watcher.step(look)
        self._ask = not tick.up or any(
            event.kind in ("restart", "back") for event in tick.events
        )
        self.last = tick
        return tick

    def _chosen(self, said: ReadBack | None) -> TableAdapter | None:
        if said is not None:
            return adapter(self.options.engine or said.engine)
        if self.watcher is not None:
            return self.watcher.adapter
        return adapter(self.options.engine) if self.options.engine else None

    async def _said(self) -> tuple[ReadBack | None, str | None]:
        try:
            said = await probe(
                self.endpoint, engine=self.options.engine, deadline_s=DEADLINE_S
            )
        except ConfigError as error:
            return None, error.message
        return said, None

    async def _look(self, chosen: TableAdapter, said: ReadBack | None) -> Look:
        page = why = None
        started: float | None = None
        url = self.endpoint.at(chosen.metrics_path)
        try:
            reply = await fetch(self.endpoint, url, deadline_s=DEADLINE_S)
        except ConfigError as error:
            why = error.message
        else:
            if reply.status == 200:
                page = reply.text
                with contextlib.suppress(KeyError, ValueError):
                    started = float(reply.headers[STARTED])
            elif reply.status == 503:
                why = "it is still loading, or overloaded (HTTP 503)"
            else:
                # It answers, and has no such page: there is nothing to read.
                page = ""
        return Look(
            at_s=self.clock(),
            wall=self._now(),
            page=page,
            why=why,
            fields=None if said is None else said.fields,
            cannot_tell=() if said is None else said.cannot_tell,
            started_s=started,
        )

    def _unknown(self, why: str) -> Tick:
        tick = Tick(at=self._now(), elapsed_s=0.0, engine="unknown", up=False, why=why)
        self.last = tick
        return tick

    def _now(self) -> str:
        return self.wall().astimezone().isoformat(timespec="seconds")


def shown(watched: Monitor, name: str) -> Shown:
    """What the Prometheus page shows of an endpoint under watch."""
    tick, watcher = watched.last, watched.watcher
    if tick is None or watcher is None:
        return Shown(name=name, up=False)
    return Shown(
        name=name,
        up=tick.up,
        numbers=tick.numbers,
        route=watcher.route,
        restarts=watcher.totals.restarts,
        outages=watcher.totals.outages,
        route_changes=watcher.totals.route_changes,
        shifts=watcher.totals.shifts,
    )


def monitor(watched: Monitor, told: Callable[[Tick], None]) -> None:
    """Watch a live engine until the looks are over or it is interrupted.

    Args:
        watched: The endpoint, and how often it is looked at.
        told: Called with what each look says; an engine that does not answer is a
            look as well.
    """

    async def watch() -> None:
        async for tick in watched.ticks():
            told(tick)

    asyncio.run(watch())
