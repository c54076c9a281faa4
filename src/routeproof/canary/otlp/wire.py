"""OTLP over HTTP in its JSON encoding: where to send, and the shapes sent.

Only what the exporter needs of the protocol. Numbers of 64 bits are text, ids are hex,
enumerations are numbers, as the OTLP specification 1.x says for JSON.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import unquote, urlsplit

from routeproof.canary.tasting.asked_http import Endpoint
from routeproof.errors import ConfigError

SignalKind = Literal["traces", "metrics", "logs"]
KINDS: tuple[SignalKind, ...] = ("traces", "metrics", "logs")
TIMEOUT_S = 10.0
SCOPE = "routeproof.canary"

Attributes = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Destination:
    """Where each kind goes; a kind that is missing is not sent."""

    endpoints: Mapping[SignalKind, Endpoint]
    resource: Mapping[str, str]
    metrics_every_s: float = 60.0
    spans_every_s: float = 5.0


def destination_of(environ: Mapping[str, str]) -> Destination | None:
    """What the usual ``OTEL_`` variables say; ``None`` when nothing is to be sent.

    Raises:
        ConfigError: An address, a number or the protocol makes no sense.
    """
    if environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return None
    protocol = environ.get("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json")
    if not protocol.startswith("http/"):
        raise ConfigError(
            f"OTEL_EXPORTER_OTLP_PROTOCOL is `{protocol}`; OTLP is sent over HTTP",
            hint="set it to http/json and give the collector's HTTP port, usually 4318",
        )
    timeout_s = _number(environ, "OTEL_EXPORTER_OTLP_TIMEOUT", 1e3 * TIMEOUT_S) / 1e3
    found: dict[SignalKind, Endpoint] = {}
    for kind in KINDS:
        url = _url(environ, kind)
        if url is not None:
            found[kind] = Endpoint(url, _headers(environ, kind), timeout_s)
    if not found:
        return None
    return Destination(
        found,
        _resource(environ),
        _number(environ, "OTEL_METRIC_EXPORT_INTERVAL", 60_000) / 1e3,
        _number(environ, "OTEL_BSP_SCHEDULE_DELAY", 5_000) / 1e3,
    )


def _url(environ: Mapping[str, str], kind: SignalKind) -> str | None:
    if environ.get(f"OTEL_{kind.upper()}_EXPORTER", "otlp").strip() == "none":
        return None
    own = environ.get(f"OTEL_EXPORTER_OTLP_{kind.upper()}_ENDPOINT", "").strip()
    if own:
        return own
    base = environ.get("OTEL_EXPORTER_OTLP_ENDPOINT", "").strip()
    return f"{base.rstrip('/')}/v1/{kind}" if base else None


def _headers(environ: Mapping[str, str], kind: SignalKind) -> dict[str, str]:
    own = environ.get(f"OTEL_EXPORTER_OTLP_{kind.upper()}_HEADERS")
    return _pairs(own or environ.get("OTEL_EXPORTER_OTLP_HEADERS", ""))


def _resource(environ: Mapping[str, str]) -> dict[str, str]:
    given = _pairs(environ.get("OTEL_RESOURCE_ATTRIBUTES", ""))
    name = environ.get("OTEL_SERVICE_NAME", "").strip()
    named = name or given.get("service.name") or "routeproof-canary"
    return {**given, "service.name": named}


def _pairs(text: str) -> dict[str, str]:
    found = {}
    for part in text.split(","):
        name, equals, value = part.partition("=")
        if equals and name.strip():
            found[name.strip()] = unquote(value.strip())
    return found


def _number(environ: Mapping[str, str], name: str, usual: float) -> float:
    text = environ.get(name, "").strip()
    try:
        number = float(text) if text else float(usual)
    except ValueError:
        number = -1.0
    if not 0 < number < float("inf"):
        raise ConfigError(f"{name} is `{text}`", hint="write milliseconds above 0")
    return number


def attributes(given: Attributes) -> list[dict[str, Any]]:
    """Attributes on the wire; those that are ``None`` are left out."""
    return [
        {"key": key, "value": _value(value)}
        for key, value in given.items()
        if value is not None
    ]


def _value(value: Any) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    if isinstance(value, list | tuple):
        return {"arrayValue": {"values": [_value(each) for each in value]}}
    return {"stringValue": str(value)}


def wrapped(
    kind: SignalKind, rows: Iterable[Any], resource: Mapping[str, str], version: str
) -> dict[str, Any]:
    """Rows of one kind as a request's body."""
    outer, inner, name = {
        "traces": ("resourceSpans", "scopeSpans", "spans"),
        "metrics": ("resourceMetrics", "scopeMetrics", "metrics"),
        "logs": ("resourceLogs", "scopeLogs", "logRecords"),
    }[kind]
    scope = {"name": SCOPE, "version": version}
    return {
        outer: [
            {
                "resource": {"attributes": attributes(resource)},
                inner: [{"scope": scope, name: list(rows)}],
            }
        ]
    }


@dataclass(slots=True)
class Histogram:
    """Counts since the start by attributes, over fixed bounds."""

    bounds: tuple[float, ...]
    unit: str
    rows: dict[tuple[tuple[str, Any], ...], "_Row"] = field(default_factory=dict)

    def add(self, value: float, given: Attributes) -> None:
        """Take one value in; a bound belongs to the bucket below it."""
        key = tuple(sorted((k, v) for k, v in given.items() if v is not None))
        row = self.rows.setdefault(key, _Row([0] * (len(self.bounds) + 1)))
        at = sum(bound < value for bound in self.bounds)
        row.buckets[at] += 1
        row.total += value
        row.low = value if row.low is None else min(row.low, value)
        row.high = value if row.high is None else max(row.high, value)

    def data(self, name: str, began_ns: int, now_ns: int) -> dict[str, Any]:
        """The metric on the wire, cumulative."""
        points = [
            {
                "attributes": attributes(dict(key)),
                "startTimeUnixNano": str(began_ns),
                "timeUnixNano": str(now_ns),
                "count": str(sum(row.buckets)),
                "sum": row.total,
                "min": row.low,
                "max": row.high,
                "bucketCounts": [str(n) for n in row.buckets],
                "explicitBounds": list(self.bounds),
            }
            for key, row in self.rows.items()
        ]
        inside = {"aggregationTemporality": 2, "dataPoints": points}
        return {"name": name, "unit": self.unit, "histogram": inside}


@dataclass(slots=True)
class _Row:
    buckets: list[int]
    total: float = 0.0
    low: float | None = None
    high: float | None = None


def server_of(url: str) -> dict[str, Any]:
    """``server.address`` and ``server.port`` of an upstream."""
    parts = urlsplit(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    return {"server.address": parts.hostname or "", "server.port": port}
