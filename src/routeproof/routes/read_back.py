"""What a live endpoint says of itself, in the words of a route."""

import msgspec


class ReadBack(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a live endpoint says of itself.

    Attributes:
        fields: Route fields by dotted name (``engine.version``), canonical text.
            Names that start with ``observed.`` are facts beside the route, such as
            ``observed.kv_capacity_tokens``; they are shown and never compared.
        cannot_tell: Route fields this engine has no way to report.
        models: Model ids it serves.
        capabilities: What a probe request found: ``True`` honoured or accepted,
            ``False`` refused, ``None`` could not be asked.
        raw: The answers it was read from, by path, for the run folder.
    """

    engine: str
    fields: dict[str, str]
    cannot_tell: tuple[str, ...]
    models: tuple[str, ...]
    capabilities: dict[str, bool | None] = {}
    raw: dict[str, str] = {}
