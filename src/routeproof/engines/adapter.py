"""What the rest of the house needs of an engine."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import msgspec

from routeproof.engines.series import Series, read_series
from routeproof.records.record import EngineDetails
from routeproof.routes.read_back import ReadBack

__all__ = ["Adapter", "Counters", "ReadBack", "TableAdapter"]


class Counters(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Engine counters and gauges at one instant, normalised names.

    A missing series is absent, never 0. Names: ``running``, ``waiting``,
    ``kv_used_share``, ``kv_capacity_tokens``, ``preemptions_total``,
    ``prompt_tokens_total``, ``output_tokens_total``, ``requests_total``,
    ``spec_passes_total``, ``drafted_total``, ``accepted_total``,
    ``decode_tokens_total``, ``drafted_at_position_total:<i>``,
    ``accepted_at_position_total:<i>`` (``i`` from 0), ``cached_tokens_total``,
    ``acceptance_length_gauge``, ``process_start_s``, ``memory_bytes``,
    ``errors_total``, ``structured_requests_total``, ``grammar_aborted_total``,
    ``grammar_timeout_total``.

    Attributes:
        values: Over all replicas: counters are summed, ``kv_used_share`` is the
            largest, start times are the latest.
        replicas: The same per replica, keyed by its labels; one entry ``""`` when the
            engine labels none. Windows are taken here, so that one restarted replica
            is seen.
        unknown_names: Speculation series no table knows, by their full name.
    """

    at_s: float
    values: dict[str, float]
    unknown_names: tuple[str, ...] = ()
    source: Literal["metrics", "none"] = "metrics"
    replicas: dict[str, dict[str, float]] = {}


class Adapter(Protocol):
    """One engine. At most four methods; tables of names live beside it."""

    @property
    def name(self) -> str:
        """The engine's name, as in ``engine.name`` of a route."""
        ...

    def read_back(self, answers: Mapping[str, str]) -> ReadBack:
        """Read identity and route fields from the bodies of ``probe_paths``."""
        ...

    def counters(self, exposition: str, at_s: float) -> Counters:
        """Parse one scrape of the engine's metrics page."""
        ...

    def request_fields(self) -> dict[str, Any]:
        """Fields to add to a request so that per-request details come back."""
        ...

    def details(self, body: Mapping[str, Any]) -> EngineDetails:
        """Per-request details from the last chunk or the whole body."""
        ...


@dataclass(frozen=True, slots=True)
class TableAdapter:
    """An adapter made of tables and two functions.

    Attributes:
        probe_paths: What to fetch for `read_back`, relative to the server's root.
        metrics_path: Where the Prometheus text is.
        series: Normalised name to the engine's names, newest first.
        replica_labels: Labels that tell replicas apart.
        extra_fields: Request fields that bring per-request details back.
        known_names: Speculation series that are known and not needed.
        not_exported: Number of a live engine (`metrics.live.LIVE`) to why its metrics
            page cannot tell it, with the nearest names it has.
    """

    name: str
    probe_paths: tuple[str, ...]
    metrics_path: str
    series: tuple[Series, ...]
    read: Callable[[Mapping[str, str]], ReadBack]
    detail: Callable[[Mapping[str, Any]], EngineDetails]
    replica_labels: tuple[str, ...] = ()
    extra_fields: Mapping[str, Any] = field(default_factory=dict)
    known_names: frozenset[str] = frozenset()
    not_exported: Mapping[str, str] = field(default_factory=dict)

    def read_back(self, answers: Mapping[str, str]) -> ReadBack:
        """Identity and route fields from the bodies of ``probe_paths``."""
        return self.read(answers)

    def counters(self, exposition: str, at_s: float) -> Counters:
        """One scrape of the metrics page; empty when it is no exposition text."""
        found = read_series(exposition, self.series, self.replica_labels)
        for numbers in (found.values, *found.replicas.values()):
            _add_capacity(numbers)
        return Counters(
            at_s=at_s,
            values=found.values,
            unknown_names=tuple(
                name for name in found.unknown if name not in self.known_names
            ),
            source="metrics" if found.values else "none",
            replicas=found.replicas,
        )

    def request_fields(self) -> dict[str, Any]:
        """Fields to add to a request so that per-request details come back."""
        return dict(self.extra_fields)

    def details(self, body: Mapping[str, Any]) -> EngineDetails:
        """Per-request details from the last chunk or the whole body."""
        return self.detail(body)


def _add_capacity(numbers: dict[str, float]) -> None:
    """Tokens of KV cache from blocks, where the engine counts in blocks."""
    blocks, size = numbers.get("kv_max_blocks"), numbers.get("kv_tokens_per_block")
    if blocks is not None and size is not None:
        numbers.setdefault("kv_capacity_tokens", blocks * size)
