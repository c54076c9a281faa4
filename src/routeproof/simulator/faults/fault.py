"""What a row of the table of faults is, and the ways to write one."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from routeproof.simulator.defects import Defects, How, Spoil, When

QUALITY = (
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
)
"""Checks of the correctness gate that compare answers."""

ENDS = ("no_errors", "not_empty", "not_truncated", "memory_stability/")
"""Checks on how requests ended."""

SLOW = (
    "slo",
    "not_slower",
    "slower_at_peak",
    "gain",
    "trend",
)
"""Checks of the latency gate that compare times."""

Apply = Callable[[Defects, float], Defects]


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault seen in public, as a setting of the simulated engine.

    Attributes:
        reference: Where it was reported.
        low, usual, high: Strengths: a weak, a typical and a plain case of it.
        strength: What the number means.
        gate: The gate that should see it.
        checks: Beginnings of the names of checks that are the right reason; those of
            another gate as ``gate/check``.
        apply: Defects and a strength to defects with the fault in.
        at_proxy: Whether the fault proxy can make it in front of a real engine.
    """

    name: str
    family: str
    reference: str
    what: str
    strength: str
    low: float
    usual: float
    high: float
    gate: str
    checks: tuple[str, ...]
    apply: Apply
    at_proxy: bool = False


def spoil(how: How, **when: Any) -> Apply:
    """Answers go wrong with the strength as their share."""

    def apply(defects: Defects, strength: float) -> Defects:
        one = Spoil(share=strength, how=how, when=When(**when))
        return msgspec.structs.replace(defects, spoils=(*defects.spoils, one))

    return apply


def setting(part: str, **values: Any) -> Apply:
    """Set fields of one part of the defects; a callable gets the strength."""

    def apply(defects: Defects, strength: float) -> Defects:
        made = {k: v(strength) if callable(v) else v for k, v in values.items()}
        changed = msgspec.structs.replace(getattr(defects, part), **made)
        return msgspec.structs.replace(defects, **{part: changed})

    return apply


def both(*steps: Apply) -> Apply:
    """Several settings that belong to one fault."""

    def apply(defects: Defects, strength: float) -> Defects:
        for step in steps:
            defects = step(defects, strength)
        return defects

    return apply


def itself(strength: float) -> float:
    """The strength as it is."""
    return strength


def whole(strength: float) -> int:
    """The strength as a whole number."""
    return round(strength)
