"""One request on its way: sent on, answered piece by piece, cut when it must be."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

import msgspec

from routeproof.canary.decision import Decision, Scope, SecondTry, Send
from routeproof.canary.headers import request_head, request_headers, response_headers
from routeproof.canary.upstream import Exchange, Headers, Pool, UpstreamError

CHECKED_BYTES_MAX = 8 * 1024 * 1024
"""A longer answer passes unchecked: it is not held back for a second try."""

_EVENT_ENDS = (b"\n\n", b"\r\n\r\n", b"\r\r")


@dataclass(slots=True)
class Flight:
    """A request between client and upstream.

    Attributes:
        task: The task that serves it.
        status: What the client was told; 0 before it was told anything.
        is_cut: A rollback ended it.
    """

    decision: Decision
    scope: Scope
    headers: Headers
    body: bytes
    send: Send
    clock: Callable[[], float]
    task: "asyncio.Task[None]"
    status: int = 0
    is_cut: bool = False
    _exchange: Exchange | None = field(default=None, init=False)
    _tail: bytes = field(default=b"", init=False)

    def cut(self) -> None:
        """End it now; an upstream that has not answered yet is left at once."""
        self.is_cut = True
        if self._exchange is not None:
            self._exchange.abort()
        else:
            self.task.cancel()

    async def run(self) -> str:
        """Ask the upstream and pass its answer back; returns the outcome.

        Raises:
            UpstreamError: The upstream failed; ``status`` says whether the client was
                already told something.
        """
        decision, second = self.decision, self.decision.second
        exchange = await self._ask(decision.pool, decision.authorization)
        if second is None or exchange.status != 200:
            await self._pass_back(exchange, [])
        else:
            await self._checked(exchange, second)
        return "completed"

    async def _ask(self, pool: Pool, authorization: bytes | None) -> Exchange:
        target = pool.base_path.encode() + self.scope["raw_path"]
        if self.scope["query_string"]:
            target += b"?" + self.scope["query_string"]
        passed = request_headers(
            self.headers,
            host=pool.host_header,
            authorization=authorization,
            body_length=len(self.body),
        )
        method = self.scope["method"]
        return await pool.send(
            request_head(method, target, passed),
            self.body,
            is_bodiless=method == "HEAD",
        )

    async def _checked(self, exchange: Exchange, second: SecondTry) -> None:
        """Hold a whole answer back until it is known to be what was asked for."""
        pieces: list[bytes] = []
        size, is_whole = 0, False
        self._exchange = exchange
        try:
            while size <= CHECKED_BYTES_MAX and not is_whole:
                piece = await exchange.read()
                is_whole = not piece
                pieces.append(piece)
                size += len(piece)
            body = b"".join(pieces)
            is_good = not is_whole or await asyncio.to_thread(second.is_good, body)
        except BaseException:
            self._exchange = None
            exchange.close()
            raise
        if is_good:
            await self._pass_back(exchange, pieces)
            return
        self._note(exchange, pieces)
        self._exchange = None
        exchange.close()
        other = await self._ask(second.pool, second.authorization)
        await self._pass_back(other, [], is_copied=False)

    def _note(self, exchange: Exchange, pieces: list[bytes]) -> None:
        if self.decision.sample is not None:
            self.decision.sample.head(exchange.status, exchange.headers)
            for piece in pieces:
                self.decision.sample.piece(piece, self.clock())

    async def _pass_back(
        self, exchange: Exchange, held: list[bytes], *, is_copied: bool = True
    ) -> None:
        self._exchange = exchange
        try:
            tee = self.decision.sample if is_copied else None
            if tee is not None:
                tee.head(exchange.status, exchange.headers)
            await self._start(exchange)
            for piece in held:
                if piece and tee is not None:
                    tee.piece(piece, self.clock())
                await self._piece(piece)
            while piece := await exchange.read():
                if tee is not None:
                    tee.piece(piece, self.clock())
                await self._piece(piece)
            await self.send({"type": "http.response.body", "body": b""})
        except UpstreamError:
            await self._say_broken(exchange)
            raise
        finally:
            self._exchange = None
            exchange.close()

    async def _start(self, exchange: Exchange) -> None:
        passed = response_headers(exchange.headers)
        passed.append((b"x-routeproof-request-id", self.decision.request_id.encode()))
        self.status = exchange.status
        await self.send(
            {
                "type": "http.response.start",
                "status": exchange.status,
                "headers": passed,
            }
        )

    async def _piece(self, piece: bytes) -> None:
        self._tail = (self._tail + piece[-4:])[-4:]
        await self.send(
            {"type": "http.response.body", "body": piece, "more_body": True}
        )

    async def _say_broken(self, exchange: Exchange) -> None:
        """Tell readers of an event stream that this is no end.

        Only between two events, in plain text: the body's framing stays broken off in
        any case, so that no client takes it for complete.
        """
        found = {name.lower(): value.lower() for name, value in exchange.headers}
        is_events = found.get(b"content-type", b"").startswith(b"text/event-stream")
        if not is_events or b"content-encoding" in found or b"content-length" in found:
            return
        if self._tail and not self._tail.endswith(_EVENT_ENDS):
            return
        error = {"message": "the answer broke off", "type": "upstream_error"}
        data = msgspec.json.encode({"error": error})
        await self._piece(b"event: error\ndata: " + data + b"\n\n")
