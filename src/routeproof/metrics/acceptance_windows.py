"""Speculation from engine counters: differences over a window of our own traffic."""

from collections.abc import Mapping

import msgspec

from routeproof.metrics.acceptance import AcceptanceCounts, Trust, worse_of


class OwnTraffic(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What we sent in the window, to tell whether we were alone.

    Attributes:
        completion_tokens: Output tokens of our requests, by their usage.
    """

    requests: int
    completion_tokens: int | None = None


def counts_of_window(
    deltas: Mapping[str, float],
    own: OwnTraffic,
    like: AcceptanceCounts,
    *,
    reasons: tuple[str, ...] = (),
) -> AcceptanceCounts:
    """Integers from counter differences; a missing counter is unknown.

    Args:
        deltas: Normalised names (see `engines.adapter.Counters`) to the increase over
            the window, restarts already taken out.
        own: Our traffic in the window.
        like: Engine, method and draft length of the route.
        reasons: What is already known against the window, such as a restart; each
            lowers the trust to ``approximate``.
    """
    spec, drafted = _whole(deltas, "spec_passes_total"), _whole(deltas, "drafted_total")
    accepted = _whole(deltas, "accepted_total")
    trust: Trust = "approximate" if reasons else "exact"
    found = list(reasons)
    if accepted is None and spec is not None:
        accepted = _from_decoded(deltas, spec)
        if accepted is not None:
            trust = worse_of(trust, "derived")
            found.append("accepted = decoded tokens - verify passes, exact at rest")
    spec, derived_spec = _first_position(deltas, spec)
    if derived_spec:
        trust = worse_of(trust, "derived")
        found.append("verify passes are those that drafted the first position")
    completion = _whole(deltas, "output_tokens_total")
    foreign = _foreign(deltas, own)
    if foreign is not None:
        trust = worse_of(trust, "approximate")
        found.append(foreign)
    if completion is None:
        completion = own.completion_tokens
    if spec is None and accepted is None:
        trust = "unavailable"
    return msgspec.structs.replace(
        like,
        source="counter_delta" if trust != "unavailable" else "none",
        trust=trust,
        reasons=(*like.reasons, *found),
        requests=own.requests,
        completion_tokens=completion,
        spec_passes=spec,
        plain_passes=_plain(completion, own.requests, spec, accepted, deltas),
        drafted=drafted,
        accepted=accepted,
        accepted_at=_by_position(deltas, "accepted_at_position_total"),
        drafted_at=_by_position(deltas, "drafted_at_position_total"),
    )


def counts_of_gauge(length: float | None, like: AcceptanceCounts) -> AcceptanceCounts:
    """What a gauge of the acceptance length is good for: a hint, no integers.

    Gauges cover the engine's last log window, go stale when it idles, and mean
    something else in each engine.
    """
    shown = "no value" if length is None else f"{length:.2f}"
    return msgspec.structs.replace(
        like,
        source="gauge_window",
        trust="unavailable",
        reasons=(
            *like.reasons,
            f"the engine only exports a gauge of its last window ({shown})",
        ),
        requests=0,
    )


def _whole(deltas: Mapping[str, float], name: str) -> int | None:
    value = deltas.get(name)
    return None if value is None else round(value)


def _from_decoded(deltas: Mapping[str, float], spec: int) -> int | None:
    """SGLang: each verify pass decodes its own token and its accepted drafts."""
    decoded = _whole(deltas, "decode_tokens_total")
    return None if decoded is None or decoded < spec else decoded - spec


def _first_position(
    deltas: Mapping[str, float], spec: int | None
) -> tuple[int | None, bool]:
    """TensorRT-LLM has no counter of passes; each drafts the first position once."""
    if spec is not None:
        return spec, False
    first = _whole(deltas, "drafted_at_position_total:0")
    if first is None:
        first = _whole(deltas, "drafted_at_position_total:1")
    return first, first is not None


def _foreign(deltas: Mapping[str, float], own: OwnTraffic) -> str | None:
    """Why the window was not ours alone; ``None`` when nothing speaks against it."""
    requests = _whole(deltas, "requests_total")
    if requests is not None and requests != own.requests:
        return f"the engine served {requests} requests, we sent {own.requests}"
    tokens = _whole(deltas, "output_tokens_total")
    if tokens is not None and own.completion_tokens not in (None, tokens):
        return f"the engine wrote {tokens} tokens, ours are {own.completion_tokens}"
    return None


def _plain(
    completion: int | None,
    requests: int,
    spec: int | None,
    accepted: int | None,
    deltas: Mapping[str, float],
) -> int | None:
    if completion is None or spec is None or accepted is None:
        return None
    if "decode_tokens_total" in deltas:
        # SGLang verifies on every decode pass.
        return 0
    return max(completion - requests - accepted - spec, 0)


def _by_position(deltas: Mapping[str, float], name: str) -> tuple[int, ...] | None:
    found = {
        int(key.rpartition(":")[2]): round(value)
        for key, value in deltas.items()
        if key.startswith(f"{name}:")
    }
    if not found:
        return None
    # TensorRT-LLM counts positions from 1, the others from 0.
    start = 0 if 0 in found else min(found)
    return tuple(found.get(i, 0) for i in range(start, max(found) + 1))
