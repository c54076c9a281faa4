"""The relay: forwards bytes untouched, from one protocol to the other.

One request: choose the arm, send it on, pass the answer back piece by piece as it
comes, in the same turn of the event loop. Sampled answers are copied on the side; the
copy may be dropped, the client's bytes may not. A client that goes away is noticed in
every phase and the upstream connection is cut at once.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from routeproof.canary.relay.decision import Router
from routeproof.canary.relay.flight import Flight
from routeproof.canary.relay.inbound import Inbound
from routeproof.canary.relay.request import Request
from routeproof.canary.splitting.split import LiveArm

log = logging.getLogger("routeproof.canary")

_NO_HOST = frozenset(b"/#@?\\ \t")


@dataclass(slots=True)
class Relay:
    """Answers the requests of the data listener.

    Attributes:
        hosts: Host names clients may use; empty allows any well-formed one.
        clock: Monotonic seconds.
        ended: Told of every exchange that is over.
    """

    router: Router
    hosts: frozenset[str] = frozenset()
    clock: Callable[[], float] = time.monotonic
    ended: Callable[[Flight], None] | None = None
    _running: set[Flight] = field(default_factory=set, init=False)
    _loop: asyncio.AbstractEventLoop | None = field(default=None, init=False)

    def cut(self, arm: LiveArm) -> None:
        """End every running exchange of an arm; may be called from any thread.

        A client sees its answer break off, never a false end; one that has seen
        nothing yet is told to send its request again.
        """
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._cut, arm)

    def _cut(self, arm: LiveArm) -> None:
        for flight in list(self._running):
            if flight.decision.arm == arm:
                flight.cut()

    def begin(self, request: Request, client: Inbound) -> None:
        """Send a request on its way; called on the event loop."""
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
        refusal = self._refusal(request)
        if refusal is not None:
            client.answer(*refusal, is_last=True)
            return
        try:
            decision = self.router.route(request)
        except Exception as error:
            # The border: a fault of ours is one client's 500, not everybody's end.
            # What was asked may be in the words of the error, so its kind is enough.
            log.error("a request could not be routed: %s", type(error).__name__)
            client.answer(500, "internal error", is_last=True)
            return
        flight = Flight(decision, request, client, self._over, self.clock)
        self._running.add(flight)
        flight.start()

    def _over(self, flight: Flight) -> None:
        self._running.discard(flight)
        decision = flight.decision
        self.router.ended(decision, flight.status, flight.outcome)
        if decision.sample is not None:
            decision.sample.end(flight.outcome)
        if self.ended is not None:
            self.ended(flight)

    def _refusal(self, request: Request) -> tuple[int, str] | None:
        """Why a request is not served at all."""
        hosts = [value for name, value in request.headers if name == b"host"]
        if len(hosts) != 1:
            return 400, f"{len(hosts)} Host headers, expected one"
        host = hosts[0]
        if not host or not _NO_HOST.isdisjoint(host):
            return 400, "Host is not a plain host name"
        if self.hosts:
            name, _, port = host.decode("latin-1").lower().rpartition(":")
            if (name if port.isdigit() else f"{name}:{port}".strip(":")) not in (
                self.hosts
            ):
                return 421, "this relay does not serve that host"
        return None
