"""One question to the admin listener of a running gateway, however it listens."""

import http.client
import json
import socket
import ssl
from pathlib import Path
from typing import Any

from routeproof.canary.relay.listener import Address
from routeproof.errors import ConfigError

TIMEOUT_S = 10.0


class _UnixConnection(http.client.HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=TIMEOUT_S)
        self._path = path

    def connect(self) -> None:
        """Open the socket."""
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(TIMEOUT_S)
        self.sock.connect(self._path)


def ask_admin(
    address: Address,
    method: str,
    what: str,
    *,
    body: dict[str, Any],
    key: str | None,
    certificate: Path | None,
) -> dict[str, Any]:
    """The gateway's answer.

    Args:
        address: Where it listens for people.
        method: GET or POST.
        what: Path of the question.
        body: Sent with a POST.
        key: Admin key.
        certificate: What it shows itself by; exactly this one is trusted, whatever name
            it is made out to, since people ask by an address.

    Raises:
        ConfigError: It refuses, in its own words.
        OSError: Nobody answers.
        ValueError: The answer is none of a gateway.
    """
    headers = {"Content-Type": "application/json"}
    if key is not None:
        headers["Authorization"] = f"Bearer {key}"
    connection = _connection(address, certificate)
    sent = json.dumps(body).encode() if method == "POST" else None
    try:
        connection.request(method, what, sent, headers)
        reply = connection.getresponse()
        said = reply.read().decode("utf-8", "replace")
    except http.client.HTTPException as error:
        raise ValueError(f"{type(error).__name__}, no answer of a gateway") from None
    finally:
        connection.close()
    if reply.status >= 400:
        raise _refusal(said)
    answer: dict[str, Any] = json.loads(said)
    return answer


def _connection(
    address: Address, certificate: Path | None
) -> http.client.HTTPConnection:
    if address.unix is not None:
        return _UnixConnection(address.unix)
    if certificate is None:
        return http.client.HTTPConnection(address.host, address.port, timeout=TIMEOUT_S)
    context = ssl.create_default_context(cafile=certificate)
    context.check_hostname = False
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    return http.client.HTTPSConnection(
        address.host, address.port, timeout=TIMEOUT_S, context=context
    )


def _refusal(body: str) -> ConfigError:
    try:
        found = json.loads(body)
        hint = found.get("hint")
        return ConfigError(f"the gateway refuses: {found['error']}", hint=hint)
    except (ValueError, LookupError, TypeError, AttributeError):
        return ConfigError(f"the gateway refuses: {body[:300]}")
