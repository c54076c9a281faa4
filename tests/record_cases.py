"""Records and manifests with good defaults, for the tests of records and runs."""

from routeproof.records.manifest import Manifest, Versions
from routeproof.records.record import (
    Answer,
    Clock,
    EngineDetails,
    Key,
    Record,
    Stream,
    Usage,
)

_SECTIONS = (Key, Clock, Answer, Stream, Usage, EngineDetails)
_DEFAULTS = {
    "request_id": "r0",
    "arm": "baseline",
    "phase": "quality",
    "level": "c1",
    "block": 0,
    "case_id": "case-0",
    "trial": 0,
    "wall_s": 1_800_000_000.0,
    "intended_s": 1.0,
    "end_s": 3.0,
    "chunk_s": (1.2, 1.3),
    "outcome": "completed",
    "text": "yes",
}


def a_record(**changes):
    """A completed record; any field of any section by its own name."""
    given = {**_DEFAULTS, **changes}
    parts = [
        section(**{k: given[k] for k in section.__struct_fields__ if k in given})
        for section in _SECTIONS
    ]
    key, clock, answer, stream, usage, engine = parts
    return Record(
        key=key, clock=clock, answer=answer, stream=stream, usage=usage, engine=engine
    )


def a_manifest(**changes):
    """A manifest of a run that has just begun."""
    given = {
        "run_id": "20261130-120000",
        "created_wall": "2026-11-30T12:00:00+00:00",
        "versions": Versions(routeproof="0.1.0", python="3.11.9", platform="linux"),
        **changes,
    }
    return Manifest(**given)
