"""One request of a client, whole, and how long it may be."""

from dataclasses import dataclass, field
from typing import NamedTuple

import httptools

from routeproof.canary.relay.connection import Headers


@dataclass(frozen=True, slots=True)
class Limits:
    """What a client may ask of the relay.

    Attributes:
        body_bytes: Longest request body.
        header_bytes: Longest head.
        receive_s: For a head and for a body, each, from its first byte (of the first
            head on a connection: from the connection).
        idle_s: Between two requests.
    """

    body_bytes: int = 64 * 1024 * 1024
    header_bytes: int = 32 * 1024
    receive_s: float = 60.0
    idle_s: float = 75.0


@dataclass(frozen=True, slots=True)
class Request:
    """A request as it came.

    Attributes:
        target: Path and query as the client wrote them; starts with ``/``.
        headers: In their order, names in small letters.
        body: Framing undone, content encoding kept.
    """

    method: str
    target: bytes
    headers: Headers = field(repr=False)
    body: bytes = field(default=b"", repr=False)

    @property
    def path(self) -> str:
        """The path, not decoded: ``%2f`` is no slash, so nothing is routed by it."""
        return self.target.partition(b"?")[0].decode("latin-1")


class Waiting(NamedTuple):
    """A whole request whose turn has not come.

    Attributes:
        is_old: It came by HTTP/1.0.
        is_last: Nothing is served after it.
    """

    request: Request
    is_old: bool
    is_last: bool


def origin_form(url: bytes) -> bytes | None:
    """Path and query of a target; of an absolute one, what follows its host."""
    if url.startswith(b"/"):
        return url
    try:
        parts = httptools.parse_url(url)
    except httptools.HttpParserInvalidURLError:
        return None
    if parts.schema not in (b"http", b"https") or not parts.host:
        return None
    query = b"?" + parts.query if parts.query else b""
    return (parts.path or b"/") + query
