"""The relay: a raw ASGI application that forwards bytes untouched.

One request: read the body within its limits, choose the arm, send it on, pass the
answer back piece by piece. Sampled answers are copied on the side; the copy may be
dropped, the client's bytes may not. A client that goes away is noticed in every phase
and the upstream connection is cut at once.
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import msgspec

from routeproof.canary.decision import Decision, Receive, Router, Scope, Send
from routeproof.canary.flight import Flight
from routeproof.canary.split import LiveArm
from routeproof.canary.upstream import Headers, UpstreamError


@dataclass(frozen=True, slots=True)
class Limits:
    """What a client may ask of the relay."""

    body_bytes: int = 64 * 1024 * 1024
    body_deadline_s: float = 60.0
    header_bytes: int = 32 * 1024


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
    _running: dict[int, Flight] = field(default_factory=dict, init=False)
    _loop: asyncio.AbstractEventLoop | None = field(default=None, init=False)

    def cut(self, arm: LiveArm) -> None:
        """End every running exchange of an arm; may be called from any thread.

        A client sees its answer break off, never a false end; one that has seen
        nothing yet is told to send its request again.
        """
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._cut, arm)

    def _cut(self, arm: LiveArm) -> None:
        for flight in list(self._running.values()):
            if flight.decision.arm == arm:
                flight.cut()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one ASGI connection."""
        if scope["type"] == "lifespan":
            await _lifespan(receive, send)
        elif scope["type"] == "http":
            await self._http(scope, receive, send)

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._loop = asyncio.get_running_loop()
        headers: Headers = list(scope["headers"])
        try:
            self._check_head(headers)
            body = await self._body(headers, receive)
        except _Refused as refused:
            await _answer(send, refused.status, str(refused), is_last=True)
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
        if any(not v.isdigit() for v in lengths) or len(set(lengths)) > 1:
            raise _Refused(400, "Content-Length is not one number")
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
        flight = Flight(decision, scope, headers, body, send, self.clock, task)
        self._running[id(flight)] = flight
        outcome = "cancelled"
        try:
            outcome = await flight.run()
        except UpstreamError as error:
            outcome = "cancelled" if flight.is_cut else "cut_short"
            if flight.status == 0:
                flight.status = error.status
                await _answer(send, error.status, f"upstream: {error}")
        except asyncio.CancelledError:
            is_gone = watcher.done() and not watcher.cancelled()
            if not (is_gone or flight.is_cut):
                raise
            task.uncancel()
            if not is_gone and flight.status == 0:
                flight.status = 503
                await _answer(send, 503, "taken back; send it again", retry_after=0)
        finally:
            watcher.cancel()
            del self._running[id(flight)]
            self.router.ended(decision, flight.status, outcome)
            if decision.sample is not None:
                decision.sample.end(outcome)


async def _watch(receive: Receive, task: "asyncio.Task[None]") -> None:
    """Cancel ``task`` when the client goes away."""
    while (await receive())["type"] != "http.disconnect":
        pass
    task.cancel()


async def _answer(
    send: Send,
    status: int,
    message: str,
    *,
    retry_after: int | None = None,
    is_last: bool = False,
) -> None:
    """An answer of our own, in the shape OpenAI clients read.

    ``is_last`` closes the connection: what is left of a refused request is not read.
    """
    error = {"message": message, "type": "routeproof", "code": status}
    body = msgspec.json.encode({"error": error})
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
    ]
    if retry_after is not None:
        headers.append((b"retry-after", str(retry_after).encode()))
    if is_last:
        headers.append((b"connection", b"close"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def _lifespan(receive: Receive, send: Send) -> None:
    while True:
        event = await receive()
        await send({"type": f"{event['type']}.complete"})
        if event["type"] == "lifespan.shutdown":
            return
