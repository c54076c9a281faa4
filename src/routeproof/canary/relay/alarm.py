"""A time limit that is moved with every request, at the price of no timer."""

import asyncio
from collections.abc import Callable

LOOK_S = 60.0
"""A timer never runs longer: a limit that is moved nearer rarely needs a new one."""


def _nobody() -> None:
    pass


class Alarm:
    """Calls ``act`` once the limit is over.

    A timer that goes off before the limit looks, and runs on; so whoever moves the
    limit away leaves the timer alone.
    """

    __slots__ = ("_limit_s", "_timer", "_timer_s", "act")

    def __init__(self, act: Callable[[], None]) -> None:
        self.act = act
        self._limit_s: float | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._timer_s = 0.0

    def set(self, seconds: float) -> None:
        """Call in so many seconds from now, whatever was set before."""
        loop = asyncio.get_running_loop()
        now_s = loop.time()
        self._limit_s = now_s + seconds
        at_s = now_s + min(seconds, LOOK_S)
        if self._timer is not None:
            if self._timer_s <= at_s:
                return
            self._timer.cancel()
        self._start(loop, at_s)

    def clear(self) -> None:
        """Call nobody; a timer that runs is left for the next limit."""
        self._limit_s = None

    def stop(self) -> None:
        """Call nobody ever more, and hold on to nobody."""
        self._limit_s = None
        self.act = _nobody
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _start(self, loop: asyncio.AbstractEventLoop, at_s: float) -> None:
        self._timer_s = at_s
        self._timer = loop.call_at(at_s, self._look)

    def _look(self) -> None:
        self._timer = None
        if self._limit_s is None:
            return
        loop = asyncio.get_running_loop()
        now_s = loop.time()
        if self._limit_s > now_s:
            self._start(loop, min(self._limit_s, now_s + LOOK_S))
        else:
            self._limit_s = None
            self.act()
