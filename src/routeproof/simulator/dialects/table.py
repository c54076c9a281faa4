"""The dialects, in one table."""

from routeproof.errors import ConfigError
from routeproof.simulator.dialects.dialect import (
    Dialect,
    as_json,
    model_list,
)
from routeproof.simulator.dialects.llamacpp import LLAMACPP
from routeproof.simulator.dialects.sglang import SGLANG
from routeproof.simulator.dialects.tensorrt import TENSORRT
from routeproof.simulator.dialects.vllm import VLLM

OPENAI = Dialect(
    name="openai",
    version="1",
    finish_apart=True,
    fingerprint=lambda engine: engine.route.identity.fingerprint,
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
