"""Questions to endpoints of the operator's choice, from threads that may wait."""

import http.client
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import msgspec

from routeproof.errors import ConfigError

ANSWER_BYTES_MAX = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where to ask. No redirects are followed and no proxies of the environment used.

    Attributes:
        url: Base address; a question's path is added to it.
        headers: Sent with every question.
        timeout_s: Of one question.
        tls: How an ``https`` server is verified; by the system's authorities without.
    """

    url: str
    headers: Mapping[str, str] = field(repr=False)
    timeout_s: float = 60.0
    tls: ssl.SSLContext | None = None

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConfigError(
                f"{self.url!r} is no http(s) address", hint="write http://host:port/v1"
            )
        if parts.username or parts.password:
            raise ConfigError(
                f"the address of {parts.hostname} carries a user name or password",
                hint="name a variable with the key instead",
            )

    def connection(self) -> http.client.HTTPConnection:
        """A fresh connection, not opened yet."""
        parts = urlsplit(self.url)
        host, port = parts.hostname or "", parts.port
        if parts.scheme == "https":
            return http.client.HTTPSConnection(
                host, port, timeout=self.timeout_s, context=self.tls
            )
        return http.client.HTTPConnection(host, port, timeout=self.timeout_s)

    def target(self, path: str) -> str:
        """The request target of a path below the base address."""
        return urlsplit(self.url).path.rstrip("/") + path

    def post(self, path: str, body: object) -> tuple[int, Any]:
        """Send JSON, get JSON.

        Returns:
            The status and the parsed body; status 0 when no answer came, and ``None``
            for a body that is no JSON.
        """
        status, data = self.post_bytes(path, msgspec.json.encode(body))
        try:
            return status, msgspec.json.decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return status, None

    def post_bytes(self, path: str, body: bytes) -> tuple[int, bytes]:
        """The same with bytes that are JSON already."""
        connection = self.connection()
        heads = {"Content-Type": "application/json", **self.headers}
        try:
            connection.request("POST", self.target(path), body, heads)
            response = connection.getresponse()
            return response.status, response.read(ANSWER_BYTES_MAX)
        except (OSError, http.client.HTTPException):
            return 0, b""
        finally:
            connection.close()


def bearer(secret: str | None) -> dict[str, str]:
    """The header of a key; none without one."""
    return {"Authorization": f"Bearer {secret}"} if secret else {}
