"""Does an equal request with an equal seed give an equal answer?"""

from routeproof.gates.facts import Row
from routeproof.gates.more_often import more_often
from routeproof.gates.result import Check, Status

FEWEST_REPEATS = 8
"""Repeated requests of each arm below which nothing is said."""

BASELINE_REPEATS_SHARE = 0.5
"""A baseline that repeats itself less often than this has no seed to honour."""

IGNORED_SHARE = 0.2
"""Repeats of the candidate, as a share of the baseline's, at which its seed counts as
ignored. A batching server that honours a seed may still part in a rounding error, and a
speculative one more often; one that ignores it repeats an answer only by chance."""


def seed_checks(rows: tuple[Row, ...], alpha: float) -> list[Check]:
    """Whether the candidate repeats itself at equal seeds, where the baseline does.

    The candidate is held against itself: exact speculation may give other texts than
    the baseline at the same seed. Empty when too little was sent twice, or when the
    baseline does not repeat itself either.
    """
    by_arm = {str(row["arm"]): row for row in rows}
    if not {"baseline", "candidate"} <= by_arm.keys():
        return []
    n, same = _counts(by_arm["candidate"])
    floor_n, floor_same = _counts(by_arm["baseline"])
    if (
        min(n, floor_n) < FEWEST_REPEATS
        or floor_same < BASELINE_REPEATS_SHARE * floor_n
    ):
        return []
    p = more_often(n - same, n, floor_n - floor_same, floor_n)
    ignored = p <= alpha and same * floor_n <= IGNORED_SHARE * floor_same * n
    shown = (
        f"{same} of {n} requests that were sent twice with one seed were answered "
        f"alike, {floor_same} of {floor_n} by the baseline"
    )
    return [
        Check(
            name="seed_honoured",
            status=Status.FAILED if ignored else Status.PASSED,
            reason=f"the seed is ignored: {shown}" if ignored else shown,
            p_value=p,
            n=n,
            required=False,
        )
    ]


def _counts(row: Row) -> tuple[int, int]:
    return int(row["repeats"] or 0), int(row["equal"] or 0)
