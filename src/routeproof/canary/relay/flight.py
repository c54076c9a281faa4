"""One request on its way: sent on, answered piece by piece, cut when it must be.

A state machine of callbacks: no task and no queue stands between the two sockets.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

import msgspec

from routeproof.canary.relay.alarm import Alarm
from routeproof.canary.relay.connection import Connection, UpstreamError
from routeproof.canary.relay.decision import Decision, SecondTry
from routeproof.canary.relay.headers import (
    request_head,
    request_headers,
    response_headers,
)
from routeproof.canary.relay.inbound import Inbound
from routeproof.canary.relay.request import Request
from routeproof.canary.relay.upstream import Pool

CHECKED_BYTES_MAX = 8 * 1024 * 1024
"""A longer answer passes unchecked: it is not held back for a second try."""

_EVENT_ENDS = (b"\n\n", b"\r\n\r\n", b"\r\r")


@dataclass(slots=True, eq=False)
class Flight:
    """A request between client and upstream.

    Attributes:
        over: Told once, when it has ended in whatever way.
        status: What the client was told; 0 before it was told anything.
        outcome: ``completed``, ``cut_short`` or ``cancelled`` once it is over.
        is_cut: A rollback ended it.
        sent_bytes: Length of the answer's body so far.
        sent_s, first_s: When it was handed to the upstream, and when the first byte
            of an answer's body came.
    """

    decision: Decision
    request: Request
    client: Inbound
    over: Callable[["Flight"], None]
    clock: Callable[[], float]
    status: int = 0
    outcome: str = ""
    is_cut: bool = False
    sent_bytes: int = 0
    began_s: float = field(init=False)
    sent_s: float | None = field(default=None, init=False)
    first_s: float | None = field(default=None, init=False)
    _loop: asyncio.AbstractEventLoop = field(init=False)
    _pool: Pool = field(init=False)
    _authorization: bytes | None = field(default=None, init=False)
    _connection: Connection | None = field(default=None, init=False)
    _is_kept: bool = field(default=False, init=False)
    _work: "asyncio.Future[Connection] | asyncio.Future[bool] | None" = field(
        default=None, init=False
    )
    _alarm: Alarm = field(init=False)
    _last_s: float = field(default=0.0, init=False)
    _is_full: bool = field(default=False, init=False)
    _tail: bytes = field(default=b"", init=False)
    _held: list[bytes] | None = field(default=None, init=False)
    _held_bytes: int = field(default=0, init=False)
    _second: SecondTry | None = field(default=None, init=False)
    _is_copied: bool = field(default=True, init=False)

    def __post_init__(self) -> None:
        self.began_s = self.clock()
        self._loop = asyncio.get_running_loop()
        self._alarm = Alarm(self._look)
        self._second = self.decision.second

    # The way out.

    def start(self) -> None:
        """Ask the upstream; everything else follows."""
        self.client.listening = self
        self._ask(self.decision.pool, self.decision.authorization)

    def _ask(self, pool: Pool, authorization: bytes | None) -> None:
        self._pool, self._authorization = pool, authorization
        try:
            kept = pool.take()
        except UpstreamError as error:
            self._fail(error)
            return
        if kept is None:
            self._connect()
        else:
            self._is_kept = True
            self._send(kept)

    def _connect(self) -> None:
        self._is_kept = False
        task = self._loop.create_task(self._pool.connect())
        self._work = task
        task.add_done_callback(self._connected)

    def _connected(self, task: "asyncio.Future[Connection]") -> None:
        self._work = None
        if task.cancelled():
            self._pool.drop(None)
            return
        error = task.exception()
        if isinstance(error, UpstreamError):
            self._pool.drop(None)
            self._fail(error)
        elif error is not None:
            self._pool.drop(None)
            self._fail(UpstreamError(type(error).__name__, is_before_first_byte=True))
        elif self.outcome:
            self._pool.drop(task.result())
        else:
            self._send(task.result())

    def _send(self, connection: Connection) -> None:
        request, pool = self.request, self._pool
        passed = request_headers(
            request.headers,
            host=pool.host_header,
            authorization=self._authorization,
            body_length=len(request.body),
        )
        try:
            head = request_head(request.method, pool.base + request.target, passed)
        except ValueError:
            pool.drop(connection)
            self._fail(
                UpstreamError("bad header", status=400, is_before_first_byte=True)
            )
            return
        self._connection = connection
        connection.on_change = self._on_change
        is_bodiless = request.method == "HEAD"
        connection.begin([head, request.body], is_bodiless=is_bodiless)
        self._last_s = self._loop.time()
        if self.sent_s is None:
            self.sent_s = self.clock()
        self._alarm.set(pool.deadlines.first_byte_s)

    # The way back.

    def _on_change(self) -> None:
        """Something came from the upstream, or it is gone: say it in one write."""
        self.client.cork()
        try:
            self._changed()
        finally:
            self.client.uncork()

    def _changed(self) -> None:
        connection = self._connection
        if connection is None or self._work is not None:
            return
        if not self.status and self._held is None:
            if not connection.has_head:
                if connection.error is not None or connection.is_closed:
                    self._broken_before_head(connection)
                return
            self._answered(connection)
        if connection.chunks:
            self._last_s = self._loop.time()
            self._pass(connection.take())
        if connection.is_complete:
            self._whole(connection)
        elif connection.error is not None:
            self._broken(UpstreamError(connection.error, is_before_first_byte=False))

    def _answered(self, connection: Connection) -> None:
        assert connection.status is not None
        self._last_s = self._loop.time()
        self._alarm.set(self._pool.deadlines.idle_s)
        if self.decision.sample is not None and self._is_copied:
            self.decision.sample.head(connection.status, connection.headers)
        if self._second is not None and connection.status == 200:
            self._held = []
        else:
            self._begin_answer(connection)

    def _begin_answer(self, connection: Connection) -> None:
        assert connection.status is not None
        passed = response_headers(connection.headers)
        passed.append((b"x-routeproof-request-id", self.decision.request_id.encode()))
        self.status = connection.status
        self.client.start(connection.status, passed)

    def _pass(self, piece: bytes) -> None:
        if self.first_s is None:
            self.first_s = self.clock()
        if self._is_copied and self.decision.sample is not None:
            self.decision.sample.piece(piece, self._last_s)
        if self._held is not None:
            self._hold(piece)
            return
        self.sent_bytes += len(piece)
        self._tail = piece[-4:] if len(piece) > 3 else (self._tail + piece)[-4:]
        self.client.piece(piece)
        write, connection = self.client.takes_chunks(), self._connection
        if write is not None and connection is not None:
            copy = self.decision.sample if self._is_copied else None
            tee = None if copy is None else copy.piece
            connection.pass_chunks(write, self._loop.time, tee)

    def _whole(self, connection: Connection) -> None:
        if self._held is not None and self._second is not None:
            self._judge(self._second)
            return
        client = self.client
        self._end("completed")
        client.finish()

    # An answer held back until it is known to be what was asked for.

    def _hold(self, piece: bytes) -> None:
        assert self._held is not None
        self._held.append(piece)
        self._held_bytes += len(piece)
        if self._held_bytes > CHECKED_BYTES_MAX:
            self._let_go()

    def _let_go(self) -> None:
        held, self._held = self._held or [], None
        self._second = None
        assert self._connection is not None
        self._begin_answer(self._connection)
        for piece in held:
            self.sent_bytes += len(piece)
            self.client.piece(piece)

    def _judge(self, second: SecondTry) -> None:
        self._alarm.clear()
        body = b"".join(self._held or ())
        work = self._loop.run_in_executor(None, second.is_good, body)
        self._work = work
        work.add_done_callback(self._judged)

    def _judged(self, work: "asyncio.Future[bool]") -> None:
        self._work = None
        if self.outcome or work.cancelled():
            return
        second, connection = self._second, self._connection
        assert second is not None and connection is not None
        if work.exception() is not None or work.result():
            self._let_go()
            self._whole(connection)
            return
        self._held, self._second, self._is_copied = None, None, False
        self._connection, connection.on_change = None, None
        self._pool.give_back(connection)
        self._ask(second.pool, second.authorization)

    # The ends.

    def _broken_before_head(self, connection: Connection) -> None:
        error = UpstreamError(
            connection.error or "connection closed",
            is_before_first_byte=not connection.has_bytes,
        )
        connection.on_change = None
        self._connection = None
        if self._is_kept and not connection.has_bytes:
            connection.close()  # it had died before it was asked; a fresh one, once
            self._connect()
            return
        self._pool.drop(connection)
        self._fail(error)

    def _fail(self, error: UpstreamError) -> None:
        """Nothing came that the client was told of: say so."""
        if self.outcome:
            return
        client, self.status = self.client, error.status
        self._end("cut_short")
        client.answer(error.status, f"upstream: {error}")

    def _broken(self, error: UpstreamError) -> None:
        """The upstream died in the middle."""
        if not self.status:
            self._held = None
            self._fail(error)
            return
        client = self.client
        self._say_broken()
        self._end("cancelled" if self.is_cut else "cut_short")
        client.break_off()

    def cut(self) -> None:
        """End it now; an upstream that has not answered yet is left at once."""
        self.is_cut = True
        if self.status:
            self._broken(UpstreamError("cut", is_before_first_byte=False))
            return
        client, self.status = self.client, 503
        self._end("cancelled")
        client.answer(503, "taken back; send it again", retry_after=0)

    def client_gone(self) -> None:
        """The client closed its connection: so do we with the upstream's."""
        if not self.outcome:
            self._end("cancelled")

    def client_full(self) -> None:
        """Stop reading what the client does not take."""
        self._is_full = True
        if self._connection is not None:
            self._connection.pause()

    def client_ready(self) -> None:
        """Read on."""
        self._is_full = False
        self._last_s = self._loop.time()
        if self._connection is not None:
            self._connection.resume()

    def _end(self, outcome: str) -> None:
        """Give back what is held and tell who counts; only the first call does."""
        if self.outcome:
            return
        self.outcome = outcome
        self._alarm.stop()
        if self._work is not None:
            self._work.cancel()
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.on_change = None
            connection.parse_all()
            self.sent_bytes += connection.passed_bytes
            self._pool.give_back(connection)
        self.client.listening = None
        self.over(self)

    # The clock.

    def _look(self) -> None:
        """Too long without a byte? A client that takes nothing is dropped as well."""
        connection = self._connection
        if connection is None:
            return
        deadlines = self._pool.deadlines
        limit_s = deadlines.idle_s if connection.has_head else deadlines.first_byte_s
        waited_s = self._loop.time() - max(self._last_s, connection.passed_s)
        if waited_s < limit_s:
            self._alarm.set(limit_s - waited_s)
        elif self._is_full:
            self.client.abort()
        else:
            what = "further bytes" if connection.has_head else "answer"
            is_first = not connection.has_bytes
            error = UpstreamError(
                f"no {what} in time", status=504, is_before_first_byte=is_first
            )
            connection.close()
            self._broken(error)

    def _say_broken(self) -> None:
        """Tell readers of an event stream that this is no end.

        Only between two events, in plain text: the body's framing stays broken off in
        any case, so that no client takes it for complete.
        """
        connection = self._connection
        if connection is None:
            return
        found = {name.lower(): value.lower() for name, value in connection.headers}
        is_events = found.get(b"content-type", b"").startswith(b"text/event-stream")
        if not is_events or b"content-encoding" in found or b"content-length" in found:
            return
        tail = connection.last_chunk[-6:-2] or self._tail
        if tail and not tail.endswith(_EVENT_ENDS):
            return
        error = {"message": "the answer broke off", "type": "upstream_error"}
        data = msgspec.json.encode({"error": error})
        self.client.piece(b"event: error\ndata: " + data + b"\n\n")
