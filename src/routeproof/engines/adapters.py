"""The engines, in one table."""

from routeproof.engines.adapter import TableAdapter
from routeproof.engines.llamacpp import LLAMA_CPP
from routeproof.engines.openai import OPENAI
from routeproof.engines.sglang import SGLANG
from routeproof.engines.tensorrt_llm import TENSORRT_LLM
from routeproof.engines.vllm import VLLM
from routeproof.errors import ConfigError
from routeproof.proof.nearest import nearest
from routeproof.routes.fields import ENGINES

ADAPTERS: dict[str, TableAdapter] = {
    entry.name: entry for entry in (VLLM, SGLANG, LLAMA_CPP, TENSORRT_LLM, OPENAI)
}


def adapter(name: str) -> TableAdapter:
    """The adapter of an engine, by its name or a usual spelling of it.

    Raises:
        ConfigError: Unknown; names the known ones.
    """
    key = name.strip().lower()
    found = ADAPTERS.get(ENGINES.get(key, key))
    if found is None:
        near = nearest(key, [*ADAPTERS, *ENGINES])
        known = ", ".join(sorted(ADAPTERS))
        raise ConfigError(
            f"there is no adapter for the engine `{name}`",
            key="engine.name",
            hint=f"did you mean `{near}`? known: {known}"
            if near
            else f"known: {known}; `openai` fits any OpenAI-compatible server",
        )
    return found
