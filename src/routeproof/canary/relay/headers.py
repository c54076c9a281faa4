"""Which headers pass the relay, and which never do."""

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


def _canonical(name: bytes) -> bytes:
    return name.lower().replace(b"_", b"-")


def _named_by_connection(headers: Headers) -> set[bytes]:
    values = [value for name, value in headers if name.lower() == b"connection"]
    return {t.strip().lower() for value in values for t in value.split(b",")}


def request_headers(
    headers: Headers, *, host: bytes, authorization: bytes | None, body_length: int
) -> Headers:
    """The headers an upstream gets.

    Hop-by-hop headers, those that ``Connection`` names, our own, ``Host``,
    ``Content-Length`` and ``Expect`` are replaced or dropped. The client's
    ``Authorization`` passes only when no key is configured for the upstream.
    """
    dropped = HOP_BY_HOP | _named_by_connection(headers)
    kept: Headers = [(b"host", host)]
    for name, value in headers:
        low = name.lower()
        if low in dropped or low in (b"host", b"content-length", b"expect"):
            continue
        if _canonical(low).startswith(OWN_PREFIX):
            continue
        if low == b"authorization" and authorization is not None:
            continue
        kept.append((name, value))
    if authorization is not None:
        kept.append((b"authorization", authorization))
    kept.append((b"content-length", str(body_length).encode()))
    return kept


def response_headers(headers: Headers) -> Headers:
    """The headers a client gets: everything but hop-by-hop and names of ours.

    ``Content-Length`` passes: the body passes unchanged, so it stays true.
    """
    dropped = HOP_BY_HOP | _named_by_connection(headers)
    return [
        (name.lower(), value)
        for name, value in headers
        if name.lower() not in dropped and not _canonical(name).startswith(OWN_PREFIX)
    ]


def request_head(method: str, target: bytes, headers: Headers) -> bytes:
    """Request line and headers as they go over the wire.

    Raises:
        ValueError: A name or value could break the framing.
    """
    lines = [method.encode("ascii") + b" " + target + b" HTTP/1.1"]
    for name, value in headers:
        if any(c in value or c in name for c in (b"\r", b"\n", b"\0")):
            raise ValueError(f"header {name!r} holds a line break or a NUL")
        lines.append(name + b": " + value)
    return b"\r\n".join([*lines, b"", b""])
