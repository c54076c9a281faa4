"""What is kept of another tool's result."""

import hashlib
from typing import Literal

import msgspec

SCHEMA = 1


class _Row(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of the parts of an imported result."""


class Measured(_Row, frozen=True, kw_only=True):
    """One number of another tool.

    Attributes:
        name: The name the tool gives it.
        definition_id: What the tool means by it, a key of ``DEFINITIONS``.
        statistic: ``mean``, ``p50``, ``p99``, ``total`` ...
        value: In ``unit`` (times always in seconds); ``None`` when the tool had none.
        n: Values it was computed from, where the tool says.
    """

    name: str
    definition_id: str
    unit: str
    statistic: str
    value: float | None
    n: int | None = None


class Sample(_Row, frozen=True, kw_only=True):
    """The score of one answer.

    Attributes:
        value: ``None`` when the tool gave no score; ``note`` says why, if known.
        text_digest: SHA-256 of the answer: tells whether two texts are equal.
    """

    case_id: str
    trial: int
    scorer: str
    value: float | None
    text_digest: str | None = None
    note: str | None = None


class Level(_Row, frozen=True, kw_only=True):
    """The load of one result: what was asked and what was reached."""

    concurrency: int | None = None
    asked_rate_per_s: float | None = None
    achieved_rate_per_s: float | None = None
    duration_s: float | None = None
    completed: int | None = None
    failed: int | None = None


class Result(_Row, frozen=True, kw_only=True):
    """One run of another tool.

    Attributes:
        label: What tells it from the other results of the same file.
        conditions: What must be equal for two results to be compared, as text.
        faults: What makes a comparison with it unsafe, such as an argument the engine
            cannot have read as meant.
        notes: What a reader of the numbers should know.
    """

    tool: str
    tool_version: str | None = None
    kind: Literal["load", "quality"]
    label: str
    model: str | None = None
    level: Level = Level()
    conditions: dict[str, str] = {}
    measured: tuple[Measured, ...] = ()
    samples: tuple[Sample, ...] = ()
    faults: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    schema: int = SCHEMA


def digest(text: str) -> str:
    """SHA-256 of a text, hex."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
