"""The monitor's Prometheus page and its Grafana dashboard. Computes nothing."""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

PREFIX = "routeproof_monitor"

_QUANTILE = {"p50": "0.5", "p95": "0.95", "p99": "0.99"}

Labels = Mapping[str, str]
Rows = Iterable[tuple[Labels, float]]


class Shown(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the page shows.

    Attributes:
        name: Of the watched endpoint, the ``target`` label.
        up: Whether it answered at the last look.
        numbers: Of the last window; what is unknown gets no line.
        route: What the engine says of itself.
        restarts, outages, route_changes: Since the monitor began.
        shifts: Alarms by number.
    """

    name: str
    up: bool
    numbers: dict[str, float | None] = {}
    route: dict[str, str] = {}
    restarts: int = 0
    outages: int = 0
    route_changes: int = 0
    shifts: dict[str, int] = {}


ROUTE_LABELS = {
    "engine.name": "engine",
    "engine.version": "version",
    "model": "model",
    "weights": "weights",
    "kv_cache": "kv_cache",
    "speculation.method": "method",
    "speculation.draft.model": "draft",
    "speculation.draft.revision": "draft_revision",
    "speculation.draft_tokens": "draft_tokens",
}


def series_of(number: str) -> tuple[str, dict[str, str]]:
    """Prometheus name and labels of a number of a window.

    Example:
        >>> series_of("request_latency_p95_s")
        ('routeproof_monitor_request_latency_seconds', {'quantile': '0.95'})
        >>> series_of("rejection_rate")
        ('routeproof_monitor_rejection_rate', {})
    """
    stem, labels = number, {}
    for short, quantile in _QUANTILE.items():
        if f"_{short}_" in number:
            stem, labels = number.replace(f"_{short}", ""), {"quantile": quantile}
    if stem.endswith("_per_s"):
        stem = stem.removesuffix("_per_s") + "_per_second"
    elif stem.endswith("_s"):
        stem = stem.removesuffix("_s") + "_seconds"
    return f"{PREFIX}_{stem}", labels


def metrics_page(shown: Shown) -> str:
    """Prometheus text. What is unknown has no line."""
    lines: list[str] = []
    target = {"target": shown.name}
    _family(lines, f"{PREFIX}_up", "gauge", [(target, float(shown.up))])
    families: dict[str, list[tuple[Labels, float]]] = {}
    for number, value in shown.numbers.items():
        if value is not None:
            name, labels = series_of(number)
            families.setdefault(name, []).append(({**target, **labels}, value))
    for name, rows in families.items():
        _family(lines, name, "gauge", rows)
    for what in ("restarts", "outages", "route_changes"):
        rows = [(target, float(getattr(shown, what)))]
        _family(lines, f"{PREFIX}_{what}_total", "counter", rows)
    shifts = [({**target, "number": n}, float(c)) for n, c in shown.shifts.items()]
    _family(lines, f"{PREFIX}_shifts_total", "counter", shifts)
    labels = {
        label: shown.route[field]
        for field, label in ROUTE_LABELS.items()
        if field in shown.route
    }
    _family(lines, f"{PREFIX}_route_info", "gauge", [({**target, **labels}, 1.0)])
    return "\n".join([*lines, ""])


def _family(lines: list[str], name: str, kind: str, rows: Rows) -> None:
    found = list(rows)
    if not found:
        return
    lines.append(f"# TYPE {name} {kind}")
    for labels, value in found:
        inner = ",".join(f'{k}="{_quoted(v)}"' for k, v in labels.items())
        lines.append(f"{name}{{{inner}}} {value:.10g}")


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


PANELS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("Rejection rate", "percentunit", ("rejection_rate",)),
    ("Tokens a pass yields", "short", ("tokens_per_pass", "acceptance_length")),
    ("Verify passes per request", "short", ("verify_passes_per_request",)),
    ("Request latency", "s", ("request_latency_mean_s", "request_latency_p95_s")),
    ("Failures", "percentunit", ("error_share", "structured_failure_share")),
    ("Traffic", "short", ("requests_per_s", "running", "waiting")),
    (
        "Tokens per request",
        "short",
        ("prompt_tokens_per_request", "output_tokens_per_request"),
    ),
    ("Shares of the traffic", "percentunit", ("cached_share", "prompt_share")),
    ("KV cache in use", "percentunit", ("kv_used_share",)),
)
"""Title, unit of Grafana, and the numbers on it."""

EVENTS = ("restarts", "route_changes", "shifts", "outages")


def dashboard() -> dict[str, Any]:
    """A Grafana dashboard over the page; the data source is chosen on import."""
    panels = [_state(0)]
    for place, (title, unit, numbers) in enumerate(PANELS):
        targets = [_target(number, i) for i, number in enumerate(numbers)]
        panels.append(_graph(place + 1, title, unit, targets, _grid(place, top=4)))
    return {
        "title": "routeproof: speculation of a live engine",
        "uid": "routeproof-monitor",
        "schemaVersion": 39,
        "version": 1,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "tags": ["routeproof"],
        "templating": {"list": [_source_variable(), _target_variable()]},
        "annotations": {"list": [_annotation(what) for what in EVENTS]},
        "panels": panels,
    }


SOURCE = {"type": "prometheus", "uid": "${source}"}


def _source_variable() -> dict[str, Any]:
    return {
        "name": "source",
        "type": "datasource",
        "query": "prometheus",
        "label": "Prometheus",
    }


def _target_variable() -> dict[str, Any]:
    return {
        "name": "target",
        "type": "query",
        "datasource": SOURCE,
        "query": f"label_values({PREFIX}_up, target)",
        "refresh": 2,
        "includeAll": True,
        "multi": True,
        "label": "engine",
    }


def _annotation(what: str) -> dict[str, Any]:
    return {
        "name": what.replace("_", " "),
        "datasource": SOURCE,
        "enable": True,
        "expr": f'increase({PREFIX}_{what}_total{{target=~"$target"}}[2m]) > 0',
        "titleFormat": what.replace("_", " "),
        "textFormat": "{{target}} {{number}}",
        "iconColor": "orange" if what == "shifts" else "blue",
    }


def _target(number: str, place: int) -> dict[str, Any]:
    name, labels = series_of(number)
    chosen = ",".join(f'{k}="{v}"' for k, v in {**labels}.items())
    inner = ",".join(part for part in ('target=~"$target"', chosen) if part)
    return {
        "refId": chr(ord("A") + place),
        "datasource": SOURCE,
        "expr": f"{name}{{{inner}}}",
        "legendFormat": f"{{{{target}}}} {number.removesuffix('_s')}",
    }


def _state(number: int) -> dict[str, Any]:
    return {
        "id": number + 1,
        "type": "stat",
        "title": "Engine answers",
        "datasource": SOURCE,
        "gridPos": {"x": 0, "y": 0, "w": 24, "h": 4},
        "targets": [
            {
                "refId": "A",
                "datasource": SOURCE,
                "expr": f'{PREFIX}_up{{target=~"$target"}}',
                "legendFormat": "{{target}}",
            }
        ],
    }


def _grid(place: int, *, top: int) -> dict[str, int]:
    width, height = 8, 8
    return {
        "x": place % 3 * width,
        "y": top + place // 3 * height,
        "w": width,
        "h": height,
    }


def _graph(
    number: int,
    title: str,
    unit: str,
    targets: list[dict[str, Any]],
    grid: dict[str, int],
) -> dict[str, Any]:
    return {
        "id": number + 1,
        "type": "timeseries",
        "title": title,
        "datasource": SOURCE,
        "gridPos": grid,
        # A gap is a gap: what is unknown is not drawn through.
        "fieldConfig": {
            "defaults": {"unit": unit, "custom": {"spanNulls": False}},
            "overrides": [],
        },
        "targets": targets,
    }
