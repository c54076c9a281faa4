"""Is a right/wrong score no worse? The decision for pairs with one verdict per arm.

Assumes that pairs are independent and each arm gives one verdict per pair. Trials of
one case or cases of one conversation are not independent: they go to
:mod:`routeproof.stats.paired_graded`.
"""

from typing import Literal

from scipy.special import bdtr, betaincinv, ndtr

from routeproof.stats.exact_paired import exact_p_value
from routeproof.stats.interval import Interval, NonInferiority
from routeproof.stats.planner import approximate_pairs, zero_flip_minimum
from routeproof.stats.tango import score, tango_interval

Answer = Literal["certified", "harmed", "undecided"]

EXACT_UP_TO = 20_000
"""Pairs up to which the exact test decides, in about a tenth of a second; above it
Tango's score, which then agrees (decision 10)."""


def harm_p_value(*, losses: int, gains: int) -> float:
    """Exact one-sided McNemar p-value of "no loss": ``P(B >= losses | flips, 1/2)``."""
    flips = losses + gains
    return float(bdtr(gains, flips, 0.5)) if flips else 1.0


def tolerance_p_value(*, losses: int, gains: int, n: int, tolerance: float) -> float:
    """One-sided p-value of "the true loss is at least ``tolerance``".

    1 when there are no pairs.
    """
    if n == 0:
        return 1.0
    if n <= EXACT_UP_TO:
        return exact_p_value(losses, gains, n, tolerance)
    return float(ndtr(score(losses, gains, n, tolerance)))


def non_inferiority(
    *,
    losses: int,
    gains: int,
    n: int,
    tolerance: float,
    alpha: float,
    missing: int = 0,
) -> NonInferiority:
    """Decide whether a loss larger than ``tolerance`` is excluded.

    * ``certified``: the exact unconditional test (Tango's score above
      :data:`EXACT_UP_TO` pairs) rejects "loss >= tolerance" at ``alpha``, also with
      every missing pair counted as a loss.
    * ``harmed``: not certified, and either the exact McNemar test shows a loss or the
      whole interval lies below ``-tolerance``.
    * ``undecided``: neither; ``n_needed`` says how many pairs would decide.

    Args:
        losses: Pairs only the baseline got right.
        gains: Pairs only the candidate got right.
        n: Pairs with a verdict in both arms, flipped or not.
        tolerance: Loss still allowed, a share in (0, 1). A tolerance of 0 is another
            question: :func:`no_new_failures`.
        alpha: One-sided error rate; the interval shown is two-sided at 1 - 2 alpha.
        missing: Pairs in which one arm has no verdict.

    Raises:
        ValueError: Counts that cannot be, or a tolerance outside (0, 1).
    """
    _check(losses, gains, n, missing)
    if not 0 < tolerance < 1:
        raise ValueError(f"tolerance must lie between 0 and 1, not {tolerance}")
    p = tolerance_p_value(losses=losses, gains=gains, n=n, tolerance=tolerance)
    worst = tolerance_p_value(
        losses=losses + missing, gains=gains, n=n + missing, tolerance=tolerance
    )
    harm = harm_p_value(losses=losses, gains=gains)
    interval = _interval(losses, gains, n, alpha)
    below = interval.high is not None and interval.high < -tolerance
    minimum = zero_flip_minimum(tolerance, alpha)
    decision: Answer = "undecided"
    # A missing pair is also one pair more: with few pairs that could look better.
    worst = max(p, worst)
    if worst <= alpha:
        decision = "certified"
    elif harm <= alpha or below:
        decision = "harmed"
    note = None
    if decision == "certified" and harm <= alpha:
        note = "worse, within tolerance"
    elif decision == "undecided" and n + missing < minimum:
        note = "not powered"
    elif decision == "undecided" and p <= alpha:
        note = "certified only if the missing pairs are no losses"
    return NonInferiority(
        decision=decision,
        estimate=(gains - losses) / n if n else 0.0,
        interval=interval,
        tolerance=tolerance,
        p_value=worst,
        harm_p_value=harm,
        n=n,
        n_needed=(
            _needed(losses, gains, n, tolerance, alpha)
            if decision == "undecided"
            else None
        ),
        method="exact_tango" if n + missing <= EXACT_UP_TO else "tango",
        note=note,
        n_minimum=minimum,
        missing=missing,
    )


def _needed(losses: int, gains: int, n: int, tolerance: float, alpha: float) -> int:
    """Pairs in all that would decide at a power of 0.8, extrapolated.

    The flip rate is the observed one. The true loss is taken as the observed one, but
    between none and half the tolerance: an unlucky start must not ask for millions of
    pairs. When that many were already there, three quarters of the tolerance, else
    half as many again.
    """
    if n == 0:
        return zero_flip_minimum(tolerance, alpha)
    flips, loss = (losses + gains) / n, (losses - gains) / n
    for share in (0.5, 0.75):
        needed = approximate_pairs(
            flips=flips,
            tolerance=tolerance,
            alpha=alpha,
            loss=min(max(loss, 0.0), share * tolerance),
        )
        if needed > n:
            return needed
    return n + (n + 1) // 2


def no_new_failures(
    *,
    losses: int,
    gains: int,
    n: int,
    alpha: float,
    control_losses: int | None,
    control_n: int = 0,
    missing: int = 0,
) -> NonInferiority:
    """Decide a tolerance of 0: no new failures beyond what the A/A control shows.

    For a property the baseline keeps by construction, such as schema validity under
    constrained decoding. A rate of exactly 0 cannot be proven from a sample, so this
    is a rule, not a test of equivalence; the note states the rate that is excluded.

    * A control that lost nothing says the property is deterministic: one new failure
      is ``harmed``, none is ``certified``.
    * A control that lost something says it is not: ``certified`` when the candidate
      loses no larger a share than the control, ``harmed`` when it loses more at
      ``alpha`` (exact conditional test of two rates), else ``undecided``.
    * Without a control, failures cannot be told from noise: none is ``certified``,
      some are ``harmed`` if they exceed the gains at ``alpha``, else ``undecided``.
    * A missing pair is a failure for the purpose of certifying, never of harming.

    Args:
        losses: Pairs only the baseline kept the property.
        gains: Pairs only the candidate kept it.
        n: Pairs with a verdict in both arms.
        alpha: One-sided error rate.
        control_losses: The same count with the baseline run again in the candidate's
            place; ``None`` when no control ran.
        control_n: Pairs of the control.
        missing: Pairs in which one arm has no verdict.
    """
    _check(losses, gains, n, missing)
    harm, allowed = harm_p_value(losses=losses, gains=gains), 0.0
    if control_losses and control_n:
        # Given all failures, those of the candidate are binomial with its share of n.
        share = n / (n + control_n) if n else 0.0
        together = losses + control_losses
        harm = 1.0 - float(bdtr(losses - 1, together, share)) if losses else 1.0
        allowed = control_losses / control_n
    elif control_losses == 0 and control_n and losses:
        harm = 0.0
    if n and losses + missing <= allowed * (n + missing):
        decision: Answer = "certified"
    elif losses and harm <= alpha:
        decision = "harmed"
    else:
        decision = "undecided"
    excluded = (
        1.0 if losses >= n else float(betaincinv(losses + 1, n - losses, 1 - alpha))
    )
    return NonInferiority(
        decision=decision,
        estimate=(gains - losses) / n if n else 0.0,
        interval=_interval(losses, gains, n, alpha),
        tolerance=0.0,
        p_value=None,
        harm_p_value=harm,
        n=n,
        n_needed=None,
        method="no_new_failures",
        note=f"{losses} new failures in {n} pairs; more than {excluded:.2%} excluded",
        missing=missing,
    )


def _check(losses: int, gains: int, n: int, missing: int) -> None:
    if min(losses, gains, n, missing) < 0 or losses + gains > n:
        raise ValueError(
            f"{losses} losses and {gains} gains do not fit into {n} pairs "
            f"({missing} missing)"
        )


def _interval(losses: int, gains: int, n: int, alpha: float) -> Interval:
    level = 1 - 2 * alpha
    if n == 0:
        return Interval(low=None, high=None, level=level, method="tango")
    return tango_interval(losses=losses, gains=gains, n=n, level=level)
