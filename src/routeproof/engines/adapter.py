"""What the rest of the house needs of an engine."""

from collections.abc import Mapping
from typing import Any, Literal, Protocol

import msgspec

from routeproof.records.record import EngineDetails


class ReadBack(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a live endpoint says of itself.

    Attributes:
        fields: Route fields by dotted name (``engine.version``), canonical text.
        cannot_tell: Route fields this engine has no way to report.
        models: Model ids it serves.
        raw: The answers it was read from, by path, for the run folder.
    """

    engine: str
    fields: dict[str, str]
    cannot_tell: tuple[str, ...]
    models: tuple[str, ...]
    capabilities: dict[str, bool | None] = {}
    raw: dict[str, str] = {}


class Counters(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Engine counters and gauges at one instant, normalised names.

    A missing series is absent, never 0. Names: ``running``, ``waiting``,
    ``kv_used_share``, ``kv_capacity_tokens``, ``preemptions_total``,
    ``prompt_tokens_total``, ``output_tokens_total``, ``spec_passes_total``,
    ``drafted_total``, ``accepted_total``, ``accepted_at_position_total:<i>``,
    ``cached_tokens_total``, ``process_start_s``, ``memory_bytes``.
    """

    at_s: float
    values: dict[str, float]
    unknown_names: tuple[str, ...] = ()
    source: Literal["metrics", "none"] = "metrics"


class Adapter(Protocol):
    """One engine. At most four methods; tables of names live beside it."""

    name: str

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
