"""When acceptance means nothing: workloads that inflate it, engines that force it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from routeproof.metrics.acceptance_requests import Numbers
from routeproof.records.columns import Bools
from routeproof.workloads.case import Case

MIN_REQUESTS = 30
MIN_PASSES = 600
EVEN = 1.25
"""Dispersion below which acceptance does not depend on the text. Recorded n-gram and
model drafts lie between 1.8 and 6.8 (24 short answers each), forced acceptance at 1; a
draft that is the target itself, which hardly ever errs, came to 1.1."""

NEARLY_ALL = 0.85
"""Share of the possible drafts above which evenness is no tell: nothing is left to
vary."""

RANDOM_TAGS = frozenset({"random", "random_tokens", "synthetic_tokens", "noise"})


@dataclass(frozen=True, slots=True)
class Dispersion:
    """How much acceptance differs from request to request.

    Attributes:
        ratio: Variance of the requests' accepted drafts over what chance alone gives
            when every pass of every request draws from the same distribution; about 1
            where acceptance is forced, above it where the text matters.
        requests: Requests that entered.
        passes: Their verify passes.
        share: Accepted drafts over the most that any pass accepted, on average.
    """

    ratio: float
    requests: int
    passes: int
    share: float

    def looks_forced(self) -> bool:
        """Whether acceptance is too even to come from verifying drafts."""
        enough = self.requests >= MIN_REQUESTS and self.passes >= MIN_PASSES
        return enough and self.ratio < EVEN and self.share < NEARLY_ALL


def why_refused(cases: Sequence[Case]) -> tuple[str, ...]:
    """Why acceptance over these cases would say nothing; empty when it does.

    - ``ignore_eos``, or a forced length: past its natural end a text falls into a
      loop, and loops are accepted splendidly.
    - Random tokens: they overstate throughput by about a quarter, and a draft has
      nothing to predict.
    - One prompt many times: n-gram speculation learns its own answers.
    """
    found = []
    eos = [c.id for c in cases if c.parameters.get("ignore_eos")]
    if eos:
        found.append(f"{_some(eos)} sent with `ignore_eos`")
    forced = [c.id for c in cases if _is_forced_length(c)]
    if forced:
        found.append(f"{_some(forced)} forced to a length by `min_tokens`")
    noise = [c.id for c in cases if RANDOM_TAGS & {c.class_, *c.tags.values()}]
    if noise:
        found.append(f"{_some(noise)} made of random tokens")
    prompts = [str(c.messages or c.prompt) for c in cases]
    repeated = len(prompts) - len(set(prompts))
    if len(cases) >= 2 and repeated > len(cases) / 4:
        found.append(f"{repeated} of {len(cases)} cases repeat another one's prompt")
    return tuple(found)


def _some(ids: list[str]) -> str:
    if len(ids) == 1:
        return f"case {ids[0]} is"
    return f"{len(ids)} cases ({', '.join(ids[:3])}{', ...' if ids[3:] else ''}) are"


def _is_forced_length(case: Case) -> bool:
    least = case.parameters.get("min_tokens")
    most = case.parameters.get("max_tokens")
    return isinstance(least, int) and least > 1 and least == most


def dispersion(requests: Numbers, keep: Bools) -> Dispersion | None:
    """How unevenly drafts were accepted over requests.

    Under forced acceptance each pass draws its length from one distribution, whatever
    the text, so the accepted drafts of a request with ``S`` passes vary like a sum of
    ``S`` draws: variance ``S v`` around ``S m``. Pearson's chi-square over its degrees
    of freedom is then about 1. Text is not like that: code is accepted better than
    verse.

    Args:
        requests: With ``accepted``, ``spec_passes`` and the histogram columns.
        keep: Served requests of one arm with different prompts.

    Returns:
        ``None`` when no request tells, or every pass accepted the same number (which
        is an even stronger tell: ``ratio`` would be 0 by 0).
    """
    accepted, passes = requests.number("accepted"), requests.number("spec_passes")
    told = keep & accepted.known & passes.known & (passes.values >= 5)
    a, s = accepted.values[told], passes.values[told]
    if a.size < 2:
        return None
    moments = _moments(requests, told)
    if moments is None:
        return None
    mean, variance, most = moments
    chi = float(np.sum((a - s * mean) ** 2 / (s * variance)))
    return Dispersion(chi / (a.size - 1), int(a.size), int(s.sum()), mean / most)


def _moments(
    requests: Numbers, told: NDArray[np.bool_]
) -> tuple[float, float, int] | None:
    """Mean, variance and maximum of the drafts accepted in a pass, over all passes."""
    total = weighted = squared = 0.0
    index = most = 0
    while (column := requests.numbers.get(f"accepted_hist:{index}")) is not None:
        count = float(column.values[told & column.known].sum())
        total += count
        weighted += index * count
        squared += index * index * count
        most = index if count > 0 else most
        index += 1
    if total <= 0:
        return None
    mean = weighted / total
    variance = squared / total - mean * mean
    usable = variance > 0 and math.isfinite(variance) and most > 0
    return (mean, variance, most) if usable else None


def every_pass_the_same(requests: Numbers, keep: Bools) -> int | None:
    """The number of drafts that every single pass accepted, if there is one.

    A constant over many passes of many requests is a switch, not a draft: NaN logits
    have accepted all drafts or none, too.

    Returns:
        The number, or ``None`` when passes differ, tell nothing, or are too few.
    """
    found: list[int] = []
    total = 0.0
    index = 0
    while (column := requests.numbers.get(f"accepted_hist:{index}")) is not None:
        count = float(column.values[keep & column.known].sum())
        if count > 0:
            found.append(index)
            total += count
        index += 1
    return found[0] if len(found) == 1 and total >= MIN_PASSES else None
