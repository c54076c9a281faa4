"""Fill in what ``like`` leaves out."""

import msgspec

from routeproof.proof.proof import Proof
from routeproof.proof.route import (
    HardwareSpec,
    RouteSpec,
    SpeculationSpec,
    TokenizerSpec,
)

_ROUTE_ONLY = frozenset({"like", "changes", "endpoint", "launch"})


def resolve(proof: Proof) -> tuple[RouteSpec, RouteSpec]:
    """Baseline and candidate with every field filled in.

    A candidate that is ``like: baseline`` takes each field it does not name. Parts of
    ``tokenizer`` and ``hardware`` are taken one by one, other groups as a whole. Where
    the candidate says how it is reached, by ``endpoint`` or by ``launch``, the
    baseline's way is not taken. ``speculation: {method: none}`` takes speculation
    away.
    """
    baseline = _without_none_method(proof.baseline)
    if proof.candidate.like is None:
        return baseline, _without_none_method(proof.candidate)
    return baseline, _without_none_method(_like(proof.candidate, proof.baseline))


def _like(spec: RouteSpec, model: RouteSpec) -> RouteSpec:
    blank = RouteSpec()
    taken: dict[str, object] = {"like": None}
    for name in RouteSpec.__struct_fields__:
        if name in _ROUTE_ONLY:
            continue
        own, default = getattr(spec, name), getattr(blank, name)
        if own == default:
            taken[name] = getattr(model, name)
        elif isinstance(own, (TokenizerSpec, HardwareSpec)):
            taken[name] = _fill(own, getattr(model, name))
    if spec.endpoint is None and spec.launch is None:
        taken["endpoint"], taken["launch"] = model.endpoint, model.launch
    return msgspec.structs.replace(spec, **taken)


def _fill(
    own: TokenizerSpec | HardwareSpec, model: TokenizerSpec | HardwareSpec | None
) -> TokenizerSpec | HardwareSpec:
    if model is None:
        return own
    missing = {
        name: getattr(model, name)
        for name in own.__struct_fields__
        if getattr(own, name) is None
    }
    return msgspec.structs.replace(own, **missing)


def _without_none_method(spec: RouteSpec) -> RouteSpec:
    """``method: none`` is kept, since it says more than silence does."""
    if spec.speculation is None or spec.speculation.method.lower() != "none":
        return spec
    return msgspec.structs.replace(spec, speculation=SpeculationSpec(method="none"))
