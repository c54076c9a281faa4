"""Heads of answers as they go over the wire, and answers of our own."""

from http import HTTPStatus

import msgspec

from routeproof.canary.relay.connection import Headers

BODILESS = (204, 304)

_REASONS = {s.value: s.phrase.encode() for s in HTTPStatus}


def answer_head(
    status: int, headers: Headers, *, is_chunked: bool, is_last: bool
) -> bytes:
    """Status line and headers; ``is_last`` says that the connection closes."""
    lines = [b"HTTP/1.1 %d %b" % (status, _REASONS.get(status, b""))]
    lines += [b"%b: %b" % header for header in headers]
    if is_chunked:
        lines.append(b"transfer-encoding: chunked")
    if is_last:
        lines.append(b"connection: close")
    lines += (b"", b"")
    return b"\r\n".join(lines)


def own_answer(
    status: int, message: str, retry_after: int | None
) -> tuple[Headers, bytes]:
    """Headers and body of an answer of ours, in the shape OpenAI clients read."""
    error = {"message": message, "type": "routeproof", "code": status}
    body = msgspec.json.encode({"error": error})
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", b"%d" % len(body)),
    ]
    if retry_after is not None:
        headers.append((b"retry-after", b"%d" % retry_after))
    return headers, body
