"""Routes with good defaults, for tests."""

from routeproof.proof.proof import Proof
from routeproof.proof.route import (
    DraftSpec,
    EngineSpec,
    LaunchSpec,
    RouteSpec,
    SpeculationSpec,
)
from routeproof.routes.diff import diff
from routeproof.routes.inventory import RouteDiff, take_inventory
from routeproof.routes.read_back import ReadBack


def a_route(**changes) -> RouteSpec:
    """A plain route that declares the usual fields."""
    fields = {
        "endpoint": "http://127.0.0.1:8000/v1",
        "model": "Qwen/Qwen3-8B",
        "revision": "b968826d9c46dd6066d109eabc6255188de91218",
        "engine": EngineSpec(name="vllm", version="0.33.0"),
        "weights": "bf16",
        "kv_cache": "bf16",
        **changes,
    }
    return RouteSpec(**fields)


def speculation(**changes) -> SpeculationSpec:
    """A draft model that is pinned."""
    fields = {
        "method": "eagle3",
        "draft": DraftSpec(model="org/Draft", revision="0123456789abcdef"),
        "draft_tokens": 3,
        "placement": "same_device",
        **changes,
    }
    return SpeculationSpec(**fields)


def launched(*command: str, **env: str) -> LaunchSpec:
    return LaunchSpec(command=command, env=env)


def said(engine: str = "vllm", **fields: str) -> ReadBack:
    """What an endpoint says; ``__`` in a name is a dot."""
    named = {name.replace("__", "."): value for name, value in fields.items()}
    return ReadBack(engine=engine, fields=named, cannot_tell=(), models=("m",))


def compared(
    baseline: RouteSpec,
    candidate: RouteSpec,
    baseline_said: ReadBack | None = None,
    candidate_said: ReadBack | None = None,
) -> RouteDiff:
    """The diff of two routes."""
    return diff(
        take_inventory(baseline, baseline_said),
        take_inventory(candidate, candidate_said),
        candidate,
    )


def a_proof(baseline: RouteSpec, candidate: RouteSpec) -> Proof:
    return Proof(baseline=baseline, candidate=candidate)
