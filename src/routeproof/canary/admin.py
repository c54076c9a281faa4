"""The admin listener: dashboard, status, commands, metrics, roles for other tools."""

import asyncio
import hmac
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from importlib import resources
from typing import Any
from urllib.parse import parse_qs

import msgspec

from routeproof.canary.decision import Receive, Scope, Send
from routeproof.canary.gateway import Gateway
from routeproof.canary.metrics_page import ALERTS, metrics_page
from routeproof.canary.server import is_loopback
from routeproof.canary.split import PPM
from routeproof.canary.state import State
from routeproof.errors import ConfigError, RouteproofError

MAX_BODY_BYTES = 64 * 1024
COMMANDS = ("start", "promote", "rollback", "pause", "resume")
LIVE_EVERY_S = 1.0

Handler = Callable[["Admin", "Request"], Awaitable["Reply"]]


@dataclass(frozen=True, slots=True)
class Request:
    """One admin request."""

    method: str
    path: str
    query: dict[str, list[str]]
    body: dict[str, Any]

    def one(self, name: str, default: str) -> str:
        """The first value of a query parameter."""
        return self.query.get(name, [default])[0]


@dataclass(frozen=True, slots=True)
class Reply:
    """What goes back."""

    body: Any
    status: int = 200
    content_type: str = "application/json"

    def encode(self) -> bytes:
        """As bytes: text as it is, everything else as JSON."""
        if isinstance(self.body, str):
            return self.body.encode()
        return msgspec.json.encode(self.body)


@dataclass(slots=True)
class Admin:
    """The ASGI application of the admin listener.

    Attributes:
        key: Bearer key; without one only loopback addresses are served.
    """

    gateway: Gateway
    key: str | None
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
            await _send(
                send,
                Reply(_page("dashboard.html"), content_type="text/html; charset=utf-8"),
            )
            return
        if not self._is_allowed(scope):
            await _send(send, Reply({"error": "a valid admin key is needed"}, 401))
            return
        if scope["path"] == "/v1/live":
            await self._live(receive, send)
            return
        try:
            request = await _request(scope, receive)
            reply = await self._answer(request)
        except RouteproofError as error:
            reply = Reply({"error": error.message, "hint": error.hint}, 409)
        except ValueError as error:
            reply = Reply({"error": str(error)}, 400)
        await _send(send, reply)

    def _is_allowed(self, scope: Scope) -> bool:
        """Whether the key is right; browsers of other pages are turned away."""
        headers = dict(scope["headers"])
        site = headers.get(b"sec-fetch-site", b"none")
        if site not in (b"none", b"same-origin"):
            return False
        if self.key is None:
            return True
        given = headers.get(b"authorization", b"")
        return hmac.compare_digest(given, b"Bearer " + self.key.encode())

    async def _answer(self, request: Request) -> Reply:
        first, _, rest = request.path.lstrip("/").partition("/")
        if first == "v1" and request.method == "POST" and rest in COMMANDS:
            return await self._command(rest, request)
        handler = ROUTES.get((request.method, request.path))
        if handler is not None:
            return await handler(self, request)
        for (method, prefix), prefixed in PREFIXES.items():
            if request.method == method and request.path.startswith(prefix):
                return await prefixed(self, request)
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
        gateway = self.gateway
        state = gateway.store.read(gateway.config.name)
        return {
            "name": gateway.config.name,
            "labels": dict(gateway.config.labels),
            "upstreams": dict(gateway.config.upstreams),
            "state": state,
            "weight": gateway.lease.weight_ppm() / PPM,
            "observed_share": gateway.meter.share(),
            "steps": [w / PPM for w in gateway.config.steps.weights_ppm],
            "signals": gateway.taster.standings(),
            "stale": gateway.taster.staleness(),
            "samples": dict(gateway.taster.taken),
            "dropped": dict(gateway.taster.dropped),
            "requests": [
                {"arm": arm, "status": status, "n": n}
                for (arm, status), n in sorted(gateway.router.counts.requests.items())
            ],
            "latency": gateway.taster.latency(),
            "rejection": gateway.taster.rejection(),
            "rollback_s": gateway.rollback_s,
            "store_error": gateway.controller.last_error,
        }

    async def _live(self, receive: Receive, send: Send) -> None:
        """Status as server-sent events until the browser leaves."""
        headers = [
            (b"content-type", b"text/event-stream"),
            (b"cache-control", b"no-store"),
        ]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        gone = asyncio.ensure_future(_gone(receive))
        try:
            while not gone.done():
                body = msgspec.json.encode(await asyncio.to_thread(self.status))
                event = b"data: " + body + b"\n\n"
                await send(
                    {"type": "http.response.body", "body": event, "more_body": True}
                )
                await asyncio.wait([gone], timeout=self.live_every_s)
        finally:
            gone.cancel()


async def _status(admin: Admin, _: Request) -> Reply:
    return Reply(await asyncio.to_thread(admin.status))


async def _metrics(admin: Admin, _: Request) -> Reply:
    def page() -> str:
        gateway = admin.gateway
        state = gateway.store.read(gateway.config.name)
        return metrics_page(gateway, state, gateway.taster.standings())

    kind = "text/plain; version=0.0.4; charset=utf-8"
    return Reply(await asyncio.to_thread(page), content_type=kind)


async def _audit(admin: Admin, request: Request) -> Reply:
    since = int(request.one("since", "0"))
    return Reply(await asyncio.to_thread(admin.gateway.store.since, since))


async def _samples(admin: Admin, request: Request) -> Reply:
    limit = max(1, min(int(request.one("limit", "50")), 500))
    return Reply(await asyncio.to_thread(admin.gateway.taster.spool.latest, limit))


async def _erase(admin: Admin, request: Request) -> Reply:
    user = request.body.get("user")
    if not isinstance(user, str):
        raise ValueError("`user` is missing")
    n = await asyncio.to_thread(admin.gateway.erase, user)
    return Reply({"erased": n})


async def _feedback(admin: Admin, request: Request) -> Reply:
    return Reply(await asyncio.to_thread(admin.gateway.feedback, request.body))


async def _analysis(admin: Admin, request: Request) -> Reply:
    """The shape Argo Rollouts' web metric reads: ``{{data.ok}}``."""
    state = _named(admin, request.path.rpartition("/")[2])
    standings = admin.gateway.taster.standings()
    required = [s for s in standings if s.is_required]
    passed = [s for s in required if s.outcome == "pass"]
    failed = [s.name for s in standings if s.outcome == "fail"]
    is_ok = bool(required) and len(passed) == len(required) and not failed
    outcome = "fail" if failed else "pass" if is_ok else "inconclusive"
    share = len(passed) / len(required) if required else None
    return Reply(
        {
            "data": {
                "ok": is_ok,
                "outcome": outcome,
                "score": share,
                "phase": state.phase,
                "failed": failed,
            }
        }
    )


async def _flagger(admin: Admin, request: Request) -> Reply:
    """Flagger's webhooks: 200 says yes, 403 says no."""
    state = admin.gateway.store.read(admin.gateway.config.name)
    hook = request.path.rpartition("/")[2]
    phase = state.phase if state else "unknown"
    says_yes = {
        "rollback": phase in ("rolling_back", "rolled_back"),
        "confirm-promotion": phase == "promoted",
        "confirm-rollout": phase not in ("rolling_back", "rolled_back"),
        "rollout": phase in ("stepping", "promoted"),
    }
    if hook not in says_yes:
        return Reply({"error": f"no hook `{hook}`"}, 404)
    return Reply({"phase": phase}, 200 if says_yes[hook] else 403)


async def _ofrep(admin: Admin, request: Request) -> Reply:
    """OpenFeature remote evaluation of the split, for the caller's targeting key."""
    from routeproof.canary.split import assign

    _named(admin, request.path.rpartition("/")[2])
    context = request.body.get("context")
    key = context.get("targetingKey") if isinstance(context, dict) else None
    if not isinstance(key, str) or not key:
        return Reply({"errorCode": "TARGETING_KEY_MISSING"}, 400)
    router = admin.gateway.router
    arm = assign(f"u:{key}", salt=router.salt, weight_ppm=router.lease.weight_ppm())
    return Reply(
        {
            "key": admin.gateway.config.name,
            "variant": arm,
            "value": arm == "canary",
            "reason": "SPLIT",
        }
    )


def _named(admin: Admin, name: str) -> State:
    state = admin.gateway.store.read(name)
    if state is None:
        raise ConfigError(f"there is no canary `{name}`")
    return state


async def _alerts(admin: Admin, _: Request) -> Reply:
    return Reply(ALERTS, content_type="application/yaml")


async def _grafana(admin: Admin, _: Request) -> Reply:
    return Reply(_page("grafana.json"))


ROUTES: dict[tuple[str, str], Handler] = {
    ("GET", "/alerts.yaml"): _alerts,
    ("GET", "/grafana.json"): _grafana,
    ("GET", "/v1/status"): _status,
    ("GET", "/metrics"): _metrics,
    ("GET", "/v1/audit"): _audit,
    ("GET", "/v1/samples"): _samples,
    ("POST", "/v1/erase"): _erase,
    ("POST", "/v1/feedback"): _feedback,
}

PREFIXES: dict[tuple[str, str], Handler] = {
    ("GET", "/v1/analysis/"): _analysis,
    ("POST", "/hooks/flagger/"): _flagger,
    ("POST", "/ofrep/v1/evaluate/flags/"): _ofrep,
}


def _page(name: str) -> str:
    folder = resources.files("routeproof.canary").joinpath("page")
    return folder.joinpath(name).read_text(encoding="utf-8")


async def _request(scope: Scope, receive: Receive) -> Request:
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
    return Request(scope["method"], scope["path"], query, parsed)


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


_SECURITY = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
    (
        b"content-security-policy",
        b"default-src 'none'; script-src 'self' 'unsafe-inline'; "
        b"style-src 'unsafe-inline'; connect-src 'self'; base-uri 'none'; "
        b"form-action 'none'; frame-ancestors 'none'",
    ),
    (b"cache-control", b"no-store"),
]


async def _send(send: Send, reply: Reply) -> None:
    body = reply.encode()
    headers = [
        (b"content-type", reply.content_type.encode()),
        (b"content-length", str(len(body)).encode()),
        *_SECURITY,
    ]
    await send(
        {"type": "http.response.start", "status": reply.status, "headers": headers}
    )
    await send({"type": "http.response.body", "body": body})
