"""Which headers pass the relay, and which never do."""

from functools import lru_cache

from routeproof.canary.relay.upstream import Headers

HOP_BY_HOP = frozenset(
    {
        b"connection",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    }
)
"""RFC 9110, section 7.6.1, with the old ``keep-alive`` and ``proxy-connection``."""

OWN_PREFIX = b"x-routeproof-"
"""Ours: clients may not send them (but for the testers' override), upstreams may not
set them. ``_`` and ``-`` are the same here, as some servers make them so."""


_SHORT = 64
"""Names up to so many bytes are judged once and remembered."""


def _canonical(name: bytes) -> bytes:
    return name.lower().replace(b"_", b"-")


def _is_dropped(name: bytes) -> bool:
    return _canonical(name).startswith(OWN_PREFIX) or name.lower() in HOP_BY_HOP


_is_dropped_short = lru_cache(maxsize=1024)(_is_dropped)


def _passing(headers: Headers) -> Headers:
    """Those that are neither hop-by-hop nor ours nor named by ``Connection``."""
    passing: Headers = []
    named: set[bytes] = set()
    for pair in headers:
        name = pair[0]
        if not (_is_dropped_short if len(name) <= _SHORT else _is_dropped)(name):
            passing.append(pair)
        elif name.lower() == b"connection":
            named.update(t.strip().lower() for t in pair[1].split(b","))
    if named and not named <= HOP_BY_HOP:
        return [pair for pair in passing if pair[0].lower() not in named]
    return passing


_REPLACED = frozenset({b"host", b"content-length", b"expect"})


def request_headers(
    headers: Headers, *, host: bytes, authorization: bytes | None, body_length: int
) -> Headers:
    """The headers an upstream gets.

    Hop-by-hop headers, those that ``Connection`` names, our own, ``Host``,
    ``Content-Length`` and ``Expect`` are replaced or dropped. The client's
    ``Authorization`` passes only when no key is configured for the upstream.
    Names come in small letters.
    """
    kept: Headers = [(b"host", host)]
    for pair in _passing(headers):
        name = pair[0]
        if name in _REPLACED or (
            name == b"authorization" and authorization is not None
        ):
            continue
        kept.append(pair)
    if authorization is not None:
        kept.append((b"authorization", authorization))
    kept.append((b"content-length", b"%d" % body_length))
    return kept


def response_headers(headers: Headers) -> Headers:
    """The headers a client gets: everything but hop-by-hop and names of ours.

    ``Content-Length`` passes: the body passes unchanged, so it stays true.
    """
    return [(name.lower(), value) for name, value in _passing(headers)]


def request_head(method: str, target: bytes, headers: Headers) -> bytes:
    """Request line and headers as they go over the wire.

    Raises:
        ValueError: A name or value could break the framing.
    """
    lines = [b"%b %b HTTP/1.1" % (method.encode("ascii"), target)]
    lines += [b"%b: %b" % pair for pair in headers]
    head = b"\r\n".join([*lines, b"", b""])
    breaks = len(lines) + 1
    if head.count(b"\n") != breaks or head.count(b"\r") != breaks or b"\0" in head:
        raise ValueError("a header holds a line break or a NUL")
    return head
