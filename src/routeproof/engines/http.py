"""A small HTTP client for questions to an engine. Nothing here is ever timed.

One request a connection, a deadline over the whole of it, a limit on the size, no
redirects followed, no proxies. The measured client lives in ``runs``.
"""

import asyncio
import json
import socket
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import httptools

from routeproof.engines.endpoint import Endpoint
from routeproof.errors import ConfigError

MAX_BYTES = 16 << 20


@dataclass(frozen=True, slots=True)
class Reply:
    """A complete answer. Header names are lower case."""

    url: str
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def text(self) -> str:
        """The body as text; bytes that are not UTF-8 are replaced."""
        return self.body.decode("utf-8", errors="replace")

    def json(self) -> Any:
        """The body as JSON.

        Raises:
            ConfigError: It is something else; the message shows its beginning.
        """
        try:
            return json.loads(self.body)
        except ValueError:
            start = " ".join(self.text[:200].split())[:80]
            kind = "an HTML page" if start.lower().startswith("<") else f"`{start}`"
            raise ConfigError(
                f"{self.url} answered {kind if start else 'nothing'} instead of JSON",
                hint="check that the URL is the API of an engine "
                "(it usually ends with /v1) and not a web page or a proxy",
            ) from None


@dataclass(slots=True)
class _Collector:
    """Callbacks for httptools."""

    limit: int
    status: Callable[[], int] = int
    headers: dict[str, str] = field(default_factory=dict)
    parts: list[bytes] = field(default_factory=list)
    size: int = 0
    complete: bool = False
    too_big: bool = False

    def on_message_begin(self) -> None:
        # An interim answer (103 Early Hints) may come before the real one.
        self.headers, self.parts, self.size = {}, [], 0

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_body(self, body: bytes) -> None:
        self.size += len(body)
        if self.size > self.limit:
            self.too_big = True
        else:
            self.parts.append(body)

    def on_message_complete(self) -> None:
        self.complete = self.status() >= 200


async def fetch(
    endpoint: Endpoint,
    url: str,
    *,
    body: object = None,
    deadline_s: float = 10.0,
    max_bytes: int = MAX_BYTES,
) -> Reply:
    """GET ``url``, or POST ``body`` to it as JSON, and read the whole answer.

    Args:
        endpoint: Says how to connect and authorise.
        url: As `Endpoint.api` or `Endpoint.at` gives it.
        body: JSON value to post; ``None`` means GET.
        deadline_s: For connecting, sending and reading together.
        max_bytes: Largest body read.

    Raises:
        ConfigError: Could not connect, no answer in time, too big, or not HTTP. A
            status of 400 or more is an answer, not an error.
    """
    try:
        async with asyncio.timeout(deadline_s):
            return await _exchange(endpoint, url, body, max_bytes)
    except TimeoutError:
        raise ConfigError(
            f"{url} did not answer within {deadline_s:g} s",
            hint="check that the engine is up and not stuck, "
            f"with `curl -m {deadline_s:g} {url}`",
        ) from None
    except ssl.SSLError as error:
        raise _tls_error(url, error) from None
    except socket.gaierror:
        raise ConfigError(
            f"the host name of {url} cannot be resolved",
            hint="check the spelling of the host",
        ) from None
    except ConnectionRefusedError:
        raise ConfigError(
            f"nothing listens at {url} (connection refused)",
            hint="start the engine, or check host and port of the endpoint",
        ) from None
    except OSError as error:
        raise ConfigError(
            f"{url} cannot be reached ({error.strerror or error})",
            hint="check host, port and network",
        ) from None


async def _exchange(
    endpoint: Endpoint, url: str, body: object, max_bytes: int
) -> Reply:
    reader, writer = await _connect(endpoint, url)
    try:
        writer.write(_request(endpoint, url, body))
        await writer.drain()
        return await _read(reader, url, max_bytes)
    finally:
        writer.close()


async def _connect(
    endpoint: Endpoint, url: str
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    parts = urlsplit(url)
    if endpoint.unix_socket is not None:
        return await asyncio.open_unix_connection(endpoint.unix_socket)
    context: ssl.SSLContext | None = None
    if parts.scheme == "https":
        context = ssl.create_default_context()
        if not endpoint.verify_tls:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
    port = parts.port or (443 if context else 80)
    return await asyncio.open_connection(parts.hostname, port, ssl=context)


def _request(endpoint: Endpoint, url: str, body: object) -> bytes:
    parts = urlsplit(url)
    target = parts.path or "/"
    if parts.query:
        target += f"?{parts.query}"
    content = b"" if body is None else json.dumps(body).encode()
    headers = {
        "Host": parts.netloc,
        "Connection": "close",
        "Accept-Encoding": "identity",
        **endpoint.sent_headers(),
    }
    if body is not None:
        headers["Content-Type"] = "application/json"
        headers["Content-Length"] = str(len(content))
    method = "GET" if body is None else "POST"
    lines = [f"{method} {target} HTTP/1.1"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + content


async def _read(reader: asyncio.StreamReader, url: str, max_bytes: int) -> Reply:
    collector = _Collector(max_bytes)
    parser = httptools.HttpResponseParser(collector)
    collector.status = parser.get_status_code
    received = False
    while not collector.complete:
        data = await reader.read(1 << 16)
        if not data:
            break
        received = True
        try:
            parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            raise ConfigError(
                f"{url} does not speak HTTP",
                hint="check the port, and http:// against https://",
            ) from None
        if collector.too_big:
            raise ConfigError(
                f"{url} answered with more than {max_bytes} bytes",
                hint="check that the URL is the API of an engine",
            )
    status = parser.get_status_code() if received else 0
    # Without a length the end of the connection is the end of the body.
    by_close = "content-length" not in collector.headers and (
        "chunked" not in collector.headers.get("transfer-encoding", "")
    )
    if not status or not (collector.complete or by_close):
        raise ConfigError(
            f"{url} closed the connection before its answer was complete",
            hint="look into the log of the engine",
        )
    return Reply(url, status, collector.headers, b"".join(collector.parts))


def _tls_error(url: str, error: ssl.SSLError) -> ConfigError:
    if isinstance(error, ssl.SSLCertVerificationError):
        return ConfigError(
            f"the certificate of {url} is not trusted ({error.verify_message})",
            hint="install the issuing certificate, or set `auth: {verify_tls: false}` "
            "for a server of your own",
        )
    return ConfigError(
        f"no TLS connection to {url} ({error.reason or error})",
        hint="does the server speak plain http://?",
    )
