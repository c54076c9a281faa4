"""Whether a verdict is good enough for whoever asks, and the exit code that says so."""

from routeproof.verdict import Decision

RANK = (Decision.ADOPT, Decision.PILOT, Decision.WAIT, Decision.AVOID)
"""Best first. ``no_verdict`` has no rank: nothing can be said for or against."""

MET, BELOW, NO_VERDICT = 0, 1, 3


def exit_code(decision: Decision, require: Decision = Decision.ADOPT) -> int:
    """The exit code of a command that ends in a verdict.

    Returns:
        0 when the verdict is at or above ``require``, 1 when it is below, 3 when there
        is no verdict at all because the measurement cannot be believed.

    Example:
        >>> exit_code(Decision.PILOT, Decision.PILOT), exit_code(Decision.PILOT)
        (0, 1)
    """
    if decision not in RANK:
        return NO_VERDICT
    return MET if RANK.index(decision) <= RANK.index(require) else BELOW
