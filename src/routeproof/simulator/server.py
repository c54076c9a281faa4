"""The simulated engine as a real server, in real time."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass

import msgspec

from routeproof.simulator import tokens
from routeproof.simulator.ask import BadRequest, parse
from routeproof.simulator.book import EMPTY, Book
from routeproof.simulator.defects import Defects
from routeproof.simulator.dialects.table import dialect
from routeproof.simulator.engine import Engine
from routeproof.simulator.faults import defects_of
from routeproof.simulator.http import Connection, protocol
from routeproof.simulator.reply import Reply
from routeproof.simulator.route import SimulatedRoute
from routeproof.simulator.sequence import Emission, Sequence

GENERATE = frozenset({"/v1/chat/completions", "/v1/completions"})
FLUSH = frozenset({"/reset_prefix_cache", "/flush_cache"})


@dataclass(slots=True, eq=False)
class Call:
    """A request being answered."""

    connection: Connection
    reply: Reply
    sequences: list[Sequence]
    stream: bool
    left: int


class SimulatorServer:
    """Drives an engine by the loop's clock and answers HTTP requests from it.

    Args:
        route: What to simulate.
        book: Scripted answers.
        loop: The loop whose clock is the engine's.
    """

    def __init__(
        self, route: SimulatedRoute, book: Book, loop: asyncio.AbstractEventLoop
    ) -> None:
        self.route = route
        self.defects: Defects = defects_of(route)
        self.engine = Engine(route, self.defects, book)
        self._dialect = dialect(route.dialect)
        self._loop = loop
        self._started = loop.time()
        self._due_s: float | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._calls: dict[Connection, Call] = {}
        self.connections: set[Connection] = set()

    def now_s(self) -> float:
        """Engine seconds."""
        return self._loop.time() - self._started

    # -- requests --------------------------------------------------------------------

    def handle(
        self, connection: Connection, method: str, path: str, body: bytes
    ) -> None:
        """Answer one request."""
        if path in GENERATE and method == "POST":
            self._generate(connection, path, body)
        elif path in ("/health", "/ping", "/ready"):
            connection.respond(503 if self.engine.dead else 200, b"{}")
        elif path in FLUSH and method == "POST":
            self.engine.cache.clear()
            connection.respond(200, b"{}")
        elif path in ("/tokenize", "/v1/tokenize") and method == "POST":
            connection.respond(200, _tokenized(body))
        elif method == "GET" and path in self._dialect.pages:
            kind, page = self._dialect.pages[path](self.engine, self.now_s())
            connection.respond(200, page, kind)
        else:
            self._refuse(
                connection, BadRequest(404, f"no such path: {path}", "NotFoundError")
            )

    def opened(self, connection: Connection) -> None:
        """Know a client."""
        self.connections.add(connection)

    def dropped(self, connection: Connection) -> None:
        """Stop what a client no longer waits for."""
        self.connections.discard(connection)
        call = self._calls.pop(connection, None)
        if call is None:
            return
        for sequence in call.sequences:
            if sequence.end_s is None:
                self.engine.cancel(sequence)

    def _refuse(self, connection: Connection, problem: BadRequest) -> None:
        connection.respond(
            problem.status, msgspec.json.encode(self._dialect.error(problem))
        )

    def _generate(self, connection: Connection, path: str, body: bytes) -> None:
        ask = parse(path, body, self.route.memory.block_tokens)
        if isinstance(ask, BadRequest):
            return self._refuse(connection, ask)
        if self.engine.dead:
            return self._refuse(
                connection, BadRequest(503, "the engine died", "ServiceUnavailable")
            )
        made = self.engine.submit(ask, self.now_s())
        if isinstance(made, BadRequest):
            return self._refuse(connection, made)
        reply = Reply(self.engine, self._dialect, ask, made)
        call = Call(connection, reply, made, ask.stream, len(made))
        for sequence in made:
            sequence.tag = call
        self._calls[connection] = call
        if ask.stream:
            connection.start_stream()
        self._kick()
        return None

    def stop(self) -> None:
        """Stop the clock and drop every client."""
        if self._timer is not None:
            self._timer.cancel()
        for connection in list(self.connections):
            connection.abort()

    # -- time ------------------------------------------------------------------

    def _kick(self) -> None:
        """Begin a pass unless one is under way."""
        if self._timer is not None or not self.engine.busy:
            return
        now = self.now_s()
        # A pass that follows another at once begins when that one was due, so that
        # the coarse timers of the loop do not add up.
        begin = now if self._due_s is None else max(self._due_s, now - 0.05)
        self._due_s = begin + self.engine.begin_step(begin)
        self._timer = self._loop.call_at(self._started + self._due_s, self._pass_ends)

    def _pass_ends(self) -> None:
        self._timer = None
        assert self._due_s is not None
        for emission in self.engine.end_step(self._due_s):
            self._deliver(emission)
        if not self.engine.busy:
            self._due_s = None
        self._kick()

    def _deliver(self, emission: Emission) -> None:
        call = emission.sequence.tag
        if emission.done:
            call.left -= 1
        if call.connection not in self._calls:
            return
        if call.stream:
            if emission.sequence.first_s == self._due_s and emission.first == 0:
                for event in call.reply.start():
                    call.connection.chunk(event)
            for event in call.reply.events(emission):
                call.connection.chunk(event)
        if call.left == 0:
            self._calls.pop(call.connection, None)
            if call.stream:
                call.connection.end_stream()
            else:
                status, body = call.reply.whole()
                call.connection.respond(status, body)


def _tokenized(body: bytes) -> bytes:
    try:
        asked = msgspec.json.decode(body)
    except msgspec.DecodeError:
        asked = {}
    text = ""
    if isinstance(asked, dict):
        text = str(
            asked.get("content") or asked.get("prompt") or asked.get("text") or ""
        )
    ids = [tokens.token_id(t) for t in tokens.split(text)]
    return msgspec.json.encode({"tokens": ids, "count": len(ids)})


@dataclass(frozen=True, slots=True)
class Serving:
    """A running simulated engine."""

    url: str
    port: int
    server: SimulatorServer


@contextlib.asynccontextmanager
async def serve(
    route: SimulatedRoute,
    *,
    book: Book = EMPTY,
    host: str = "127.0.0.1",
    port: int = 0,
) -> AsyncIterator[Serving]:
    """Serve a simulated route while the block runs.

    Args:
        route: What to simulate; its ``faults`` are applied.
        book: Scripted answers, such as ``routeproof.jobs.simulate.book_of(cases)``.
        host: Where to listen.
        port: 0 takes a free one.
    """
    loop = asyncio.get_running_loop()
    handler = SimulatorServer(route, book, loop)
    listening = await loop.create_server(protocol(handler), host, port, backlog=4096)
    bound = listening.sockets[0].getsockname()[1]
    try:
        yield Serving(f"http://{host}:{bound}", bound, handler)
    finally:
        handler.stop()
        listening.close()
        await listening.wait_closed()
