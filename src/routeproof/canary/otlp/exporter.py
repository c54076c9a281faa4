"""The exporter: tasted answers as spans, events and metrics to an OTLP collector.

On when the usual ``OTEL_EXPORTER_OTLP_`` variables name a collector. It runs in a
thread of its own behind a bounded queue: a collector that is slow or gone costs
nothing but rows, which are counted. No prompt and no answer is ever sent.
"""

import threading
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from time import monotonic_ns, time_ns
from typing import Any, Protocol

from routeproof import __version__
from routeproof.canary.otlp.names import Convention
from routeproof.canary.otlp.rows import Seen, evaluations, seen, span
from routeproof.canary.otlp.timings import Timings
from routeproof.canary.otlp.wire import (
    Destination,
    SignalKind,
    attributes,
    wrapped,
)
from routeproof.canary.samples.spool import Sample
from routeproof.canary.tasting.tee import Copy

WAITING_MAX = 2_048
MODELS_MAX = 20
AGAIN = frozenset({0, 429, 502, 503, 504})
"""Statuses after which the same rows are sent again; 0 is no answer at all."""


class Measured(Protocol):
    """A metric of the canary itself."""

    @property
    def name(self) -> str:
        """As on the Prometheus page."""
        ...

    @property
    def kind(self) -> str:
        """``counter`` or ``gauge``."""
        ...

    @property
    def what(self) -> str:
        """In words."""
        ...

    @property
    def rows(self) -> Sequence[tuple[Mapping[str, str], float]]:
        """Labels and value."""
        ...


@dataclass(slots=True)
class Exporter:
    """Sends what was tasted.

    Attributes:
        given: By arm, attributes of every row: route, arm, server, provider.
        measure: The canary's own metrics, asked for at each export.
        sent, lost: Rows by kind.
        last_error: Of the last export, in words; ``None`` while all is well.
    """

    destination: Destination
    convention: Convention
    given: Mapping[str, Mapping[str, Any]]
    measure: Callable[[], Sequence[Measured]] = tuple
    sent: Counter[str] = field(default_factory=Counter, init=False)
    lost: Counter[str] = field(default_factory=Counter, init=False)
    last_error: str | None = field(default=None, init=False)
    _offset_ns: int = field(init=False)
    _began_ns: int = field(init=False)
    _timings: Timings = field(default_factory=Timings, init=False)
    _models: set[str] = field(default_factory=set, init=False)
    _spans: deque[dict[str, Any]] = field(default_factory=deque, init=False)
    _logs: deque[dict[str, Any]] = field(default_factory=deque, init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)
    _is_ending: threading.Event = field(default_factory=threading.Event, init=False)
    _thread: threading.Thread | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self._began_ns = time_ns()
        self._offset_ns = self._began_ns - monotonic_ns()

    def take(self, sample: Sample, copy: Copy) -> None:
        """Take a tasted answer in; called in the taster's thread."""
        given = self.given.get(sample.arm, {})
        one = seen(sample, copy, given, self._offset_ns)
        with self._lock:
            self._timings.add(self._few_models(one))
            made = span(one, self.convention)
            if made is not None:
                self._keep("traces", self._spans, made)
            for row in evaluations(one, sample.signals or {}, self.convention):
                self._keep("logs", self._logs, row)

    def _few_models(self, one: Seen) -> Seen:
        """Callers write the model's name: only so many become a series each."""
        model = one.common["gen_ai.request.model"]
        if model is None or model in self._models:
            return one
        if len(self._models) < MODELS_MAX:
            self._models.add(model)
            return one
        common = {**one.common, "gen_ai.request.model": "_OTHER"}
        return Seen(
            one.sample,
            common,
            one.request,
            one.response_id,
            one.trace,
            one.began_ns,
            one.ended_ns,
        )

    def _keep(
        self, kind: SignalKind, rows: deque[dict[str, Any]], row: dict[str, Any]
    ) -> None:
        if len(rows) >= WAITING_MAX:
            self.lost[kind] += 1
        else:
            rows.append(row)

    def start(self) -> None:
        """Export from now on."""
        if self._thread is None:
            self._is_ending.clear()
            self._thread = threading.Thread(target=self._work, daemon=True, name="otlp")
            self._thread.start()

    def stop(self) -> None:
        """Send what is left and end."""
        if self._thread is not None:
            self._is_ending.set()
            self._thread.join(timeout=15.0)
            self._thread = None

    def _work(self) -> None:
        wait_s = min(self.destination.spans_every_s, self.destination.metrics_every_s)
        metrics_at_s = self.destination.metrics_every_s
        gone_s = 0.0
        while not self._is_ending.wait(wait_s):
            gone_s += wait_s
            is_time = gone_s >= metrics_at_s
            if is_time:
                metrics_at_s += self.destination.metrics_every_s
            self._guarded(is_time)
        self._guarded(True)

    def _guarded(self, with_metrics: bool) -> None:
        try:
            self.export(with_metrics=with_metrics)
        except Exception as error:  # the border of this thread
            self.last_error = f"{type(error).__name__} on export"

    def export(self, *, with_metrics: bool = True) -> None:
        """Send what waits, and the metrics as they stand."""
        self.last_error = None
        self._send_rows("traces", self._spans)
        self._send_rows("logs", self._logs)
        if with_metrics:
            rows = self.metrics(time_ns())
            if rows and not self._post("metrics", rows):
                self.lost["metrics"] += len(rows)

    def _send_rows(self, kind: SignalKind, waiting: deque[dict[str, Any]]) -> None:
        with self._lock:
            rows = list(waiting)
            waiting.clear()
        if not rows or kind not in self.destination.endpoints:
            return
        if self._post(kind, rows):
            return
        with self._lock:
            room = WAITING_MAX - len(waiting)
            waiting.extendleft(reversed(rows[-room:] if room else []))
            self.lost[kind] += max(0, len(rows) - room)

    def _post(self, kind: SignalKind, rows: list[dict[str, Any]]) -> bool:
        """Send rows; false when they should be sent again."""
        endpoint = self.destination.endpoints.get(kind)
        if endpoint is None:
            return True
        body = wrapped(kind, rows, self.destination.resource, __version__)
        status, said = endpoint.post("", body)
        if 200 <= status < 300:
            refused = _refused(said)
            self.sent[kind] += len(rows) - refused
            self.lost[kind] += refused
            return True
        self.last_error = f"the collector answered {kind} with status {status}"
        if status in AGAIN:
            return False
        self.lost[kind] += len(rows)
        return True

    def metrics(self, now_ns: int) -> list[dict[str, Any]]:
        """Every metric on the wire."""
        with self._lock:
            rows = self._timings.data(self.convention, self._began_ns, now_ns)
        return rows + [
            _own(each, self._began_ns, now_ns) for each in self.measure() if each.rows
        ]


def _refused(said: Any) -> int:
    """Rows that a collector took the request of but not the rows."""
    partial = said.get("partialSuccess") if isinstance(said, dict) else None
    if not isinstance(partial, dict):
        return 0
    for key, value in partial.items():
        if key.startswith("rejected"):
            return int(value or 0)
    return 0


def _own(each: Measured, began_ns: int, now_ns: int) -> dict[str, Any]:
    """A metric of the canary under its dotted name: ``routeproof.requests``."""
    plain = each.name.removeprefix("routeproof_").removesuffix("_total")
    unit = "s" if plain.endswith("_seconds") else "1"
    points = [
        {
            "attributes": attributes({f"routeproof.{k}": v for k, v in labels.items()}),
            "startTimeUnixNano": str(began_ns),
            "timeUnixNano": str(now_ns),
            "asDouble": float(value),
        }
        for labels, value in each.rows
    ]
    made = {
        "name": f"routeproof.{plain.removesuffix('_seconds')}",
        "description": each.what,
        "unit": unit,
    }
    if each.kind == "counter":
        counted = {"aggregationTemporality": 2, "isMonotonic": True}
        return {**made, "sum": {**counted, "dataPoints": points}}
    return {**made, "gauge": {"dataPoints": points}}
