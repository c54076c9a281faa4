"""Speculation in integers, and the numbers derived from them.

Every engine reports its own ratio under the name "acceptance length"; none of them
can be compared with another. Here only integers are kept, the same for every engine:

======  =====================================================================
``S``   verify passes with at least one draft
``P``   decode passes without a draft
``D``   drafted tokens
``A``   accepted drafts; the token a pass gives anyway (the bonus) is not one
======  =====================================================================

Schema ``routeproof.acceptance/1``.
"""

from collections.abc import Sequence
from typing import Literal

import msgspec

SCHEMA = "routeproof.acceptance/1"

Source = Literal["per_request", "counter_delta", "gauge_window", "derived", "none"]
"""Where the integers come from, best first."""

Trust = Literal["exact", "derived", "approximate", "unavailable"]

_TRUST_ORDER: tuple[Trust, ...] = ("exact", "derived", "approximate", "unavailable")


def worse_of(*trusts: Trust) -> Trust:
    """The least of several trust levels."""
    return max(trusts, key=_TRUST_ORDER.index)


Topology = Literal["chain", "tree", "block", "unknown"]
"""``block``: the whole draft is made at once, so acceptance at a position depends on
the draft length and must not be extrapolated to another one."""

BLOCK_METHODS = ("dflash", "dspark", "domino")


class AcceptanceCounts(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """The integers of one request, one slice or one counter window.

    ``None`` is unknown, never 0.

    Attributes:
        requests: Requests summed up here; 1 for a request of its own.
        passes: ``S + P``, where an engine lets only the sum be known.
        accepted_hist: Index = drafts accepted in a pass; sums to ``S``.
        accepted_at: How many passes accepted the draft at each position, index 0 =
            first draft.
        drafted_at: How many passes drafted that position at all.
        draft_tokens: Configured drafts per pass.
        truncated: Whether a stop string or limit may have cut the last pass.
        slice: Tags of the slice, such as ``{"class": "code"}``.
    """

    schema: str = SCHEMA
    engine: str | None = None
    engine_version: str | None = None
    source: Source = "per_request"
    trust: Trust = "exact"
    reasons: tuple[str, ...] = ()
    method: str | None = None
    draft_tokens: int | None = None
    topology: Topology = "unknown"
    mode: Literal["lossless", "lossy", "synthetic", "unknown", "none"] = "unknown"
    requests: int = 1
    completion_tokens: int | None = None
    spec_passes: int | None = None
    plain_passes: int | None = None
    passes: int | None = None
    drafted: int | None = None
    accepted: int | None = None
    accepted_hist: tuple[int, ...] | None = None
    accepted_at: tuple[int, ...] | None = None
    drafted_at: tuple[int, ...] | None = None
    truncated: bool | None = None
    slice: dict[str, str] = {}

    def all_passes(self) -> int | None:
        """``S + P``, from both or as told."""
        if self.spec_passes is not None and self.plain_passes is not None:
            return self.spec_passes + self.plain_passes
        return self.passes

    def decode_tokens(self) -> int | None:
        """Tokens that came from decode passes: all but the first of each request."""
        if self.completion_tokens is None:
            return None
        return max(self.completion_tokens - self.requests, 0)


class Derived(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Numbers derived from the integers; ``None`` where an integer is unknown.

    Attributes:
        tokens_per_pass: ``(completion - requests) / (S + P)``, the headline: tokens a
            decode pass yields over all passes, comparable over engines.
        acceptance_length: ``1 + A / S``, over passes that had a draft.
        acceptance_rate: ``A / D``; only chains and blocks, a tree drafts dead
            branches on purpose.
        rejection_rate: ``1 - A / D``.
        coverage: ``S / (S + P)``: share of passes that had a draft.
        full_accept_share: Share of verify passes that accepted every draft.
        zero_accept_share: Share that accepted none.
        waste: ``(D - A) / (D + S)``: verified positions that gave no token.
        marginal: Per position, accepted / ``S``.
        conditional: Per position, accepted / drafted there once all before were
            accepted; see ``conditional_assumes_fixed_length``.
        rejected_first: Per position, share of passes whose first rejection is there.
        conditional_assumes_fixed_length: The engine does not tell how often each
            position was drafted, so a short draft counts as a rejection.
    """

    tokens_per_pass: float | None = None
    acceptance_length: float | None = None
    acceptance_rate: float | None = None
    rejection_rate: float | None = None
    coverage: float | None = None
    full_accept_share: float | None = None
    zero_accept_share: float | None = None
    waste: float | None = None
    marginal: tuple[float, ...] = ()
    conditional: tuple[float | None, ...] = ()
    rejected_first: tuple[float, ...] = ()
    conditional_assumes_fixed_length: bool = True


def topology_of(method: str | None, topk: int | None = None) -> Topology:
    """The shape of a draft, by its method and the branching of a tree.

    Example:
        >>> topology_of("eagle3", topk=1), topology_of("eagle3", topk=4)
        ('chain', 'tree')
        >>> topology_of("dflash"), topology_of(None)
        ('block', 'unknown')
    """
    if method is None or method == "none":
        return "unknown"
    if method.startswith(BLOCK_METHODS):
        return "block"
    # Only an explicit width makes a tree; vLLM drafts chains with eagle, too.
    return "tree" if topk is not None and topk > 1 else "chain"


def derive(counts: AcceptanceCounts) -> Derived:
    """Derived numbers of one set of integers.

    On an aggregate these are the micro averages (sums first, then the ratio), which
    predict throughput.
    """
    s, d, a = counts.spec_passes, counts.drafted, counts.accepted
    is_tree = counts.topology == "tree"
    at = accepted_at(counts)
    rate = None if is_tree else _ratio(a, d)
    return Derived(
        tokens_per_pass=_ratio(counts.decode_tokens(), counts.all_passes()),
        acceptance_length=None if (extra := _ratio(a, s)) is None else 1.0 + extra,
        acceptance_rate=rate,
        rejection_rate=None if rate is None else 1.0 - rate,
        coverage=_ratio(s, counts.all_passes()),
        full_accept_share=_ratio(_bin(counts, counts.draft_tokens), s),
        zero_accept_share=_ratio(_bin(counts, 0), s),
        waste=_waste(s, d, a),
        marginal=marginal(at, s),
        conditional=conditional(at, s, counts.drafted_at),
        rejected_first=_rejected_first(at, s),
        conditional_assumes_fixed_length=counts.drafted_at is None,
    )


def accepted_at(counts: AcceptanceCounts) -> tuple[int, ...] | None:
    """Passes that accepted each position, from the counters or the histogram.

    A pass that accepted ``j`` drafts of a chain accepted positions ``0 .. j - 1``.
    """
    if counts.accepted_at is not None:
        return counts.accepted_at
    hist = counts.accepted_hist
    if hist is None or counts.topology == "tree":
        return None
    return tuple(sum(hist[i + 1 :]) for i in range(len(hist) - 1))


def marginal(at: Sequence[int] | None, s: int | None) -> tuple[float, ...]:
    """Share of verify passes that accepted each position."""
    return tuple(count / s for count in at) if at and s else ()


def conditional(
    at: Sequence[int] | None, s: int | None, drafted_at: Sequence[int] | None
) -> tuple[float | None, ...]:
    """Share accepted at each position among the passes that got that far.

    With ``drafted_at``, passes whose draft ended before the position do not count as
    rejections: at most ``drafted_at[i]`` passes tried it. That is an upper limit of
    the tries, so the rate is a lower limit. ``None`` at a position nobody reached.
    """
    if not at or not s:
        return ()
    out: list[float | None] = []
    before = s
    for i, count in enumerate(at):
        reached = before
        if drafted_at is not None:
            reached = min(before, drafted_at[i] if i < len(drafted_at) else 0)
        out.append(count / reached if reached else None)
        before = count
    return tuple(out)


def _rejected_first(at: Sequence[int] | None, s: int | None) -> tuple[float, ...]:
    if not at or not s:
        return ()
    shares = [1.0, *(count / s for count in at)]
    return tuple(
        before - after for before, after in zip(shares, shares[1:], strict=False)
    )


def _bin(counts: AcceptanceCounts, index: int | None) -> int | None:
    hist = counts.accepted_hist
    if hist is None or index is None:
        return None
    # Histograms end at their largest entry; what is beyond is 0, not unknown.
    return hist[index] if index < len(hist) else 0


def _waste(s: int | None, d: int | None, a: int | None) -> float | None:
    if s is None or d is None or a is None:
        return None
    return _ratio(d - a, d + s)


def _ratio(above: int | None, below: int | None) -> float | None:
    return None if above is None or not below else above / below


def speedup(tokens_per_pass: float, step_overhead: float) -> float:
    """How much faster a token comes than without drafts.

    ``tokens per pass / (1 + step overhead)``; the overhead is how much longer a
    drafting and verifying pass takes than a plain one. This is why a route can accept
    5.6 tokens a pass and gain only a factor 1.2.

    Example:
        >>> speedup(5.0, 3.0)
        1.25
    """
    return tokens_per_pass / (1.0 + step_overhead)


def break_even_tokens_per_pass(step_overhead: float) -> float:
    """Tokens per pass below which drafting loses.

    Example:
        >>> break_even_tokens_per_pass(0.75)
        1.75
    """
    return 1.0 + step_overhead
