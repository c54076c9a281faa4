"""Identities that honest counts of speculation satisfy."""

from collections.abc import Iterable

import msgspec

from routeproof.metrics.acceptance import (
    AcceptanceCounts,
    accepted_at,
    derive,
    worse_of,
)

LENGTH_TOLERANCE = 0.02
"""Largest allowed difference between ``1 + A / S`` and 1 plus the marginal rates, as
in Model-Optimizer's speculation profile."""


class Identity(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One identity, applied.

    Attributes:
        holds: Whether the counts satisfy it.
        detail: The numbers, for people.
    """

    name: str
    holds: bool
    detail: str


def identities(counts: AcceptanceCounts) -> tuple[Identity, ...]:
    """Every identity that these counts allow to be checked.

    Works on one request and on an aggregate of many. Accepted drafts may overshoot
    the end of an answer by up to ``draft_tokens - 1`` a request (SGLang and vLLM
    count a whole run also when a limit or stop string cuts it), which is allowed for.
    """
    found = [
        *_histogram(counts),
        *_drafts(counts),
        *_positions(counts),
        *_length(counts),
        *_tokens(counts),
    ]
    return tuple(found)


def checked(counts: AcceptanceCounts) -> AcceptanceCounts:
    """The same counts with trust lowered and reasons added where identities fail."""
    broken = [i for i in identities(counts) if not i.holds]
    if not broken:
        return counts
    return msgspec.structs.replace(
        counts,
        trust=worse_of(counts.trust, "approximate"),
        reasons=(*counts.reasons, *(f"{i.name}: {i.detail}" for i in broken)),
    )


def speculates(counts: AcceptanceCounts, *, configured: bool) -> Identity | None:
    """Whether a route that is configured to speculate did so at all.

    Zero drafts on a configured route mean that the draft never loaded or the metric
    lies; ``None`` when the route is not configured to, or the count is unknown.
    """
    tried = counts.drafted if counts.drafted is not None else counts.spec_passes
    if not configured or tried is None:
        return None
    return Identity(
        name="speculates_as_configured",
        holds=tried > 0,
        detail=f"{tried} drafted over {counts.requests} requests",
    )


def same_sums(
    requests: AcceptanceCounts, window: AcceptanceCounts
) -> tuple[Identity, ...]:
    """Sums over requests against counter differences over the same traffic.

    Exact equality: both are integers counted by the same engine. Fields that either
    side does not know are left out.
    """
    found = []
    for name in ("spec_passes", "drafted", "accepted", "completion_tokens"):
        ours, theirs = getattr(requests, name), getattr(window, name)
        if ours is not None and theirs is not None:
            found.append(
                Identity(
                    name=f"requests_equal_counters.{name}",
                    holds=ours == theirs,
                    detail=f"{ours} over requests, {theirs} by counters",
                )
            )
    return tuple(found)


def _histogram(c: AcceptanceCounts) -> Iterable[Identity]:
    if c.accepted_hist is None:
        return
    total = sum(c.accepted_hist)
    if c.spec_passes is not None:
        yield Identity(
            name="histogram_sums_to_passes",
            holds=total == c.spec_passes,
            detail=f"histogram {total}, passes {c.spec_passes}",
        )
    if c.accepted is not None:
        weighted = sum(j * n for j, n in enumerate(c.accepted_hist))
        yield Identity(
            name="histogram_weighs_to_accepted",
            holds=weighted == c.accepted,
            detail=f"histogram {weighted}, accepted {c.accepted}",
        )


def _drafts(c: AcceptanceCounts) -> Iterable[Identity]:
    if c.accepted is not None and c.drafted is not None:
        yield Identity(
            name="accepted_at_most_drafted",
            holds=c.accepted <= c.drafted,
            detail=f"accepted {c.accepted}, drafted {c.drafted}",
        )
    if c.drafted is not None and c.spec_passes is not None and c.draft_tokens:
        most = c.spec_passes * c.draft_tokens
        yield Identity(
            name="drafted_at_most_configured",
            holds=c.drafted <= most,
            detail=f"drafted {c.drafted}, at most {most}",
        )


def _positions(c: AcceptanceCounts) -> Iterable[Identity]:
    if c.topology == "tree":
        return
    for name, values in (("accepted", accepted_at(c)), ("drafted", c.drafted_at)):
        if values:
            yield Identity(
                name=f"{name}_falls_with_position",
                holds=all(a >= b for a, b in zip(values, values[1:], strict=False)),
                detail=f"{name} by position {list(values)}",
            )


def _length(c: AcceptanceCounts) -> Iterable[Identity]:
    found = derive(c)
    if c.accepted_at is None or found.acceptance_length is None:
        return
    by_position = 1.0 + sum(found.marginal)
    yield Identity(
        name="length_is_one_plus_marginals",
        holds=abs(found.acceptance_length - by_position) <= LENGTH_TOLERANCE,
        detail=f"1 + A/S = {found.acceptance_length:.4f}, "
        f"by position {by_position:.4f}",
    )


def _tokens(c: AcceptanceCounts) -> Iterable[Identity]:
    """``completion = requests + passes + accepted - overshoot``."""
    made, passes = c.decode_tokens(), c.all_passes()
    if made is not None and passes is not None and c.draft_tokens:
        yield Identity(
            name="tokens_per_pass_are_possible",
            holds=made <= passes * (c.draft_tokens + 1),
            detail=f"{made} tokens in {passes} passes of at most "
            f"{c.draft_tokens} drafts",
        )
    if made is None or passes is None or c.accepted is None:
        return
    overshoot = passes + c.accepted - made
    # The last run is cut only after its first token, so at least one of it is kept.
    most = c.requests * (c.draft_tokens if c.draft_tokens else 64)
    yield Identity(
        name="tokens_are_accounted_for",
        holds=0 <= overshoot <= most,
        detail=f"{made} tokens after the first, {passes} passes and {c.accepted} "
        f"accepted: {overshoot} beyond the end",
    )
