"""The relay: a raw ASGI application that forwards bytes untouched.

One request: read the body within its limits, choose the arm, send it on, pass the
answer back piece by piece. Sampled answers are copied on the side; the copy may be
dropped, the client's bytes may not. A client that goes away is noticed in every phase
and the upstream connection is cut at once.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from routeproof.canary.headers import request_head, request_headers, response_headers
from routeproof.canary.split import LiveArm
from routeproof.canary.upstream import Exchange, Headers, Pool, UpstreamError

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Limits:
    """What a client may ask of the relay."""

    body_bytes: int = 64 * 1024 * 1024
    body_deadline_s: float = 60.0
    header_bytes: int = 32 * 1024


@dataclass(frozen=True, slots=True)
class Decision:
    """Where a request goes.

    Attributes:
        authorization: Value of the upstream's ``Authorization``; ``None`` passes the
            client's own.
        sample: Where the answer is copied to; ``None`` when it is not sampled.
    """

    arm: LiveArm
    pool: Pool
    authorization: bytes | None
    request_id: str
    sample: "Tee | None" = None


class Tee(Protocol):
    """Takes a copy of one exchange. Must return at once and never raise."""

    def head(self, status: int, headers: Headers) -> None:
        """The answer's head came."""
        ...

    def piece(self, data: bytes, at_s: float) -> None:
        """A piece of the answer's body came."""
        ...

    def end(self, outcome: str) -> None:
        """The exchange is over: ``completed``, ``cut_short`` or ``cancelled``."""
        ...


class Router(Protocol):
    """Chooses the arm and keeps count."""

    def route(self, scope: Scope, headers: Headers, body: bytes) -> Decision:
        """Where this request goes."""
        ...

    def ended(self, decision: Decision, status: int, outcome: str) -> None:
        """The exchange is over."""
        ...


class _ClientGone(Exception):
    """The client closed its connection."""


class _Refused(Exception):
    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(slots=True)
class Relay:
    """The ASGI application of the data listener.

    Attributes:
        hosts: Host names clients may use; empty allows any well-formed one.
        clock: Monotonic seconds.
    """

    router: Router
    limits: Limits = field(default_factory=Limits)
    hosts: frozenset[str] = frozenset()
    clock: Callable[[], float] = time.monotonic
    _running: dict[int, tuple[LiveArm, Exchange]] = field(
        default_factory=dict, init=False
    )

    def cut(self, arm: LiveArm) -> int:
        """End every running exchange of an arm; returns how many.

        The client sees its answer break off, never a false end.
        """
        cut = [e for a, e in list(self._running.values()) if a == arm]
        for exchange in cut:
            exchange.abort()
        return len(cut)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one ASGI connection."""
        if scope["type"] == "lifespan":
            await _lifespan(receive, send)
        elif scope["type"] == "http":
            await self._http(scope, receive, send)

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers: Headers = list(scope["headers"])
        try:
            self._check_head(headers)
            body = await self._body(headers, receive)
        except _Refused as refused:
            await _answer(send, refused.status, str(refused))
            return
        except _ClientGone:
            return
        decision = self.router.route(scope, headers, body)
        await self._forward(decision, scope, headers, body, receive, send)

    def _check_head(self, headers: Headers) -> None:
        if sum(len(n) + len(v) for n, v in headers) > self.limits.header_bytes:
            raise _Refused(431, "request headers too large")
        hosts = [value for name, value in headers if name == b"host"]
        if len(hosts) != 1:
            raise _Refused(400, f"{len(hosts)} Host headers, expected one")
        host = hosts[0].decode("latin-1")
        if any(c in host for c in "/#@?\\ ") or not host:
            raise _Refused(400, "Host is not a plain host name")
        name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
        if self.hosts and name.lower() not in self.hosts:
            raise _Refused(421, "this relay does not serve that host")

    async def _body(self, headers: Headers, receive: Receive) -> bytes:
        lengths = [v for n, v in headers if n == b"content-length"]
        if lengths and int(lengths[0]) > self.limits.body_bytes:
            raise _Refused(413, f"body above {self.limits.body_bytes} bytes")
        pieces: list[bytes] = []
        size = 0
        try:
            async with asyncio.timeout(self.limits.body_deadline_s):
                while True:
                    event = await receive()
                    if event["type"] == "http.disconnect":
                        raise _ClientGone
                    pieces.append(event.get("body", b""))
                    size += len(pieces[-1])
                    if size > self.limits.body_bytes:
                        raise _Refused(
                            413, f"body above {self.limits.body_bytes} bytes"
                        )
                    if not event.get("more_body", False):
                        return pieces[0] if len(pieces) == 1 else b"".join(pieces)
        except TimeoutError:
            seconds = f"{self.limits.body_deadline_s:g} s"
            raise _Refused(408, f"the body did not come within {seconds}") from None

    async def _forward(
        self,
        decision: Decision,
        scope: Scope,
        headers: Headers,
        body: bytes,
        receive: Receive,
        send: Send,
    ) -> None:
        task = asyncio.current_task()
        assert task is not None
        watcher = asyncio.ensure_future(_watch(receive, task))
        status, outcome = 0, "cancelled"
        try:
            exchange = await decision.pool.send(
                self._head(decision, scope, headers, body), body
            )
            status = exchange.status
            outcome = await self._pass_back(decision, exchange, send)
        except UpstreamError as error:
            outcome = "cut_short"
            if status == 0:
                status = error.status
                await _answer(send, error.status, f"upstream: {error}")
        except asyncio.CancelledError:
            if not (watcher.done() and not watcher.cancelled()):
                raise
            task.uncancel()
        finally:
            watcher.cancel()
            if decision.sample is not None:
                decision.sample.end(outcome)
            self.router.ended(decision, status, outcome)

    def _head(
        self, decision: Decision, scope: Scope, headers: Headers, body: bytes
    ) -> bytes:
        target = decision.pool.base_path.encode() + scope["raw_path"]
        if scope["query_string"]:
            target += b"?" + scope["query_string"]
        passed = request_headers(
            headers,
            host=decision.pool.host_header,
            authorization=decision.authorization,
            body_length=len(body),
        )
        return request_head(scope["method"], target, passed)

    async def _pass_back(
        self, decision: Decision, exchange: Exchange, send: Send
    ) -> str:
        tee = decision.sample
        if tee is not None:
            tee.head(exchange.status, exchange.headers)
        self._running[id(exchange)] = (decision.arm, exchange)
        try:
            passed = response_headers(exchange.headers)
            passed.append((b"x-routeproof-request-id", decision.request_id.encode()))
            await send(
                {
                    "type": "http.response.start",
                    "status": exchange.status,
                    "headers": passed,
                }
            )
            while piece := await exchange.read():
                if tee is not None:
                    tee.piece(piece, self.clock())
                await send(
                    {"type": "http.response.body", "body": piece, "more_body": True}
                )
            await send({"type": "http.response.body", "body": b"", "more_body": False})
            return "completed"
        finally:
            del self._running[id(exchange)]
            exchange.close()


async def _watch(receive: Receive, task: "asyncio.Task[None]") -> None:
    """Cancel ``task`` when the client goes away."""
    while (await receive())["type"] != "http.disconnect":
        pass
    task.cancel()


async def _answer(send: Send, status: int, message: str) -> None:
    """An answer of our own, in the shape OpenAI clients read."""
    quoted = message.replace("\\", "\\\\").replace('"', '\\"')
    body = f'{{"error": {{"message": "{quoted}", "type": "routeproof"}}}}'.encode()
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def _lifespan(receive: Receive, send: Send) -> None:
    while True:
        event = await receive()
        await send({"type": f"{event['type']}.complete"})
        if event["type"] == "lifespan.shutdown":
            return
