"""What makes two workloads the same."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from routeproof.proof.workload import WorkloadSpec
from routeproof.workloads.case import Case

VERSION = 1
"""Enters the hash; raised whenever the canonical form changes."""


def fingerprint(
    cases: Sequence[Case],
    spec: WorkloadSpec,
    *,
    trace_digests: Mapping[str, str] | None = None,
) -> str:
    """SHA-256 (hex) over the canonical form of what is sent and when.

    Cases in order, sampling, trials, seed, streaming, and the load stages with their
    arrivals and cache state. Not in it: where the cases came from (paths,
    ``max_cases``, ``classes_required``) and limits that change nothing that is sent
    (``request_timeout_s``, ``max_failure_share``). Two runs are comparable only if
    their fingerprints are equal.

    Args:
        cases: The cases as they will be sent.
        spec: The workload.
        trace_digests: SHA-256 of each trace file by the name it has in the spec, so
            that a changed file is a changed workload.
    """
    load = msgspec.to_builtins(spec.load)
    for name in ("request_timeout_s", "max_failure_share"):
        del load[name]
    for stage in load.values():
        if isinstance(stage, dict):
            _leave_out(stage, _LATER)
    whole = {
        "version": VERSION,
        "cases": [msgspec.to_builtins(case) for case in cases],
        "sampling": msgspec.to_builtins(spec.sampling),
        "trials": spec.trials,
        "seed": spec.seed,
        "stream": spec.stream,
        "load": load,
        "traces": dict(trace_digests or {}),
    }
    return hashlib.sha256(canonical_json(whole)).hexdigest()


_LATER: dict[str, Any] = {"ramp_s": 0.0, "think_s": None}
"""Keys of a stage that came later, with the values that change nothing: they enter
the hash only when they say something, so that older runs stay comparable."""


def _leave_out(stage: dict[str, Any], defaults: Mapping[str, Any]) -> None:
    for name, nothing in defaults.items():
        if stage.get(name) == nothing:
            stage.pop(name, None)


def canonical_json(value: Any) -> bytes:
    """JSON with sorted keys, no spaces, UTF-8; ``1.0`` and ``1`` are the same.

    Lone surrogates, which JSON can carry and UTF-8 cannot, are kept apart by
    ``surrogatepass``.

    Raises:
        ValueError: A number is NaN or infinite.
    """
    text = json.dumps(
        _plain(value),
        sort_keys=True,
        separators=(",", ":"),
        ensure_ascii=False,
        allow_nan=False,
    )
    return text.encode("utf-8", "surrogatepass")


def _plain(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value
