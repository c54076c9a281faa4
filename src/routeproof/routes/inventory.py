"""A route written down field by field, each with how we know it."""

from typing import Literal

import msgspec

Known = Literal["declared", "read_back", "unverified"]
"""``read_back``: the live endpoint said so (and agrees with what was declared, if it
was). ``declared``: the proof file says so and the endpoint cannot be asked.
``unverified``: nobody says."""

ChangeClass = Literal["lossless", "lossy", "invalid", "unknown"]


class Field(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One field of a route. ``value`` is canonical text, ``None`` when unknown."""

    name: str
    value: str | None
    known: Known
    declared: str | None = None
    read_back: str | None = None
    note: str | None = None


class Inventory(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Every field of one route. ``digest``: SHA-256 over the sorted known fields."""

    fields: tuple[Field, ...]
    digest: str
    endpoint: str | None = None
    cannot_tell: tuple[str, ...] = ()


class Change(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One differing field. ``intended``: listed under ``changes``."""

    field: str
    baseline: str | None
    candidate: str | None
    change_class: ChangeClass
    intended: bool
    why: str


class RouteDiff(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The two inventories and what differs. ``change_class`` is the worst one."""

    baseline: Inventory
    candidate: Inventory
    changes: tuple[Change, ...]
    change_class: ChangeClass
    is_speculative: bool
    workload_fingerprint: str | None = None
