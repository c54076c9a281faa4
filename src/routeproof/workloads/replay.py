"""Traces named in a workload: loaded once, replayed as due times."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from routeproof.errors import ConfigError
from routeproof.proof.workload import ArrivalSpec, WorkloadSpec
from routeproof.workloads.arrivals import Offsets
from routeproof.workloads.trace import Trace
from routeproof.workloads.trace_readers import read_trace, trace_digest

STAGES = ("quality", "latency", "sweep", "soak")


def load_traces(spec: WorkloadSpec, base: Path) -> dict[str, Trace]:
    """Every trace the load stages name, by the name they use.

    Args:
        spec: The workload.
        base: Folder that relative paths start from, that of the proof file.

    Raises:
        ConfigError: A trace cannot be read.
        FormatError: A file is no trace.
    """
    return {name: read_trace(base / name) for name in _names(spec)}


def trace_digests(spec: WorkloadSpec, base: Path) -> dict[str, str]:
    """SHA-256 of every trace the load stages name, for ``fingerprint``."""
    return {name: trace_digest(base / name) for name in _names(spec)}


def replay_offsets_s(
    spec: ArrivalSpec, traces: Mapping[str, Trace], *, rate_per_s: float | None = None
) -> Offsets:
    """Due times of a stage that replays a trace, in seconds from its start.

    The trace from its beginning, as long as ``duration_s`` and ``requests`` allow;
    at another mean rate it is stretched or pressed as a whole, which keeps its bursts.

    Args:
        spec: The stage; ``spec.trace`` names the trace.
        traces: What ``load_traces`` gave.
        rate_per_s: Mean arrivals per second; the trace's own when ``None``.

    Raises:
        ConfigError: The stage names no trace that was loaded, or the window is empty.
    """
    trace = traces.get(spec.trace or "")
    if trace is None:
        raise ConfigError(f"the trace `{spec.trace}` was not loaded")
    if rate_per_s is not None:
        trace = trace.at_rate(rate_per_s)
    window = trace.window(duration_s=spec.duration_s, max_requests=spec.requests)
    return window.offsets_s


def _names(spec: WorkloadSpec) -> Iterator[str]:
    seen: set[str] = set()
    for stage in STAGES:
        arrivals: ArrivalSpec | None = getattr(spec.load, stage)
        if arrivals is not None and arrivals.trace and arrivals.trace not in seen:
            seen.add(arrivals.trace)
            yield arrivals.trace
