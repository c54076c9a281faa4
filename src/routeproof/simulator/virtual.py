"""The engine in virtual time: no sleeping, the same bytes, the same faults.

One ``VirtualEngine`` stands for one running server. Requests are given to it with the
time at which they arrive; ``next_end`` runs the clock until the next response has
ended. A run of an hour takes as long as its events take to compute.
"""

import heapq
from dataclasses import dataclass, field
from random import Random
from typing import Any

import msgspec

from routeproof.simulator import draws
from routeproof.simulator.ask import Ask, BadRequest, parse
from routeproof.simulator.book import EMPTY, Book
from routeproof.simulator.dialects.table import dialect
from routeproof.simulator.engine import Engine
from routeproof.simulator.faults import defects_of
from routeproof.simulator.reply import Reply
from routeproof.simulator.route import SimulatedRoute
from routeproof.simulator.sequence import Emission, Sequence
from routeproof.simulator.stream_filter import (
    StreamFilter,
    Timed,
    edited,
    stripped_body,
)

NETWORK_S = 0.0002
"""From the client to the engine, and back: a loopback with an HTTP server on it."""


@dataclass(slots=True, eq=False)
class Exchange:
    """One request and its response, as they crossed the wire; times in seconds.

    Attributes:
        tag: Whatever the caller wants to find again.
        pieces: Body bytes with their arrival times at the client.
        failure: ``timeout``, ``cut_short``, ``connection_error`` or ``None``.
        end_s: When the client knew that it was over.
    """

    tag: Any
    sent_s: float
    status: int = 0
    kind: str = "application/json"
    first_byte_s: float | None = None
    pieces: list[Timed] = field(default_factory=list)
    failure: str | None = None
    end_s: float | None = None
    _reply: Reply | None = None
    _filter: StreamFilter | None = None
    _sequences: list[Sequence] = field(default_factory=list)
    _left: int = 0
    _stream: bool = False
    _over: bool = False


class VirtualEngine:
    """A simulated server without a socket.

    Args:
        route: What to simulate; its ``faults`` are applied.
        book: Scripted answers.
        start_s: When it was started, on the caller's clock.
    """

    def __init__(
        self, route: SimulatedRoute, book: Book = EMPTY, start_s: float = 0.0
    ) -> None:
        self.route = route
        self.defects = defects_of(route)
        self.engine = Engine(route, self.defects, book)
        self.engine.started_s = start_s
        self.now_s = start_s
        self._dialect = dialect(route.dialect)
        self._events: list[tuple[float, int, str, Exchange, Any]] = []
        self._order = 0
        self._pass_s: float | None = None
        self._rng = Random(route.seed + 1)
        self._restart_s: float | None = None

    # -- for the caller -----------------------------------------------------------

    def send(
        self,
        at_s: float,
        path: str,
        body: bytes,
        *,
        tag: Any = None,
        deadline_s: float = 120.0,
    ) -> Exchange:
        """Send a request at ``at_s``; the client gives it up after ``deadline_s``."""
        exchange = Exchange(tag, at_s)
        self._at(at_s + NETWORK_S, "arrives", exchange, (path, body))
        self._at(at_s + deadline_s, "deadline", exchange, None)
        return exchange

    def next_end(self) -> Exchange | None:
        """Run until a response has ended; ``None`` when nothing is under way."""
        while True:
            event_s = self._events[0][0] if self._events else None
            if self._pass_s is not None and (
                event_s is None or self._pass_s <= event_s
            ):
                self._pass_ends(self._pass_s)
            elif event_s is None:
                return None
            else:
                at_s, _, what, exchange, extra = heapq.heappop(self._events)
                if exchange.end_s is not None:
                    continue  # a deadline that was kept
                self.now_s = max(self.now_s, at_s)
                if self._happens(what, exchange, extra):
                    return exchange

    def page(self, path: str) -> str | None:
        """The body of an information page as it is now; ``None`` when there is none."""
        found = self._dialect.pages.get(path.partition("?")[0])
        if found is None or self.engine.dead:
            return None
        return found(self.engine, self.now_s)[1].decode()

    def page_paths(self) -> tuple[str, ...]:
        """The information pages it has."""
        return tuple(self._dialect.pages)

    def idle_until(self, at_s: float) -> None:
        """Let the clock pass with nothing to do."""
        self.now_s = max(self.now_s, at_s)

    # -- what happens ----------------------------------------------------------------

    def _at(self, at_s: float, what: str, exchange: Exchange, extra: Any) -> None:
        self._order += 1
        heapq.heappush(self._events, (at_s, self._order, what, exchange, extra))

    def _happens(self, what: str, exchange: Exchange, extra: Any) -> bool:
        """Carry an event out; true when it ended the exchange."""
        if what == "arrives":
            self._arrives(exchange, *extra)
            return False
        if what == "deadline":
            exchange.failure = "timeout"
            for sequence in exchange._sequences:
                if sequence.end_s is None:
                    self.engine.cancel(sequence)
            self._kick()
        exchange.end_s = self.now_s
        return True

    def _arrives(self, exchange: Exchange, path: str, body: bytes) -> None:
        self._maybe_restart()
        wrong = self.defects.stream
        if self.engine.dead and not self.defects.engine.dead_answers_200:
            exchange.failure = "connection_error"
            return self._at(self.now_s + NETWORK_S, "ended", exchange, None)
        asked = stripped_body(body, wrong.ignore_parameters)
        ask = parse(path, asked, self.route.memory.block_tokens)
        if isinstance(ask, BadRequest):
            return self._refuse(exchange, ask)
        if self.engine.dead:
            return self._dead_answer(exchange, ask)
        made = self.engine.submit(ask, self.now_s, exchange)
        if isinstance(made, BadRequest):
            return self._refuse(exchange, made)
        rng = draws.generator("stream", self.route.seed, made[0].serial)
        exchange._filter = StreamFilter(wrong, rng, len(self.engine.running) + 1)
        exchange._sequences = made
        exchange._reply = Reply(self.engine, self._dialect, ask, made)
        exchange._stream, exchange._left = ask.stream, len(made)
        refused = exchange._filter.refused()
        if refused is not None:
            for sequence in made:
                self.engine.cancel(sequence)
            return self._answer(exchange, refused.status, refused.body, refused.kind)
        if ask.stream:
            exchange.kind = "text/event-stream"
        self._kick()
        return None

    def _refuse(self, exchange: Exchange, problem: BadRequest) -> None:
        body = msgspec.json.encode(self._dialect.error(problem))
        self._answer(exchange, problem.status, body, "application/json")

    def _dead_answer(self, exchange: Exchange, ask: Ask) -> None:
        """What a front end says after its engine has died: 200 and an error event."""
        error = b'{"error":{"message":"EngineCore encountered an issue","code":500}}'
        body = b"data: " + error + b"\n\ndata: [DONE]\n\n" if ask.stream else error
        self._answer(exchange, 200, body, "text/event-stream")

    def _answer(self, exchange: Exchange, status: int, body: bytes, kind: str) -> None:
        at = self.now_s + NETWORK_S
        exchange.status, exchange.kind, exchange.first_byte_s = status, kind, at
        if body:
            exchange.pieces.append(Timed(at, body))
        self._at(at, "ended", exchange, None)

    # -- passes ----------------------------------------------------------------------

    def _kick(self) -> None:
        if self._pass_s is None and self.engine.busy:
            self._pass_s = self.now_s + self.engine.begin_step(self.now_s)

    def _pass_ends(self, at_s: float) -> None:
        self.now_s, self._pass_s = at_s, None
        emissions = self.engine.end_step(at_s)
        if self.engine.dead:
            restart = self.defects.engine.restart_s
            self._restart_s = None if restart is None else at_s + restart
        for emission in emissions:
            exchange = emission.sequence.tag
            if exchange.end_s is None:
                self._deliver(exchange, emission)
        self._kick()

    def _maybe_restart(self) -> None:
        if self._restart_s is not None and self.now_s >= self._restart_s:
            self._restart_s = None
            self.engine.restart(self.now_s)

    def _deliver(self, exchange: Exchange, emission: Emission) -> None:
        reply, pipe = exchange._reply, exchange._filter
        assert reply is not None and pipe is not None
        if emission.done:
            exchange._left -= 1
        if exchange._over:
            return
        if not exchange._stream:
            if exchange._left == 0:
                self._whole(exchange, reply)
            return
        events = reply.events(emission)
        if exchange.first_byte_s is None:
            exchange.status, exchange.first_byte_s = 200, self.now_s + NETWORK_S
            events = [*reply.start(), *events]
        exchange.pieces += _sent(pipe.feed(self.now_s, events))
        if exchange._left == 0 or pipe.ended is not None:
            exchange._over = True
            exchange.pieces += _sent(pipe.end(self.now_s))
            if pipe.ended == "cut":
                exchange.failure = "cut_short"
            last = exchange.pieces[-1].due_s if exchange.pieces else self.now_s
            self._at(max(last, self.now_s), "ended", exchange, None)

    def _whole(self, exchange: Exchange, reply: Reply) -> None:
        status, body = reply.whole()
        wrong = self.defects.stream
        if wrong.strip_fields or wrong.usage_factor != 1.0:
            plain = msgspec.json.decode(body)
            edited(plain, wrong)
            body = msgspec.json.encode(plain)
        self._answer(exchange, status, body, "application/json")


def _sent(timed: list[Timed]) -> list[Timed]:
    return [Timed(due + NETWORK_S, data) for due, data in timed]
