"""What a row of the tables of faults is, and how it breaks a route.

The tables are the ``.toml`` files beside this one. A row is named for its fault and has
the fields of ``Fault``; what a whole file has in common stands in its ``[usual]`` row.
"""

import tomllib
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec

from routeproof.simulator.defects import Defects, Spoil
from routeproof.simulator.route import Strict

STRENGTH, WHOLE_STRENGTH, MINUS = "strength", "whole strength", "minus strength"
"""As a value in a table: the strength, as it is, as a whole number, or below zero."""

PARTS = ("sampling", "stream", "engine", "report")

CHECKS = {
    "answers": (
        "headline",
        "contains",
        "numeric",
        "exact_match",
        "regex",
        "choice",
        "refusal",
        "tool_call",
        "json_",
        "instruction",
        "degeneration",
        "guard",
    ),
    "ends": ("no_errors", "not_empty", "not_truncated", "memory_stability/"),
    "times": ("slo", "not_slower", "slower_at_peak", "gain", "trend"),
    "memory": (
        "peak_memory",
        "kv_capacity",
        "leak",
        "kv_after_drain",
        "preemptions",
        "trend",
    ),
    "uptime": (
        "crashes",
        "restarts",
        "http_5xx",
        "connection_errors",
        "timeouts",
        "stuck_streams",
        "cut_short",
        "no_errors",
        "correctness/no_errors",
    ),
    "acceptance": (
        "tokens_per_pass",
        "acceptance_rate",
        "collapse",
        "holds_under_load",
        "identities",
        "latency/gain",
    ),
}
"""Checks that go together; a table names them ``@answers``, ``@ends`` and so on."""


class Fault(Strict, frozen=True, kw_only=True):
    """A fault seen in public, as settings of the simulated engine.

    Attributes:
        reference: Where it was reported.
        strength: What the strength means.
        levels: Strengths: a weak, a typical and a plain case of it.
        gate: The gate that should see it.
        checks: Beginnings of the names of checks that are the right reason; those of
            another gate as ``gate/check``.
        at_proxy: Whether the fault proxy can make it in front of a real engine.
        spoil: How answers go wrong (``how``), of which share (the strength unless
            given), and where: fields of ``When``.
        sampling, stream, engine, report: Fields of the parts of ``Defects``.
    """

    name: str
    family: str
    reference: str
    what: str
    strength: str = "none"
    levels: tuple[float, float, float] = (1.0, 1.0, 1.0)
    gate: str = ""
    checks: tuple[str, ...] = ()
    at_proxy: bool = False
    spoil: dict[str, Any] = {}
    sampling: dict[str, Any] = {}
    stream: dict[str, Any] = {}
    engine: dict[str, Any] = {}
    report: dict[str, Any] = {}

    @property
    def low(self) -> float:
        """A weak case."""
        return self.levels[0]

    @property
    def usual(self) -> float:
        """A typical case."""
        return self.levels[1]

    @property
    def high(self) -> float:
        """A plain case."""
        return self.levels[2]

    def apply(self, defects: Defects, strength: float) -> Defects:
        """Defects with this fault in them.

        Raises:
            msgspec.ValidationError: The table sets a field that is not there, or to a
                value it cannot have.
        """
        changes: dict[str, Any] = {}
        for part in PARTS:
            settings = getattr(self, part)
            if settings:
                changes[part] = _changed(getattr(defects, part), settings, strength)
        if self.spoil:
            one = _spoil(self.spoil, strength)
            changes["spoils"] = (*defects.spoils, one)
        return msgspec.structs.replace(defects, **changes)


def read(path: Path) -> tuple[Fault, ...]:
    """The rows of one table, in their order."""
    rows = tomllib.loads(path.read_text("utf-8"))
    usual = rows.pop("usual", {})
    found = []
    for name, row in rows.items():
        filled = {"name": name} | usual | row
        filled["checks"] = [
            check
            for entry in filled.get("checks", ())
            for check in (CHECKS[entry[1:]] if entry[0] == "@" else (entry,))
        ]
        found.append(msgspec.convert(filled, Fault))
    return tuple(found)


def _changed(part: Strict, settings: dict[str, Any], strength: float) -> Strict:
    kinds = _kinds(type(part))
    made = {}
    for name, value in settings.items():
        if name not in kinds:
            raise msgspec.ValidationError(
                f"{type(part).__name__} has no field `{name}`"
            )
        made[name] = msgspec.convert(_value(value, strength), kinds[name])
    return msgspec.structs.replace(part, **made)


@lru_cache
def _kinds(part: type[Strict]) -> dict[str, Any]:
    return {field.name: field.type for field in msgspec.structs.fields(part)}


def _value(value: Any, strength: float) -> Any:
    if value == STRENGTH:
        return strength
    if value == MINUS:
        return -strength
    return round(strength) if value == WHOLE_STRENGTH else value


def _spoil(settings: dict[str, Any], strength: float) -> Spoil:
    where = dict(settings)
    how, share = where.pop("how"), where.pop("share", STRENGTH)
    one = {"how": how, "share": _value(share, strength), "when": where}
    return msgspec.convert(one, Spoil)
