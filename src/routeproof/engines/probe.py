"""Ask an endpoint what it is."""

import asyncio
from collections.abc import Iterable

from routeproof.engines.adapter import TableAdapter
from routeproof.engines.adapters import ADAPTERS, adapter
from routeproof.engines.endpoint import Endpoint
from routeproof.engines.http import Reply, fetch
from routeproof.engines.values import first_model, mapping
from routeproof.errors import ConfigError
from routeproof.proof.nearest import nearest
from routeproof.routes.fields import same
from routeproof.routes.read_back import ReadBack

MODELS = "/v1/models"

OWNERS = {
    "llamacpp": "llama.cpp",
    "vllm": "vllm",
    "sglang": "sglang",
    "tensorrt_llm": "tensorrt-llm",
}
"""``owned_by`` in ``/v1/models`` as each engine writes it."""


async def probe(
    endpoint: Endpoint,
    *,
    model: str | None = None,
    engine: str | None = None,
    deadline_s: float = 10.0,
) -> ReadBack:
    """Detect the engine behind an endpoint and read its route back.

    Only pages are read; no text is generated.

    Args:
        endpoint: Where to ask.
        model: When given, the endpoint must serve it.
        engine: Name of the engine when known; else it is detected.
        deadline_s: For each page.

    Raises:
        ConfigError: The endpoint cannot be reached, hangs, wants a key, is no such
            API, or does not serve the model.
    """
    models = await _models(endpoint, deadline_s)
    chosen = adapter(engine) if engine else await _detect(endpoint, models, deadline_s)
    answers = await _pages(endpoint, chosen.probe_paths, deadline_s)
    answers[MODELS] = models
    found = chosen.read_back(answers)
    if model is not None:
        check_model(endpoint, found, model)
    return found


def check_model(endpoint: Endpoint, found: ReadBack, model: str) -> None:
    """Check that an endpoint serves a model.

    Engines that answer to any name (llama.cpp, SGLang) would otherwise measure
    another model than the one written down.

    Raises:
        ConfigError: Names the models it does serve.
    """
    if not found.models or served_name(found, model) is not None:
        return
    near = nearest(model, found.models)
    served = ", ".join(found.models)
    raise ConfigError(
        f"{endpoint.url} does not serve the model `{model}`; it serves {served}",
        key="model",
        hint=f"write `model: {near or found.models[0]}`",
    )


def served_name(found: ReadBack, model: str) -> str | None:
    """The name under which to ask for a model; ``None`` when it is not served.

    A route may name its model by hub id while the server calls it by an alias; where
    the engine says which files it loaded and these are that model, the alias is
    taken.
    """
    if model in found.models:
        return model
    loaded = found.fields.get("model")
    if loaded is not None and len(found.models) == 1 and same("model", model, loaded):
        return found.models[0]
    return None


async def metrics_page(endpoint: Endpoint, chosen: TableAdapter) -> str | None:
    """The engine's Prometheus page, or ``None`` when it has none."""
    return (await _pages(endpoint, (chosen.metrics_path,), 10.0)).get(
        chosen.metrics_path
    )


async def _models(endpoint: Endpoint, deadline_s: float) -> str:
    url = endpoint.api("models")
    reply = await fetch(endpoint, url, deadline_s=deadline_s)
    if reply.status != 200:
        raise _refused(reply, endpoint)
    listing = reply.json()
    if not isinstance(listing, dict) or not isinstance(listing.get("data"), list):
        raise ConfigError(
            f"{url} answered JSON that is no list of models",
            hint="check that the URL is the base of an OpenAI-compatible API, "
            "usually ending with /v1",
        )
    return reply.text


def _refused(reply: Reply, endpoint: Endpoint) -> ConfigError:
    said = f"{reply.url} answered HTTP {reply.status}"
    if reply.status in (401, 403):
        state = "was not accepted" if endpoint.api_key else "is needed"
        return ConfigError(
            f"{said}: an API key {state}",
            key="auth.api_key_env",
            hint="name the variable that holds the key under `auth.api_key_env`",
        )
    if 300 <= reply.status < 400:
        target = reply.headers.get("location", "another place")
        return ConfigError(
            f"{said}: it redirects to {target}",
            key="endpoint",
            hint="give the final URL; redirects are not followed",
        )
    if reply.status == 404:
        return ConfigError(
            f"{said}: there is no list of models here",
            key="endpoint",
            hint=f"did you mean {endpoint.url.rstrip('/')}/v1?"
            if not endpoint.url.rstrip("/").endswith("/v1")
            else "check host and port; is this the API of an engine?",
        )
    if reply.status == 503:
        return ConfigError(
            f"{said}: the engine is still loading or overloaded",
            key="endpoint",
            hint="wait until it is ready and run this again",
        )
    start = " ".join(reply.text[:200].split())[:120]
    return ConfigError(
        f"{said}: {start}", key="endpoint", hint="look into the log of the engine"
    )


async def _detect(endpoint: Endpoint, models: str, deadline_s: float) -> TableAdapter:
    owner = first_model(models).get("owned_by")
    if isinstance(owner, str) and OWNERS.get(owner.lower()) in ADAPTERS:
        return ADAPTERS[OWNERS[owner.lower()]]
    pages = await _pages(endpoint, ("/props", "/server_info", "/version"), deadline_s)
    if "build_info" in mapping(pages.get("/props")):
        return ADAPTERS["llama.cpp"]
    info = mapping(pages.get("/server_info"))
    if "tp_size" in info and "sglang" in ADAPTERS:
        return ADAPTERS["sglang"]
    if "vllm_config" in info and "vllm" in ADAPTERS:
        return ADAPTERS["vllm"]
    return await _by_metrics(endpoint, deadline_s)


async def _by_metrics(endpoint: Endpoint, deadline_s: float) -> TableAdapter:
    # TensorRT-LLM empties its /metrics on every read, so its own page comes first.
    for path in ("/prometheus/metrics", "/metrics"):
        page = (await _pages(endpoint, (path,), deadline_s)).get(path, "")
        for prefix, name in (
            ("trtllm_", "tensorrt-llm"),
            ("vllm:", "vllm"),
            ("sglang:", "sglang"),
            ("llamacpp:", "llama.cpp"),
        ):
            if f"\n{prefix}" in f"\n{page}" and name in ADAPTERS:
                return ADAPTERS[name]
    return ADAPTERS["openai"]


async def _pages(
    endpoint: Endpoint, paths: Iterable[str], deadline_s: float
) -> dict[str, str]:
    """Bodies of the pages that exist; a page that fails is left out."""

    async def page(path: str) -> tuple[str, str | None]:
        url = endpoint.api("models") if path == MODELS else endpoint.at(path)
        try:
            reply = await fetch(endpoint, url, deadline_s=deadline_s)
        except ConfigError:
            return path, None
        return path, reply.text if reply.status == 200 else None

    found = await asyncio.gather(*(page(path) for path in paths))
    return {path: text for path, text in found if text is not None}
