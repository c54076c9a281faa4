"""The evidence across restarts: one file beside the state, replaced as a whole."""

import os
from pathlib import Path

import msgspec

from routeproof.canary.tasting.taster import Taster
from routeproof.canary.weighing.evidence import SignalState

NAME = "evidence.json"


class Remembered(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Evidence tied to one attempt and one step."""

    attempt: int
    step: int
    signals: dict[str, SignalState]


def remember(taster: Taster, folder: Path, *, attempt: int, step: int) -> None:
    """Write the evidence down; a disk that is full makes it stale."""
    found = Remembered(attempt=attempt, step=step, signals=taster.remembered())
    fresh = (folder / NAME).with_suffix(".tmp")
    try:
        fresh.write_bytes(msgspec.json.encode(found))
        os.replace(fresh, folder / NAME)
        taster.memory_error = None
    except OSError as error:
        taster.memory_error = f"cannot keep the evidence: {error.strerror}"


def recall(taster: Taster, folder: Path, *, attempt: int) -> int | None:
    """Go on from what was written down for this attempt; returns its step.

    ``None`` when there is nothing of it: the evidence begins anew.
    """
    try:
        found = msgspec.json.decode((folder / NAME).read_bytes(), type=Remembered)
    except (OSError, msgspec.DecodeError):
        return None
    if found.attempt != attempt:
        return None
    taster.evidence.restore(found.signals)
    return found.step
