"""The simulated engine as a real server, in real time."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass

import msgspec

from routeproof.errors import ConfigError
from routeproof.simulator import draws, tokens
from routeproof.simulator.ask import BadRequest, parse
from routeproof.simulator.book import EMPTY, Book
from routeproof.simulator.defects import Defects
from routeproof.simulator.dialects.table import dialect
from routeproof.simulator.engine import Engine
from routeproof.simulator.faults import defects_of
from routeproof.simulator.http import Connection, end_serving, protocol
from routeproof.simulator.paced import PacedServer
from routeproof.simulator.pipe import Pipe
from routeproof.simulator.reply import Reply
from routeproof.simulator.route import SimulatedRoute
from routeproof.simulator.sequence import Emission, Sequence
from routeproof.simulator.stream_filter import StreamFilter, edited, stripped_body

GENERATE = frozenset({"/v1/chat/completions", "/v1/completions"})
FAULTS_PATH = "/simulator/faults"
"""GET: the faults in force. POST: a JSON object of fault to strength takes their place;
a drill can so break a running engine and mend it."""

FLUSH = frozenset({"/reset_prefix_cache", "/flush_cache"})


@dataclass(slots=True, eq=False)
class Call:
    """A request being answered."""

    connection: Connection
    reply: Reply
    sequences: list[Sequence]
    left: int
    pipe: Pipe | None
    started: bool = False


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
        self._died_s = 0.0
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
        elif path == FAULTS_PATH:
            self._faults(connection, method, body)
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

    def _faults(self, connection: Connection, method: str, body: bytes) -> None:
        if method == "POST":
            try:
                wanted = msgspec.json.decode(body, type=dict[str, float])
                route = msgspec.structs.replace(self.route, faults=wanted)
                self.defects = defects_of(route)
            except (msgspec.DecodeError, ConfigError) as problem:
                return self._refuse(connection, BadRequest(400, str(problem)))
            self.route = route
            self.engine.spoil(self.defects)
        return connection.respond(200, msgspec.json.encode(self.route.faults))

    def _refuse(self, connection: Connection, problem: BadRequest) -> None:
        connection.respond(
            problem.status, msgspec.json.encode(self._dialect.error(problem))
        )

    def _generate(self, connection: Connection, path: str, body: bytes) -> None:
        wrong = self.defects.stream
        asked = stripped_body(body, wrong.ignore_parameters)
        ask = parse(path, asked, self.route.memory.block_tokens)
        if isinstance(ask, BadRequest):
            return self._refuse(connection, ask)
        if self.engine.dead:
            return self._dead(connection, ask.stream)
        made = self.engine.submit(ask, self.now_s())
        if isinstance(made, BadRequest):
            return self._refuse(connection, made)
        rng = draws.generator("stream", self.route.seed, made[0].serial)
        through = StreamFilter(wrong, rng, len(self._calls) + 1)
        refused = through.refused()
        if refused is not None:
            for sequence in made:
                self.engine.cancel(sequence)
            return connection.respond(refused.status, refused.body, refused.kind)
        pipe = None
        if ask.stream:
            connection.start_stream()
            pipe = Pipe(connection, through, self._loop, lambda: self._done(connection))
        reply = Reply(self.engine, self._dialect, ask, made)
        call = Call(connection, reply, made, len(made), pipe)
        for sequence in made:
            sequence.tag = call
        self._calls[connection] = call
        self._kick()
        return None

    def _done(self, connection: Connection) -> None:
        self._calls.pop(connection, None)

    def _dead(self, connection: Connection, stream: bool) -> None:
        """What is answered after the engine has died."""
        restart = self.defects.engine.restart_s
        if restart is not None and self.now_s() >= self._died_s + restart:
            self.engine.restart(self.now_s())
        problem = BadRequest(503, "the engine died", "ServiceUnavailable")
        if not self.defects.engine.dead_answers_200:
            return self._refuse(connection, problem)
        error = msgspec.json.encode(
            {"error": {"message": problem.message, "code": 500}}
        )
        if not stream:
            return connection.respond(200, error)
        connection.start_stream()
        connection.chunk(b"data: " + error + b"\n\ndata: [DONE]\n\n")
        return connection.end_stream()

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
        if self.engine.dead:
            self._died_s = self._due_s
        if not self.engine.busy:
            self._due_s = None
        self._kick()

    def _deliver(self, emission: Emission) -> None:
        call = emission.sequence.tag
        if emission.done:
            call.left -= 1
        if call.connection not in self._calls:
            return
        if call.pipe is not None:
            events = call.reply.events(emission)
            if not call.started:
                call.started = True
                events = [*call.reply.start(), *events]
            call.pipe.push(events)
            if call.left == 0:
                call.pipe.finish()
        elif call.left == 0:
            self._calls.pop(call.connection, None)
            self._whole(call)

    def _whole(self, call: Call) -> None:
        status, body = call.reply.whole()
        wrong = self.defects.stream
        if wrong.strip_fields or wrong.usage_factor != 1.0:
            plain = msgspec.json.decode(body)
            edited(plain, wrong)
            body = msgspec.json.encode(plain)
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
    server: SimulatorServer | PacedServer


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
    handler: SimulatorServer | PacedServer
    if route.paced_s is None:
        handler = SimulatorServer(route, book, loop)
    else:
        handler = PacedServer(route, loop)
    listening = await loop.create_server(protocol(handler), host, port, backlog=4096)
    bound = listening.sockets[0].getsockname()[1]
    try:
        yield Serving(f"http://{host}:{bound}", bound, handler)
    finally:
        await end_serving(listening, handler.stop)
