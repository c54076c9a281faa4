"""Requests and replies of the admin listener."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs

import msgspec

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]
MAX_BODY_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class Request:
    """One admin request.

    Attributes:
        if_none_match: What the caller has already, by its entity tag.
    """

    method: str
    path: str
    query: dict[str, list[str]]
    body: dict[str, Any]
    if_none_match: str = ""

    def one(self, name: str, default: str) -> str:
        """The first value of a query parameter."""
        return self.query.get(name, [default])[0]


@dataclass(frozen=True, slots=True)
class Reply:
    """What goes back.

    Attributes:
        policy: What a browser may load for it.
        tag: Entity tag, where a caller may keep the body and ask whether it changed.
    """

    body: Any
    status: int = 200
    content_type: str = "application/json"
    policy: str = "default-src 'none'; frame-ancestors 'none'"
    tag: str | None = None

    def encode(self) -> bytes:
        """As bytes: text as it is, everything else as JSON, nothing for ``None``."""
        if self.body is None:
            return b""
        if isinstance(self.body, str):
            return self.body.encode()
        return msgspec.json.encode(self.body)


async def read_request(scope: Scope, receive: Receive) -> Request:
    """Read a request whole.

    Raises:
        ValueError: The body is too large or no JSON object.
    """
    body = b""
    while True:
        event = await receive()
        body += event.get("body", b"")
        if len(body) > MAX_BODY_BYTES:
            raise ValueError("the body is too large")
        if not event.get("more_body", False):
            break
    try:
        parsed = msgspec.json.decode(body) if body.strip() else {}
    except msgspec.DecodeError as error:
        raise ValueError(f"not JSON: {error}") from None
    if not isinstance(parsed, dict):
        raise ValueError("expected a JSON object")
    query = parse_qs(scope["query_string"].decode("latin-1"))
    held = dict(scope["headers"]).get(b"if-none-match", b"").decode("latin-1")
    return Request(scope["method"], scope["path"], query, parsed, held)


async def gone(receive: Receive) -> None:
    """Wait until the client has left."""
    while (await receive())["type"] != "http.disconnect":
        pass


_SECURITY = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
    (b"cache-control", b"no-store"),
]


async def send_reply(send: Send, reply: Reply) -> None:
    """Send a reply with the headers that keep browsers careful."""
    body = reply.encode()
    headers = [
        (b"content-type", reply.content_type.encode()),
        (b"content-length", str(len(body)).encode()),
        (b"content-security-policy", reply.policy.encode()),
        *_SECURITY,
    ]
    if reply.tag is not None:
        headers.append((b"etag", reply.tag.encode()))
    await send(
        {"type": "http.response.start", "status": reply.status, "headers": headers}
    )
    await send({"type": "http.response.body", "body": body})
