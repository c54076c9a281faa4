"""The dialects, in one table."""

from routeproof.errors import ConfigError
from routeproof.simulator.dialects.dialect import (
    Dialect,
    as_json,
    model_list,
    nothing,
    openai_error,
    simple_usage,
)
from routeproof.simulator.dialects.llamacpp import LLAMACPP
from routeproof.simulator.dialects.sglang import SGLANG
from routeproof.simulator.dialects.tensorrt import TENSORRT
from routeproof.simulator.dialects.vllm import VLLM

OPENAI = Dialect(
    name="openai",
    version="1",
    chunk_per_token=False,
    finish_apart=True,
    reasoning_field="reasoning_content",
    fingerprint=lambda engine: engine.route.identity.fingerprint,
    details=nothing,
    choice_details=nothing,
    usage=simple_usage,
    error=openai_error,
    pages={"/v1/models": lambda engine, now_s: as_json(model_list(engine, "owner"))},
)
"""A server that speaks the protocol and tells nothing else."""

DIALECTS: dict[str, Dialect] = {
    entry.name: entry for entry in (VLLM, SGLANG, LLAMACPP, TENSORRT, OPENAI)
}


def dialect(name: str) -> Dialect:
    """The dialect of an engine.

    Raises:
        ConfigError: Unknown; names the known ones.
    """
    found = DIALECTS.get(name)
    if found is None:
        known = ", ".join(DIALECTS)
        raise ConfigError(
            f"no such engine to simulate: `{name}`", hint=f"known: {known}"
        )
    return found
