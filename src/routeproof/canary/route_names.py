"""Names of routes in a canary block to the upstreams they stand for."""

import re
from dataclasses import replace
from pathlib import Path

import msgspec

from routeproof.errors import ConfigError
from routeproof.proof.canary import CanarySpec
from routeproof.proof.nearest import nearest
from routeproof.proof.proof import Proof
from routeproof.proof.yaml_text import Document


def with_routes(document: Document, path: Path) -> Document:
    """A file that holds the canary block alone gets its two routes filled in.

    The names are looked up in the block's own ``routes`` and in the folder ``routes/``.

    Raises:
        ConfigError: A name leads nowhere.
    """
    values = document.values
    block = values.get("canary")
    if not isinstance(block, dict) or "baseline" in values or "candidate" in values:
        return document
    routes = block.get("routes")
    known = routes if isinstance(routes, dict) else {}
    filled = dict(values)
    for side in ("baseline", "candidate"):
        name = block.get(side)
        if isinstance(name, str):
            endpoint = known.get(name) or _endpoint_in(_file_of(name, path))
            if endpoint is None:
                raise _nowhere(name, side, list(known), path)
            filled[side] = {"endpoint": endpoint}
    return replace(document, values=filled)


def upstream(name: str, side: str, spec: CanarySpec, proof: Proof, path: Path) -> str:
    """The server of a route: from ``canary.routes``, ``routes/`` or the proof.

    Raises:
        ConfigError: The name leads nowhere.
    """
    if name in spec.routes:
        return _root(spec.routes[name])
    found = _endpoint_in(_file_of(name, path))
    declared = proof.baseline if side == "baseline" else proof.candidate
    endpoint = found or declared.endpoint
    if endpoint is None:
        raise _nowhere(name, side, list(spec.routes), path)
    return _root(endpoint)


def slug(name: str) -> str:
    """A name as a file name.

    Example:
        >>> slug("fp8-kv + dflash")
        'fp8-kv-dflash'
    """
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "canary"


def _file_of(name: str, path: Path) -> Path:
    return path.parent / "routes" / f"{slug(name)}.yaml"


def _endpoint_in(path: Path) -> str | None:
    """The endpoint written in a route file; ``None`` without file or endpoint."""
    if not path.exists():
        return None
    try:
        plain = msgspec.yaml.decode(path.read_bytes(), type=dict[str, object])
    except (msgspec.DecodeError, OSError) as error:
        raise ConfigError(f"cannot be read: {error}", path=path) from None
    endpoint = plain.get("endpoint")
    return str(endpoint) if endpoint else None


def _root(endpoint: str) -> str:
    """Upstreams are servers: clients' own paths (``/v1/...``) are passed on."""
    return re.sub(r"/v1/?$", "", endpoint.rstrip("/"))


def _nowhere(name: str, side: str, known: list[str], path: Path) -> ConfigError:
    near = nearest(name, known)
    return ConfigError(
        f"`{name}` names no route with an endpoint",
        path=path,
        key=f"canary.{side}",
        hint=f"did you mean `{near}`?"
        if near
        else f"add `routes: {{{name!r}: http://host:port/v1}}` to the canary block, "
        f"an `endpoint` to the {side} of this file, or the file {_file_of(name, path)}",
    )
