"""The admin listener: dashboard, status, commands, metrics, roles for other tools."""

import asyncio
import base64
import hashlib
import hmac
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import resources
from typing import Any

import msgspec

from routeproof.canary.admin.http import (
    Receive,
    Reply,
    Request,
    Scope,
    Send,
    gone,
    read_request,
    send_reply,
)
from routeproof.canary.admin.metric_families import measured
from routeproof.canary.admin.metrics_page import metrics_page
from routeproof.canary.admin.roles import (
    analysis,
    flag,
    flagger,
    flags,
    unreadable,
)
from routeproof.canary.admin.server import is_loopback
from routeproof.canary.admin.status import samples, status
from routeproof.canary.gateway import Gateway
from routeproof.errors import ConfigError, RouteproofError

COMMANDS = ("start", "promote", "rollback", "pause", "resume", "retry")
LIVE_EVERY_S = 1.0
HOOKS = "/hooks/flagger/"
KEY_NEEDED = Reply({"error": "a valid admin key is needed"}, 401)
PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"

Answer = Callable[[Gateway, Request], Reply]
"""Answers one request in a thread: it may read the store."""


@dataclass(slots=True)
class Admin:
    """The ASGI application of the admin listener.

    Attributes:
        key: Bearer key; without one only loopback addresses are served.
    """

    gateway: Gateway
    key: str | None = field(repr=False)
    live_every_s: float = LIVE_EVERY_S

    def __post_init__(self) -> None:
        if self.key is None and not is_loopback(self.gateway.config.admin):
            raise ConfigError(
                f"the admin listener {self.gateway.config.admin} can be reached from "
                "other machines and has no key",
                key="canary.traffic.admin_key_env",
                hint="name a variable with a key, or listen on 127.0.0.1",
            )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one ASGI request."""
        if scope["type"] != "http":
            return
        if scope["path"] == "/" and scope["method"] == "GET":
            await send_reply(send, dashboard())
            return
        is_allowed = self._is_allowed(scope)
        if not is_allowed and not scope["path"].startswith(HOOKS):
            await send_reply(send, KEY_NEEDED)
            return
        if scope["path"] == "/v1/live":
            await self._live(receive, send)
            return
        try:
            request = await read_request(scope, receive)
            if is_allowed or self._has_token(request):
                reply = await self._answer(request)
            else:
                reply = KEY_NEEDED
        except RouteproofError as error:
            reply = Reply({"error": error.message, "hint": error.hint}, 409)
        except ValueError as error:
            reply = unreadable(scope["path"], str(error))
        await send_reply(send, reply)

    def _is_allowed(self, scope: Scope) -> bool:
        """Whether the key is right; browsers of other pages are turned away."""
        headers = dict(scope["headers"])
        site = headers.get(b"sec-fetch-site", b"none")
        if site not in (b"none", b"same-origin"):
            return False
        if self.key is None:
            return True
        key = self.key.encode()
        given = headers.get(b"authorization", b"")
        return hmac.compare_digest(given, b"Bearer " + key) or hmac.compare_digest(
            headers.get(b"x-api-key", b""), key
        )

    def _has_token(self, request: Request) -> bool:
        """Whether a webhook's body carries the key: Flagger sends no other headers."""
        metadata = request.body.get("metadata")
        given = metadata.get("token") if isinstance(metadata, dict) else None
        return (
            self.key is not None
            and isinstance(given, str)
            and hmac.compare_digest(given.encode(), self.key.encode())
        )

    async def _answer(self, request: Request) -> Reply:
        first, _, rest = request.path.lstrip("/").partition("/")
        if first == "v1" and request.method == "POST" and rest in COMMANDS:
            return await self._command(rest, request)
        answer = ROUTES.get((request.method, request.path))
        for (method, prefix), prefixed in PREFIXES.items():
            if request.method == method and request.path.startswith(prefix):
                answer = answer or prefixed
        if answer is not None:
            return await asyncio.to_thread(answer, self.gateway, request)
        return Reply({"error": f"no {request.method} {request.path} here"}, 404)

    async def _command(self, command: Any, request: Request) -> Reply:
        actor = str(request.body.get("actor", "operator"))[:80]
        reason = str(request.body.get("reason", ""))[:500]
        state = await asyncio.to_thread(
            self.gateway.command, command, actor=actor, reason=reason
        )
        return Reply(state)

    def status(self) -> dict[str, Any]:
        """Everything the dashboard shows, as plain data."""
        return status(self.gateway)

    async def _live(self, receive: Receive, send: Send) -> None:
        """Status as server-sent events until the browser leaves."""
        headers = [
            (b"content-type", b"text/event-stream"),
            (b"cache-control", b"no-store"),
        ]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        left = asyncio.ensure_future(gone(receive))
        try:
            while not left.done():
                body = msgspec.json.encode(await asyncio.to_thread(self.status))
                event = b"data: " + body + b"\n\n"
                await send(
                    {"type": "http.response.body", "body": event, "more_body": True}
                )
                await asyncio.wait([left], timeout=self.live_every_s)
        finally:
            left.cancel()


def _erase(gateway: Gateway, request: Request) -> Reply:
    user = request.body.get("user")
    if not isinstance(user, str):
        raise ValueError("`user` is missing")
    return Reply({"erased": gateway.erase(user)})


def _since(gateway: Gateway, request: Request) -> Reply:
    return Reply(gateway.side.curves.since(float(request.one("since", "0"))))


def _audit(gateway: Gateway, request: Request) -> Reply:
    return Reply(gateway.store.since(int(request.one("since", "0"))))


ROUTES: dict[tuple[str, str], Answer] = {
    ("GET", "/v1/status"): lambda gateway, _: Reply(status(gateway)),
    ("GET", "/v1/audit"): _audit,
    ("GET", "/v1/history"): _since,
    ("GET", "/v1/samples"): lambda gateway, r: Reply(samples(gateway, r)),
    ("POST", "/v1/erase"): _erase,
    ("POST", "/v1/feedback"): lambda gateway, r: Reply(gateway.feedback(r.body)),
    ("GET", "/metrics"): lambda gateway, _: Reply(
        metrics_page(measured(gateway)), content_type=PROMETHEUS
    ),
    ("GET", "/alerts.yaml"): lambda *_: Reply(
        page("alerts.yaml"), content_type="application/yaml"
    ),
    ("GET", "/grafana.json"): lambda *_: Reply(page("grafana.json")),
    ("POST", "/ofrep/v1/evaluate/flags"): flags,
}

PREFIXES: dict[tuple[str, str], Answer] = {
    ("GET", "/v1/analysis/"): analysis,
    ("POST", HOOKS): flagger,
    ("POST", "/ofrep/v1/evaluate/flags/"): flag,
}


def dashboard() -> Reply:
    """The dashboard as one page; its policy names its own script and style."""
    style, script = page("dashboard.css"), page("dashboard.js")
    html = page("dashboard.html").replace("/*css*/", style).replace("/*js*/", script)
    policy = (
        f"default-src 'none'; script-src {_digest(script)}; style-src {_digest(style)};"
        " connect-src 'self'; base-uri 'none'; form-action 'none';"
        " frame-ancestors 'none'"
    )
    return Reply(html, content_type="text/html; charset=utf-8", policy=policy)


def _digest(text: str) -> str:
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return f"'sha256-{digest}'"


def page(name: str) -> str:
    """A file that is served as it is."""
    folder = resources.files("routeproof.canary.admin").joinpath("page")
    return folder.joinpath(name).read_text(encoding="utf-8")
