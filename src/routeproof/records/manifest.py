"""What a run was: written beside its records, enough to judge it elsewhere."""

from typing import Any

import msgspec

from routeproof.records.record import SCHEMA


class _Part(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of the parts of a manifest."""


class Versions(_Part, frozen=True, kw_only=True):
    """What took the measurement. ``packages`` are those that can move a number."""

    routeproof: str
    python: str
    platform: str
    event_loop: str | None = None
    packages: dict[str, str] = {}


class Threshold(_Part, frozen=True, kw_only=True):
    """One check of the client on itself.

    Attributes:
        name: What was checked, with its unit.
        value: What was seen; ``None`` when it could not be taken.
        limit: The most (or least, see ``at_least``) that is believed.
        ok: False when over the limit; ``None`` when not taken.
    """

    name: str
    value: float | None
    limit: float
    at_least: bool = False
    ok: bool | None = None


class ClientHealth(_Part, frozen=True, kw_only=True):
    """Whether the client kept up, so that its numbers are the engine's.

    Attributes:
        valid: False when any check failed; no verdict is given then.
        reasons: One sentence per failed check.
        notes: What does not spoil the run but explains it (a buffering proxy).
        by_level: Measured shares and quantiles by ``arm/phase/level``.
    """

    valid: bool
    reasons: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    checks: tuple[Threshold, ...] = ()
    by_level: dict[str, dict[str, float | None]] = {}


class StageDone(_Part, frozen=True, kw_only=True):
    """One stage of the plan: what was asked, what was sent, when.

    Attributes:
        planned: Requests the plan has, or ``None`` when it runs by the clock.
        complete: Every planned request has a record, but those a run that stops
            early did not want any more.
    """

    phase: str
    level: str
    planned: int | None
    recorded: int
    complete: bool
    started_s: float | None = None
    ended_s: float | None = None


class Manifest(_Part, frozen=True, kw_only=True):
    """What was run, on what, with which versions.

    Attributes:
        run_id: Name of the run, unique on its machine.
        created_wall: Wall-clock time of the start, ISO 8601 with zone.
        proof: The proof file as plain data; empty for a run without one.
        cases_digest: SHA-256 of ``cases.jsonl``.
        fingerprint: Workload fingerprint; two runs compare only if it is equal.
        route_diff: The route diff as plain data, or ``None`` before it is known.
        plan: Phases, levels, blocks and seed as plain data.
        blocks_done: Numbers of finished blocks that run by the clock; resume cannot
            tell from their records that they are whole.
        health: The client on itself, written as stages end.
        engines: Per arm: log path, capabilities, counters before and after.
        environment: Machine facts: processors, memory, accelerator, load average.
        notes: Further facts of commands that have no field here.
    """

    run_id: str
    created_wall: str
    versions: Versions
    proof: dict[str, Any] = {}
    cases_digest: str | None = None
    fingerprint: str | None = None
    route_diff: dict[str, Any] | None = None
    plan: dict[str, Any] = {}
    stages: tuple[StageDone, ...] = ()
    blocks_done: tuple[int, ...] = ()
    health: ClientHealth | None = None
    engines: dict[str, Any] = {}
    environment: dict[str, Any] = {}
    notes: dict[str, Any] = {}
    finished: bool = False
    schema: int = SCHEMA
