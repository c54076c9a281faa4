"""How likely the model finds a reference text. Always a secondary reading.

Perplexity moves with damage and with harmless change alike: near a good baseline it
tells nothing about quality (arXiv 2606.19558). It locates a change, it passes none.
"""

from collections.abc import Collection
from math import exp, isfinite

import msgspec

from routeproof.scorers.answered import reference, score, unscored
from routeproof.scorers.score import Score, ScoredAnswer
from routeproof.workloads.case import Case

SECONDARY = frozenset({"reference_likelihood", "perplexity"})


def secondary_only(metrics: Collection[str]) -> str | None:
    """Why these quality metrics cannot stand alone; ``None`` when they can."""
    if metrics and set(metrics) <= SECONDARY:
        return (
            f"{', '.join(sorted(metrics))} alone cannot show that answers are still "
            "right: add a metric of the task itself, such as exact_match or numeric"
        )
    return None


def read_logprobs(stored: str | None) -> list[tuple[str, float | None]] | None:
    """Stored log-probabilities as (token, logprob); ``None`` when there are none."""
    if not stored:
        return None
    try:
        rows = msgspec.json.decode(stored)
        read = [(str(row[0]), row[1]) for row in rows]
    except (msgspec.DecodeError, TypeError, KeyError, IndexError, UnicodeEncodeError):
        return None
    for _, value in read:
        if value is not None and (isinstance(value, bool) or not _is_logprob(value)):
            return None
    return read


def _is_logprob(value: object) -> bool:
    return isinstance(value, int | float) and isfinite(value) and value <= 1e-3


def reference_likelihood(case: Case, answer: ScoredAnswer) -> Score:
    """Geometric mean probability of the reference's tokens: 1 / perplexity.

    The request must have been sent so that the engine echoes the prompt with its
    log-probabilities (completions with ``echo`` and ``logprobs``); the prompt ends in
    the reference. A token that straddles the boundary counts to the reference, and so
    does an empty one inside it: engines show the bytes of a character that spans
    several tokens with the last of them.
    """
    wanted = reference(case, "reference_likelihood")
    if not isinstance(wanted, str) or not wanted:
        return unscored("reference is no text")
    tokens = read_logprobs(answer.logprobs)
    if tokens is None:
        return unscored("the engine gave no log-probabilities")
    text = "".join(token for token, _ in tokens)
    at = text.rfind(wanted)
    if at < 0:
        return unscored("the reference is not in the echoed text")
    inside, place = [], 0
    for token, logprob in tokens:
        is_after_start = place + len(token) > at if token else place >= at
        if is_after_start and place < at + len(wanted):
            inside.append(logprob)
        place += len(token)
    known = [value for value in inside if value is not None]
    if not known:
        return unscored("no token of the reference has a log-probability")
    mean = sum(known) / len(known)
    trace = (
        f"{len(known)} of {len(inside)} tokens, perplexity {exp(min(-mean, 700)):.4g}"
    )
    return score("graded", min(1.0, exp(mean)), None, trace)
