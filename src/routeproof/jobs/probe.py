"""What is this route? Read back from its endpoint, with what could not be verified."""

import asyncio
import os

from routeproof.engines.endpoint import Endpoint, endpoint_of
from routeproof.engines.probe import probe as ask
from routeproof.proof.route import AuthSpec, RouteSpec
from routeproof.routes.read_back import ReadBack


def probe(
    url: str,
    *,
    model: str | None = None,
    api_key_env: str | None = None,
    verify_tls: bool = True,
) -> ReadBack:
    """Ask one endpoint what it is. Nothing is generated.

    Args:
        url: Base URL of the API, such as ``http://127.0.0.1:8000/v1``.
        model: When given, the endpoint must serve it.
        api_key_env: Name of the variable that holds the key.
        verify_tls: Whether the server's certificate must be valid.

    Raises:
        ConfigError: The endpoint cannot be reached, hangs, wants a key, is no such
            API, or does not serve the model.
    """
    return asyncio.run(ask(endpoint_at(url, api_key_env, verify_tls), model=model))


def endpoint_at(url: str, api_key_env: str | None, verify_tls: bool) -> Endpoint:
    """An endpoint from what a command line says of it.

    Raises:
        ConfigError: The URL is wrong, or the variable of the key is not set.
    """
    auth = AuthSpec(api_key_env=api_key_env, verify_tls=verify_tls)
    return endpoint_of(RouteSpec(endpoint=url, auth=auth), os.environ)
